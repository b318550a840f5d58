package page_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"blobtail/internal/dev/testkit"
)

func patience() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), testkit.Patience)
}

// call is what a story asks of its world.
type call struct {
	World string
	Op    string
	Args  struct {
		Who     string // ingester, ingester1 or server
		Lines   string // to send
		Command string // line of sh
		Env     []string
		Service string
		Needles []string
		Rate    int
		Seconds float64
		Path    string
	}
}

// answer does it. The result becomes JSON.
func (a *atlas) answer(ctx context.Context, c call) (any, error) {
	w, err := a.of(c.World)
	if err != nil {
		return nil, err
	}
	switch c.Op {
	case "kill":
		return nil, w.process(c.Args.Who).End(syscall.SIGKILL)
	case "stop":
		return nil, w.process(c.Args.Who).End(syscall.SIGTERM)
	case "start":
		return nil, w.process(c.Args.Who).start()
	case "send":
		return nil, w.of(c.Args.Who).send([]byte(c.Args.Lines))
	case "flush":
		return nil, w.of(c.Args.Who).flush()
	case "shell":
		return shell(ctx, w.dir, c.Args.Command, append(c.Args.Env, "BLOBTAIL_STORE=dir:"+w.store())...)
	case "damage":
		return w.damage(c.Args.Service)
	case "mend":
		return nil, w.mend()
	case "recorded":
		return w.proxy.find(c.Args.Needles), nil
	case "flow":
		w.flow = newFlow(w.ingesters[0], c.Args.Service, c.Args.Rate, c.Args.Seconds)
		return nil, nil
	case "enough":
		close(w.flow.enough)
		return nil, nil
	case "flowed":
		return w.flow.wait(ctx)
	case "log":
		return w.process(c.Args.Who).Log(), nil
	}
	return nil, fmt.Errorf("no operation %s", c.Op)
}

// of is the ingester of a name: ingester, ingester1 and so on.
func (w *world) of(who string) *ingester {
	n := 0
	_, _ = fmt.Sscanf(who, "ingester%d", &n) // without a number it is the first
	return w.ingesters[n]
}

func (w *world) process(who string) *process {
	if who == "server" {
		return w.server
	}
	return &w.of(who).process
}

// serveControl answers stories until the test ends.
func (a *atlas) serveControl() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	a.control = "http://" + l.Addr().String()
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var c call
		err := json.NewDecoder(r.Body).Decode(&c)
		var result any
		if err == nil {
			result, err = a.answer(r.Context(), c)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(result) // the story fails without it
	})}
	go s.Serve(l)
	a.t.Cleanup(func() { s.Close() })
	return nil
}

// flow sends records of rising numbers to an ingester at a rate. It sends a request again until
// it is accepted, as a shipper does.
type flow struct {
	cancel context.CancelFunc
	enough chan struct{} // closed: it ends before its time
	done   chan struct{}
	sent   atomic.Int64
	mu     sync.Mutex
	err    error
}

func newFlow(to *ingester, service string, rate int, seconds float64) *flow {
	ctx, cancel := context.WithCancel(context.Background())
	f := &flow{cancel: cancel, enough: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(f.done)
		if err := f.run(ctx, to, service, rate, seconds); err != nil && ctx.Err() == nil {
			f.mu.Lock()
			f.err = err
			f.mu.Unlock()
		}
	}()
	return f
}

// run sends ten requests a second.
func (f *flow) run(ctx context.Context, to *ingester, service string, rate int, seconds float64) error {
	begun := time.Now()
	for n, total := 0, int(float64(rate)*seconds); n < total; {
		due := min(int(time.Since(begun).Seconds()*float64(rate)), total)
		var lines strings.Builder
		for ; n < due; n++ {
			fmt.Fprintf(&lines, `{"ts":"%s","level":"info","service":"%s","msg":"flow %d","n":%d,"pad":"%060d"}`+"\n", stamp(time.Now()), service, n, n, n)
		}
		if lines.Len() > 0 {
			if err := testkit.Poll("a request is accepted", func() (bool, error) {
				_, err := post(to.listen+"/ingest", []byte(lines.String()), to.token)
				return err == nil, ctx.Err()
			}); err != nil {
				return err
			}
			f.sent.Store(int64(n))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.enough:
			return nil
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

// wait returns how many records were sent, once all were.
func (f *flow) wait(ctx context.Context) (int64, error) {
	select {
	case <-f.done:
	case <-ctx.Done():
		return 0, errors.New("the flow of records goes on")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent.Load(), f.err
}

func (f *flow) stop() {
	f.cancel()
	<-f.done
}
