package httpsource_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"blobtail/record"
	"blobtail/record/ack"
	"blobtail/source/httpsource"
)

// ladder is a log with a level for each service. It notes the level of each request that was waited for.
type ladder struct {
	least map[string]ack.Level
	fail  error // of what is shipped

	mu      sync.Mutex
	reached map[int]ack.Level
}

func (l *ladder) Accept(_ context.Context, r *record.Request) (record.Receipt, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reached == nil {
		l.reached = map[int]ack.Level{}
	}
	n := len(l.reached)
	l.reached[n] = 99
	at := func(level ack.Level) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.reached[n] = level
		if level == ack.Shipped {
			return l.fail
		}
		return nil
	}
	receipt := record.Receipt{
		Wait: func(_ context.Context, stored bool) error {
			if stored {
				return at(ack.Stored)
			}
			return at(ack.Disk)
		},
		Shipped: func(context.Context) error { return at(ack.Shipped) },
	}
	for _, s := range r.Services {
		receipt.Ack = max(receipt.Ack, l.least[s])
	}
	return receipt, nil
}

// demanding is a guard whose senders have a level.
type demanding ack.Level

func (d demanding) Admit(*http.Request) (httpsource.Sender, error) {
	return demandingSender{sender{new(gate), ""}, ack.Level(d)}, nil
}

type demandingSender struct {
	sender
	level ack.Level
}

func (s demandingSender) Ack() ack.Level { return s.level }

// The strictest of header, token and services counts. The answer says what was reached if any of them
// asks for more than the disk.
func TestStrictestAckCounts(t *testing.T) {
	const mixed = `{"service":"web"}` + "\n" + `{"service":"pay"}` + "\n"
	for name, c := range map[string]struct {
		token        ack.Level
		header, body string
		unshipped    bool
		fail         error
		status       int
		says         string
	}{
		"nobody asks":                       {status: 200, body: `{"service":"web"}`},
		"the header asks for the least":     {status: 200, header: "disk", body: `{"service":"web"}`},
		"a service asks":                    {status: 200, body: mixed, says: "shipped"},
		"a header does not lower it":        {status: 200, header: "Disk", body: mixed, says: "shipped"},
		"a header raises it":                {status: 200, header: "stored", body: mixed, says: "stored"},
		"a token asks":                      {status: 200, token: ack.Shipped, body: `{"service":"web"}`, says: "shipped"},
		"a header does not lower a token's": {status: 200, token: ack.Stored, header: "shipped", body: mixed, says: "stored"},
		"a header asks":                     {status: 200, header: "shipped", body: `{"service":"web"}`, says: "shipped"},
		"two headers in one":                {status: 400, header: "shipped, stored", body: mixed},
		"nothing is shipped":                {status: 400, header: "shipped", unshipped: true, body: `{"service":"web"}`},
		"nothing is shipped for a token":    {status: 200, token: ack.Shipped, unshipped: true, body: `{"service":"web"}`, says: "stored"},
		"nothing is shipped but stored": {
			status: 200, header: "shipped", unshipped: true, token: ack.Stored, body: mixed, says: "stored",
		},
		"the store is away":                 {status: 200, body: mixed, fail: ack.ErrDisk, says: "disk"},
		"the store is away, and it matters": {status: 503, body: mixed, fail: record.ErrUnheld},
		"the store is away, nobody asks":    {status: 200, body: `{"service":"web"}`, fail: ack.ErrDisk},
	} {
		t.Run(name, func(t *testing.T) {
			log := &ladder{least: map[string]ack.Level{"pay": ack.Shipped}, fail: c.fail}
			s := newSource(log, func(o *httpsource.Options) { o.Guard, o.Ships = demanding(c.token), !c.unshipped })
			a := send(t, s, "/ingest", c.body, "Ack", c.header)
			if a.Status != c.status || a.Header.Get("Ack") != c.says {
				t.Errorf("%d, Ack %q, %s", a.Status, a.Header.Get("Ack"), a.Error)
			}
			if a.Status == 503 && a.RetryAfter == "" {
				t.Error("503 without Retry-After")
			}
			if a.Status == 400 && c.unshipped && !strings.Contains(a.Error, "ingest.ack") {
				t.Error(a.Error)
			}
			want, _ := ack.Parse(c.says)
			if a.Status == 200 && c.fail == nil && log.reached[0] != want {
				t.Errorf("waited for %v", log.reached[0])
			}
		})
	}
}

// The answer to a stream says what all its parts have reached. Parts from before the first that asks
// for more are not waited for again.
func TestStreamOfLevels(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		says string
		last ack.Level
	}{
		"all alike":          {strings.Repeat("pay\n", 40), "shipped", ack.Shipped},
		"the last is strict": {strings.Repeat("web\n", 40) + "pay\n", "disk", ack.Shipped},
		"few before it":      {strings.Repeat("web\n", 5) + "pay\n", "shipped", ack.Shipped},
		"stricter and more":  {strings.Repeat("pay\n", 5000) + "audit\n", "shipped", ack.Stored},
		"nobody asks":        {strings.Repeat("web\n", 40), "", ack.Disk},
	} {
		log := &ladder{least: map[string]ack.Level{"pay": ack.Shipped, "audit": ack.Stored}}
		s := newSource(log, func(o *httpsource.Options) { o.Protocols = []httpsource.Protocol{parts{}} })
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(c.body))
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if got := w.Header().Get("Ack"); w.Code != http.StatusNoContent || got != c.says {
			t.Errorf("%s: %d, Ack %q", name, w.Code, got)
		}
		least := ack.Stored
		for n := range log.reached {
			least = min(least, log.reached[n])
		}
		if want, _ := ack.Parse(c.says); least != want || log.reached[len(log.reached)-1] != c.last {
			t.Errorf("%s: waited for %v at least, and for %v at last", name, least, log.reached[len(log.reached)-1])
		}
	}
	// A stream breaks off if a part does not reach its level.
	log := &ladder{least: map[string]ack.Level{"pay": ack.Shipped}, fail: errors.New("away")}
	s := newSource(log, func(o *httpsource.Options) { o.Protocols = []httpsource.Protocol{parts{}} })
	if code := upload(s, strings.Repeat("pay\n", 5000), ""); code != http.StatusServiceUnavailable {
		t.Errorf("a stream that is not shipped: %d", code)
	}
}

// While nothing gets to the level that a request needs, nothing of it is kept: else each repeat of a body
// without times would be kept once more.
func TestAwayIsRefusedBeforeTheLog(t *testing.T) {
	log := new(ladder)
	s := newSource(log, func(o *httpsource.Options) {
		o.Guard, o.Ships = demanding(ack.Disk), true
		o.Away = func(services []string, asked ack.Level) error {
			if asked == ack.Shipped || slices.Contains(services, "pay") {
				return fmt.Errorf("%w: away", record.ErrUnheld)
			}
			return nil
		}
	})
	for _, c := range []struct {
		path, header string
		status       int
	}{{"/ingest/web", "shipped", 503}, {"/ingest/pay", "", 503}, {"/ingest/web", "", 200}, {"/ingest/web", "stored", 200}} {
		before := len(log.reached)
		a := send(t, s, c.path, "a line", "Ack", c.header)
		kept := len(log.reached) - before
		if a.Status != c.status || kept != 0 && a.Status != 200 || a.Status == 503 && a.RetryAfter == "" {
			t.Errorf("%s %q: %d, Retry-After %q, %d kept, %s", c.path, c.header, a.Status, a.RetryAfter, kept, a.Error)
		}
	}
}
