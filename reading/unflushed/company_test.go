package unflushed_test

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/internal/dev/testkit/box"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
	"blobtail/reading/unflushed/live"
	"blobtail/record"
	"blobtail/tailindex"
)

// storeID is the id of the store of every company.
const storeID = box.StoreID

// company is a house with the records sent and acknowledged. Its time is the test's.
type company struct {
	*box.House
	t     *testing.T
	all   []*ingester
	guard func(*http.Request) (live.Reader, error) // of the ingesters; nil: all may read all

	mu     sync.Mutex
	sent   int
	asked  []int                  // the limits of questions to ingesters
	ledger map[string]*sentRecord // by the name in the message
}

type sentRecord struct {
	name, service, level string
	time                 int64
	length               int       // of its line
	sent, acked          time.Time // acked is zero until it is
	copied               bool      // two ingesters may have it
}

func newCompany(t *testing.T, ingesters int) *company {
	c := &company{House: box.New(t, 0), t: t, ledger: map[string]*sentRecord{}}
	for range ingesters {
		c.all = append(c.all, c.add())
	}
	return c
}

// ingester is one of a company.
type ingester struct {
	*box.Ingester
	c *company
}

// add makes an ingester with an empty disk, which does not run.
func (c *company) add() *ingester {
	in := &ingester{c.House.Add(), c}
	in.Tail, in.Live.Token = &tailindex.Options{}, "peer"
	in.Asked = func(q live.LogQuery) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asked = append(c.asked, q.Newest)
	}
	in.holds(8<<10, 64<<10, 20*time.Second)
	return in
}

// holds sets the sizes of segments and batches, and the age of the records when they are flushed.
func (in *ingester) holds(segment, size int64, age time.Duration) {
	in.Segment, in.Buffer.Size, in.Buffer.Age, in.Buffer.MaxAge = segment, size, age, age
}

// start runs the ingester on the contents of its disk.
func (in *ingester) start() {
	in.c.t.Helper()
	in.Live.Guard = in.c.guard
	in.Start()
}

// line is one record to be sent, at a time relative to now.
type line struct {
	service, level string
	at             time.Duration
	pad            int
}

// request makes a request of lines and notes them as sent.
func (c *company) request(lines ...line) (*record.Request, []*sentRecord) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var records []box.Line
	var all []*sentRecord
	for _, l := range lines {
		c.sent++
		sent := &sentRecord{name: fmt.Sprintf("r%d", c.sent), service: l.service, level: cmp.Or(l.level, "info"), sent: time.Now()}
		at := c.Now().Add(l.at + time.Duration(c.sent))
		sent.time = at.UnixNano()
		records = append(records, box.Line{Time: at, Level: l.level, Service: l.service, Msg: sent.name + " " + strings.Repeat("x", l.pad)})
		c.ledger[sent.name] = sent
		all = append(all, sent)
	}
	r := c.Request(records...)
	for i, sent := range all {
		sent.length = int(r.Lines[i].Len)
	}
	return r, all
}

// accept hands a request to an ingester; with ack it waits for the acknowledgement and
// notes it.
func (in *ingester) accept(r *record.Request, all []*sentRecord, ack bool) error {
	err := in.Accept(r, ack)
	if err == nil && ack {
		in.c.acked(all)
	}
	return err
}

func (c *company) acked(all []*sentRecord) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range all {
		if s.acked.IsZero() {
			s.acked = time.Now()
		}
	}
}

// send sends lines and waits for their acknowledgement.
func (in *ingester) send(lines ...line) []*sentRecord {
	in.c.t.Helper()
	r, all := in.c.request(lines...)
	if err := in.accept(r, all, true); err != nil {
		in.c.t.Fatal(err)
	}
	return all
}

// ackedNow has the acknowledged records of matching services, by name.
func (c *company) ackedNow(match func(*sentRecord) bool) map[string]*sentRecord {
	c.mu.Lock()
	defer c.mu.Unlock()
	got := map[string]*sentRecord{}
	for name, s := range c.ledger {
		if !s.acked.IsZero() && match(s) {
			got[name] = s
		}
	}
	return got
}

// nameOf is the name in the message of a line.
func nameOf(line []byte) string {
	_, rest, _ := bytes.Cut(line, []byte(`"msg":"`))
	name, _, _ := bytes.Cut(rest, []byte(" "))
	return string(name)
}

// reader is a reader of the company's store; change may take parts away.
func (c *company) reader(change ...func(*unflushed.Options)) *unflushed.Reader {
	store, tables := c.Faulty()
	o := c.Logs(blobs.New(store, blobs.Options{Workers: 2}))
	o.Tail = tailindex.NewReader(tables, tailindex.Options{Now: c.Now})
	for _, f := range change {
		f(&o)
	}
	return unflushed.New(o)
}

func withoutLive(o *unflushed.Options) { o.Live, o.Announced = nil, nil }

// byTables has the operator want no ingester to be asked.
func byTables(o *unflushed.Options) { o.Off = true }

// always is a query for all of some services.
func always(services ...string) blobs.Query {
	return blobs.Query{Services: services, Range: blobs.Always()}
}
