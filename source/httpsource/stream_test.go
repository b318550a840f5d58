package httpsource_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/source/httpsource"
)

// parts is a protocol of streams with a part for each line, which names its services.
type parts struct{}

func (parts) Name() string                                 { return "parts" }
func (parts) Exchange(r *http.Request) httpsource.Exchange { return partsExchange{} }

type partsExchange struct{}

func (partsExchange) Open() (httpsource.Intake, error) {
	return httpsource.Intake{Stream: func(r *bufio.Reader, to httpsource.StreamSink) error {
		for n := int64(1); ; n++ {
			line, err := r.ReadString('\n')
			if err != nil {
				return nil
			}
			if !to.Part([]byte(line), n) {
				return nil
			}
			for service := range strings.FieldsSeq(line) {
				to.Begin(meaning.Head{Time: noon.UnixNano() + n, Service: []byte(service)})
				if !to.Record([]byte(line), 1, 0) {
					return nil
				}
			}
		}
	}}, nil
}

func (partsExchange) Reply(_ http.Header, _ *httpsource.Result, refused *httpsource.Refusal) (int, []byte) {
	if refused != nil {
		return refused.Status, []byte(refused.Reason)
	}
	return http.StatusNoContent, nil
}

// upload sends a stream, and returns the status of the answer.
func upload(h http.Handler, body, ack string) int {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Ack", ack)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

// blobs is a log that notes which parts were waited for.
type blobs struct {
	mu              sync.Mutex
	durable, stored []bool
	services        []int
	early           int // waits for blobs before the last part
	open, most      int // services of all parts that are not stored, now and at most
	last            int // number of parts
	fail            error
}

func (b *blobs) Accept(_ context.Context, r *record.Request) (record.Receipt, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.stored)
	b.durable, b.stored, b.services = append(b.durable, false), append(b.stored, false), append(b.services, len(r.Services))
	b.open += 8 + len(r.Services)
	b.most = max(b.most, b.open)
	return record.Receipt{Wait: func(_ context.Context, stored bool) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.durable[n] = true
		if stored && !b.stored[n] {
			b.stored[n] = true
			b.open -= 8 + b.services[n]
			if len(b.stored) < b.last {
				b.early++
			}
		}
		if n == 3 {
			return b.fail
		}
		return nil
	}}, nil
}

// A stream has an answer with 2xx only if each of its parts is stored, or durable without Ack: stored.
// What is kept for that is bounded by its bytes, and a usual stream waits for no blob before its end.
func TestStreamIsWaitedFor(t *testing.T) {
	wide := strings.Join(func() (all []string) {
		for i := range 2000 {
			all = append(all, fmt.Sprint("s", i))
		}
		return all
	}(), " ")
	const mib = 1 << 20 / 32
	for name, c := range map[string]struct {
		line  string
		parts int
		early bool
	}{
		"few": {"web", 5, false}, "usual": {"web db cron", 700, false}, "many": {"web db", 5000, true}, "wide": {wide, 50, true},
	} {
		for _, ack := range []string{"", "stored"} {
			b := &blobs{last: c.parts}
			s := newSource(b, func(o *httpsource.Options) { o.Protocols = []httpsource.Protocol{parts{}} })
			a := upload(s, strings.Repeat(c.line+"\n", c.parts), ack)
			if a != http.StatusNoContent || len(b.stored) != c.parts {
				t.Fatalf("%s: %d, %d parts", name, a, len(b.stored))
			}
			for i := range b.stored {
				if !b.durable[i] || b.stored[i] != (ack != "") {
					t.Fatalf("%s, Ack %q: part %d is durable %v, stored %v", name, ack, i, b.durable[i], b.stored[i])
				}
			}
			if ack != "" && b.early > 0 != c.early {
				t.Errorf("%s: %d waits for blobs before the end", name, b.early)
			}
			if ack != "" && b.most > mib+2*(8+2000) {
				t.Errorf("%s: receipts of %d services were kept", name, b.most)
			}
		}
	}
}

// A stream is small until it has sent more: large ones that hold all their memory refuse none like it.
func TestSmallStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(&blobs{}, func(o *httpsource.Options) {
			o.Protocols, o.MaxInFlight, o.Patience = []httpsource.Protocol{parts{}}, 32<<20, time.Second
		})
		var under sync.WaitGroup
		defer under.Wait()
		for range 8 {
			pr, pw := io.Pipe()
			defer pw.Close()
			under.Go(func() {
				s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", pr))
				pr.Close()
			})
			under.Go(func() { _, _ = io.WriteString(pw, strings.Repeat("web\n", 20<<10)) })
		}
		time.Sleep(time.Minute) // some of them are refused
		if a := upload(s, "web\n", ""); a != http.StatusNoContent {
			t.Errorf("a short stream beside long ones: %d", a)
		}
	})
}

// A part that cannot be stored, or made durable, is no success, wherever it is.
func TestStreamThatFails(t *testing.T) {
	for _, n := range []int{5, 100, 6000} {
		for _, ack := range []string{"", "stored"} {
			b := &blobs{last: n, fail: errors.New("the disk is gone")}
			s := newSource(b, func(o *httpsource.Options) { o.Protocols = []httpsource.Protocol{parts{}} })
			if a := upload(s, strings.Repeat("web\n", n), ack); a != http.StatusServiceUnavailable {
				t.Errorf("%d parts, Ack %q: %d", n, ack, a)
			}
		}
	}
}

// Parts of different hours are in different batches, which are cut once a second. So a stream, and a
// body of several parts, waits for all of them at once.
func TestPartsAreWaitedForAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		path, body string
		most       time.Duration
	}{
		"stream": {"/", strings.Repeat("web\n", 200), 2 * time.Second},
		"full":   {"/", strings.Repeat("web\n", 4000), 20 * time.Second}, // more receipts than a stream keeps
		"body":   {"/ingest/web", strings.Repeat("a\n", 250_000), 2 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSource(slowBlobs{}, func(o *httpsource.Options) {
				if c.path == "/" {
					o.Protocols = []httpsource.Protocol{parts{}}
				}
			})
			r := httptest.NewRequest(http.MethodPost, c.path, strings.NewReader(c.body))
			r.Header.Set("Ack", "stored")
			begun, w := time.Now(), httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if took := time.Since(begun); w.Code >= 300 || took < time.Second || took > c.most {
				t.Errorf("%s: %d after %v", name, w.Code, took)
			}
		})
	}
}

// slowBlobs stores each request within a second after somebody begins to wait for it.
type slowBlobs struct{}

func (slowBlobs) Accept(context.Context, *record.Request) (record.Receipt, error) {
	return record.Receipt{Wait: func(_ context.Context, stored bool) error {
		if stored {
			time.Sleep(time.Second)
		}
		return nil
	}}, nil
}
