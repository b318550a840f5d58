// Package scale measures at full size without Azure: the requests of a day and of thousands of
// services, counted by kind, in minutes and on one machine.
//
// An [Account] is a storage account in memory. It speaks the protocol of Azure Storage, so the
// driver of production sends the requests, splits them into pages and retries them:
//
//	a := scale.New(scale.Options{})
//	store, err := a.Open() // a *azure.Store
//	...
//	a.Counts().Put
//
// The account answers late, as Azure does, and refuses what is beyond Azure's published limits
// with 503 and Retry-After. All of its time is package time's: within testing/synctest half an
// hour takes as long as its work. It opens no connection, because that would stop the time of a
// bubble. [Account.Blobs] and [Account.Tables] serve it to other processes, in real time.
//
// It is not Azure: nothing is lost, no answer varies, a table is gone as soon as it is dropped,
// and nobody is refused for credentials.
package scale

import (
	"cmp"
	"net/http"
	"strings"
	"sync"
	"time"

	"blobtail/storage/azure"
)

// Options are the rules of an account. The zero value has Azure's published limits and the usual
// latencies within a region; a negative value is no latency, or no limit.
type Options struct {
	// ListLatency, GetLatency and PutLatency are the times to an answer. GetLatency is also that
	// of attributes and of reads of tables, PutLatency that of deletions and writes of tables.
	ListLatency, GetLatency, PutLatency time.Duration // 0: 20 ms, 10 ms, 15 ms
	Page                                int           // names of blobs in an answer; 0: 5,000
	Requests                            int           // a second of the account; 0: 20,000
	Entities                            int           // a second of a partition of a table; 0: 2,000
	// Forget reports whether the rows of a table are counted and then forgotten; nil: none is. A
	// long run of an ingester needs no memory for them then.
	Forget func(table string) bool
	// ForgetBody reports whether the body of a blob is forgotten; nil: none is. Its reads fail.
	ForgetBody func(key string) bool
}

// container is the one container of [Account.Open].
const container = "logs"

// Account is a storage account in memory.
type Account struct {
	o Options

	mu         sync.Mutex
	containers map[string]*ordered[object]
	tables     map[string]map[string]*ordered[row] // by partition
	made       uint64                              // versions so far
	down       bool

	second   int64          // that the next two are of
	requests int            // in this second
	entities map[string]int // in this second, by table and partition

	counts  Counts
	detail  map[string]int64
	written map[string]Written
}

// New returns an empty account.
func New(o Options) *Account {
	o.ListLatency = cmp.Or(o.ListLatency, 20*time.Millisecond)
	o.GetLatency = cmp.Or(o.GetLatency, 10*time.Millisecond)
	o.PutLatency = cmp.Or(o.PutLatency, 15*time.Millisecond)
	o.Page = cmp.Or(o.Page, 5000)
	o.Requests = cmp.Or(o.Requests, 20_000)
	o.Entities = cmp.Or(o.Entities, 2000)
	if o.Forget == nil {
		o.Forget = func(string) bool { return false }
	}
	if o.ForgetBody == nil {
		o.ForgetBody = func(string) bool { return false }
	}
	return &Account{
		o: o, containers: map[string]*ordered[object]{}, tables: map[string]map[string]*ordered[row]{},
		entities: map[string]int{}, detail: map[string]int64{}, written: map[string]Written{},
	}
}

// Open returns a store on the account: the driver of production with its own connections.
func (a *Account) Open() (*azure.Store, error) {
	return a.open((*Account).handler)
}

// OpenFree is Open for preparing a test and for looking at its end: its requests are not counted,
// take no time and meet no limit.
func (a *Account) OpenFree() (*azure.Store, error) {
	return a.open((*Account).free)
}

func (a *Account) open(handler func(*Account, bool) http.Handler) (*azure.Store, error) {
	o := azure.Options{Create: true, Getenv: Getenv}
	o.Client.Transport = &http.Client{Transport: transport{blobs: handler(a, false), tables: handler(a, true)}}
	return azure.Open(container, o)
}

// Getenv is the environment with the credentials of every account of this package.
func Getenv(name string) string {
	return map[string]string{"AZURE_STORAGE_ACCOUNT": "scale", "AZURE_STORAGE_KEY": "c2NhbGU="}[name]
}

// SetDown has the account refuse all requests with 503, or ends that.
func (a *Account) SetDown(down bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down = down
}

// Blobs serves the blobs to other processes, Tables the tables. The paths begin with the
// container or the table.
func (a *Account) Blobs() http.Handler { return a.handler(false) }

// Tables is described at [Account.Blobs].
func (a *Account) Tables() http.Handler { return a.handler(true) }

func (a *Account) handler(tables bool) http.Handler { return service{a, tables, false} }
func (a *Account) free(tables bool) http.Handler    { return service{a, tables, true} }

// service is one of the two services of the account.
type service struct {
	*Account
	tables bool
	free   bool // nothing is counted
}

// ServeHTTP implements [http.Handler].
func (s service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q, err := read(r)
	if err != nil {
		return // the client broke off
	}
	answer := &answer{status: http.StatusOK, header: http.Header{}}
	what := s.kind(q)
	if !s.free && !sleep(r.Context(), s.latency(what.kind)) {
		return
	}
	if s.tables {
		s.table(q, answer, &what)
	} else {
		s.blob(q, answer, &what)
	}
	if !s.free {
		s.count(what, len(q.body), len(answer.body), answer.status)
	}
	answer.send(w, r.Method)
}

// what is a request as it is counted and limited.
type what struct {
	kind  Kind
	class string // for [Account.Detail]
	n     int    // requests in it: a batch has several
}

// kind finds the kind of a request.
func (s service) kind(q *request) what {
	if s.tables {
		return q.tableKind()
	}
	return q.blobKind()
}

// admit checks the limits of the account, for n requests. The caller holds mu. It answers for
// the request if it refuses it.
func (s service) admit(w *answer, n int) bool {
	if s.free {
		return true
	}
	s.tick()
	if s.down || s.o.Requests > 0 && s.requests+n > s.o.Requests {
		w.busy(s.tables)
		return false
	}
	s.requests += n
	return true
}

// admitEntities checks the limit of a partition, for n entities. The caller holds mu.
func (s service) admitEntities(w *answer, table, partition string, n int) bool {
	if s.free || s.o.Entities < 0 {
		return true
	}
	s.tick()
	at := table + "/" + partition
	if s.entities[at]+n > s.o.Entities {
		w.busy(s.tables)
		return false
	}
	s.entities[at] += n
	return true
}

// tick begins the counts of a new second. The caller holds mu.
func (a *Account) tick() {
	if now := time.Now().Unix(); now != a.second {
		a.second, a.requests = now, 0
		clear(a.entities)
	}
}

func (a *Account) latency(k Kind) time.Duration {
	switch k {
	case List:
		return a.o.ListLatency
	case Get, Head, TableRead:
		return a.o.GetLatency
	}
	return a.o.PutLatency
}

// transport takes requests to the services without a connection.
type transport struct{ blobs, tables http.Handler }

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	to := t.blobs
	if strings.Contains(r.URL.Host, ".table.") {
		to = t.tables
	}
	w := &recorder{header: http.Header{}, status: http.StatusOK}
	to.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.response(r), nil
}
