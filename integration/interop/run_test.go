package interop_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
)

// A client is a shipper under test.
type client struct {
	name    string
	version func(t testing.TB) string
	wire    string // the protocol, for the table
	// ship sends all records and returns when the client is done. It returns
	// the marks of the records that the client believes delivered; nil if the client does
	// not tell, and then the answers that it got decide.
	ship func(r *run) (believed map[string]bool)

	stream bool                // all records are in one request
	setup  func(r *run) string // more lines of the ingester's configuration

	slow     bool // not in the quick mode
	replayed bool // bodies made after the client's source, and sent by the test
	raw      bool // no HTTP: a protocol without answers
	want     func(s *sent) want
	textOnly bool             // the client has no fields; the mark is in the message
	oneLine  bool             // the client or the protocol ends a message at a line feed
	maxLen   int              // bytes of a message, 0: no limit
	without  map[fault]string // faults that say nothing about the client, and why
	lossy    string           // why records may be lost that the client sent; it does not believe that they are delivered
	twice    string           // why records may be there twice after a fault
}

// A want is the stored form that a record must have.
type want struct {
	msg   string
	level string
	from  int64 // ns: the earliest time
	to    int64 // ns: the latest time
	n     bool  // the number is a field
}

// A fault happens while a client sends.
type fault string

const (
	plain   fault = "plain"
	restart fault = "restart"     // SIGTERM, and a start 2 s later; later the same with SIGKILL
	full    fault = "full log"    // for 8 s the log takes no records
	lost    fault = "lost answer" // each third answer is cut
)

// filler is a service. Its records fill the log.
const filler = "filler"

// A run is one client under one fault.
type run struct {
	t       testing.TB
	c       *client
	fault   fault
	dir     string
	records []sent
	file    string // the records, as NDJSON
	i       *ingester
	p       *proxy
	begun   time.Time
	output  bytes.Buffer // of the client
	stream  *testenv.NATS
}

// service is the service that the records have to be in.
const service = "shop"

func (r *run) url() string { return "http://" + r.p.addr }

// pause is how long a client waits after each 20 records: under a fault all records take
// 8 s or so.
func (r *run) pause() time.Duration {
	if r.fault == plain {
		return 0
	}
	return 8 * time.Second * 20 / time.Duration(len(r.records))
}

// count is how many records a client sends.
func count(f fault) int {
	if shared.mode == "quick" || f != plain {
		return 1000
	}
	return 2000
}

// config is the configuration of an ingester.
func (r *run) config(i *ingester) string {
	text := "flush: {size: 1MiB, age: 1s, min: 64KiB, max-age: 2s}\ntail: {enabled: false}\n"
	if r.fault == full {
		text += "log: {segment: 1MiB, soft: 2MiB, max: 4MiB}\n"
	}
	if r.c.raw {
		text += fmt.Sprintf("syslog: {listen: %q}\n", i.syslog)
	}
	if r.c.setup != nil {
		text += r.c.setup(r)
	}
	return text
}

// newRun makes the records of a run.
func newRun(t *testing.T, c *client, f fault) *run {
	t.Helper()
	r := &run{t: t, c: c, fault: f, dir: t.TempDir(), begun: time.Now()}
	r.records = records(count(f), r.begun.Add(-time.Minute), c)
	r.file = filepath.Join(r.dir, "records.ndjson")
	if err := os.WriteFile(r.file, ndjson(r.records), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

// drive runs a client under a fault and notes the row of the table.
func drive(t *testing.T, c *client, f fault) {
	r := newRun(t, c, f)
	r.i = newIngester(t, r.config)
	to := r.i.listen
	if c.raw {
		to = r.i.syslog
	}
	r.p = newProxy(t, to, !c.raw)
	if c.stream && f != plain {
		r.p.rate = 100 << 10
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		r.disturb(stop)
	}()
	believed := c.ship(r)
	close(stop)
	testkit.Await(t, "the end of the fault", done)
	r.settle()
	r.i.flush()
	if believed == nil {
		believed = r.p.believed()
	}
	rep := r.compare(r.i.read("*"), r.i.read("_*"), believed)
	shared.note(r.row(rep))
	r.judge(rep)
	if t.Failed() {
		t.Logf("output of the client:\n%.4000s", r.output.String())
	}
}

// disturb makes the fault, when a part of the records has been sent.
func (r *run) disturb(stop <-chan struct{}) {
	n := len(r.records)
	switch r.fault {
	case restart:
		if r.wait(stop, n/4) {
			r.bounce(syscall.SIGTERM)
		}
		if r.wait(stop, n/2) {
			r.bounce(syscall.SIGKILL)
		}
	case lost:
		r.p.cutEvery.Store(3)
		<-stop
		r.p.cutEvery.Store(0)
	case full:
		if !r.wait(stop, n/5) {
			return
		}
		blocked := filepath.Join(r.i.dir, "store", filler)
		if err := os.WriteFile(blocked, []byte("no directory"), 0o600); err != nil {
			r.t.Error(err)
			return
		}
		if r.i.fill(stop) {
			r.p.filled.Store(true)
		}
		select {
		case <-stop:
		case <-time.After(8 * time.Second):
		}
		if err := os.Remove(blocked); err != nil {
			r.t.Error(err)
		}
	}
}

// wait waits until the client has sent n records.
func (r *run) wait(stop <-chan struct{}, n int) bool {
	for !r.p.sawAtLeast(n) {
		select {
		case <-stop:
			return false
		case <-time.After(10 * time.Millisecond):
		}
	}
	return true
}

// bounce stops the ingester, and starts it 2 s later.
func (r *run) bounce(s syscall.Signal) {
	if r.c.raw && s == syscall.SIGKILL {
		time.Sleep(time.Second) // the records sent after the first start have come
	}
	r.p.refuse() // as the ingester does, too
	r.i.stop(s)
	r.p.down()
	time.Sleep(2 * time.Second)
	r.i.start()
	r.p.bounces.Add(1)
	if err := r.p.up(); err != nil {
		r.t.Error(err)
	}
}

// settle waits for the records that are still on their way to the ingester.
func (r *run) settle() {
	patience := 2 // in halves of a second
	if r.c.raw || r.stream != nil {
		patience = 40
	}
	for before, still := -1, 0; still < patience; time.Sleep(500 * time.Millisecond) {
		n := len(marksIn(r.i.read(service)))
		if n >= len(r.records) {
			return
		}
		if still++; n != before {
			before, still = n, 0
		}
	}
}

// command prepares a program that belongs to a client. Its output is kept.
func (r *run) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = r.dir
	cmd.Env = testkit.Environ()
	cmd.Stdout, cmd.Stderr = &r.output, &r.output
	return cmd
}

// node runs a script of clients/ and returns the records that the client believes delivered.
func (r *run) node(script string, env ...string) map[string]bool {
	r.t.Helper()
	cmd := r.command("node", "--max-old-space-size=256", filepath.Join(shared.root, "integration", "interop", "clients", script))
	cmd.Env = append(cmd.Env, append(env, "INTEROP_URL="+r.url(), "INTEROP_RECORDS="+r.file, "INTEROP_SERVICE="+service,
		fmt.Sprint("INTEROP_PAUSE=", r.pause().Milliseconds()), "INTEROP_PATIENCE=90")...)
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := r.waitFor(cmd, 4*time.Minute); err != nil {
		r.t.Fatalf("%s: %v\n%.2000s", script, err, r.output.String())
	}
	text := strings.TrimSpace(out.String())
	var report struct{ Believed []string }
	if err := json.Unmarshal([]byte(text[strings.LastIndexByte(text, '\n')+1:]), &report); err != nil {
		r.t.Fatalf("%s has no report: %v\n%.500s", script, err, text)
	}
	if report.Believed == nil {
		return nil
	}
	believed := map[string]bool{}
	for _, m := range report.Believed {
		believed[m] = true
	}
	return believed
}

// waitFor starts a program and waits for its end.
func (r *run) waitFor(cmd *exec.Cmd, limit time.Duration) error {
	if err := shared.start(cmd); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	return cmd.Wait()
}
