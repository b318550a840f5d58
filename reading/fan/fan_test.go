package fan_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/access"
	"blobtail/internal/door"
	"blobtail/reading"
	"blobtail/reading/fan"
	"blobtail/reading/readingtest"
	"blobtail/reading/remote"
	"blobtail/reading/unflushed"
	"blobtail/serve/api"
	"blobtail/serve/loki"
)

// A fault is what a worker does in place of an answer, or with it. It reports whether it answered.
type fault func(w http.ResponseWriter, r *http.Request, answer http.Handler) bool

// status is the fault of a worker that refuses.
func status(code int) fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "no", code)
		return true
	}
}

// dies breaks the connection off before the answer.
func dies(http.ResponseWriter, *http.Request, http.Handler) bool { panic(http.ErrAbortHandler) }

// hangs answers nothing until the client goes.
func hangs(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
	<-r.Context().Done()
	return true
}

// cutter writes so many bytes and breaks the connection off.
type cutter struct {
	http.ResponseWriter
	left int
	over bool
}

func (c *cutter) Write(b []byte) (int, error) {
	if len(b) > c.left && !c.over {
		_, _ = c.ResponseWriter.Write(b[:c.left])
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		c.over = true
	}
	if c.over {
		return 0, io.ErrClosedPipe
	}
	c.left -= len(b)
	return c.ResponseWriter.Write(b)
}

// cut is the fault of an answer that breaks off in its middle.
func cut(after int) fault {
	return func(w http.ResponseWriter, r *http.Request, answer http.Handler) bool {
		c := &cutter{w, after, false}
		if answer.ServeHTTP(c, r); c.over {
			panic(http.ErrAbortHandler)
		}
		return true
	}
}

// stalls hangs in the middle of its answer.
func stalls(w http.ResponseWriter, r *http.Request, answer http.Handler) bool {
	answer.ServeHTTP(&cutter{w, 400, false}, r)
	<-r.Context().Done()
	return true
}

// other asks the worker as a server of another version would.
func other(w http.ResponseWriter, r *http.Request, answer http.Handler) bool {
	r = r.Clone(r.Context())
	q := r.URL.Query()
	if part := q.Get("part"); part != "" {
		q.Set("part", "0"+part)
	}
	r.URL.RawQuery = q.Encode()
	answer.ServeHTTP(w, r)
	return true
}

// crew is some workers over a house.
type crew struct {
	t      testing.TB
	asked  atomic.Int64 // parts
	served sync.Map     // by the number of the worker
	joints sync.Map     // the kinds of joint questions
	places []string
	failed sync.Map

	// faults decides for the n-th request; nil: all are answered.
	faults func(n int64) fault
}

// newCrew starts workers that read as the holder of a token may, or may read all.
func newCrew(t testing.TB, h *readingtest.House, workers int, faults func(n int64) fault) *crew {
	c := &crew{t: t, faults: faults}
	for n := range workers {
		c.places = append(c.places, c.serve(n, h.Reader(func(o *unflushed.Options) {
			o.Announced = &http.Client{Transport: forbidden{t}}
		}), door.Options{}))
	}
	return c
}

// told reports whether a worker failed for some reason.
func (c *crew) told(reason ...string) (found bool) {
	c.failed.Range(func(text, _ any) bool {
		found = found || strings.Contains(text.(string), strings.Join(reason, ""))
		return true
	})
	return found
}

// forbidden fails a test in which a worker asks an ingester.
type forbidden struct{ t testing.TB }

func (f forbidden) RoundTrip(r *http.Request) (*http.Response, error) {
	f.t.Errorf("a worker asks an ingester: %s", r.URL)
	return nil, io.ErrUnexpectedEOF
}

// doors guard a server.
func doors(guard door.Options) *door.Reads {
	return door.NewReads(door.ReadsOptions{Guard: door.New(guard), Log: zerolog.Nop(), Route: func(path string) door.Route {
		if strings.HasSuffix(path, "/tail") {
			return door.Route{Name: "tail", Kind: door.Tail}
		}
		return door.Route{Name: "query", Kind: door.Query}
	}})
}

// over returns a client of a server that shares its questions.
func over(t *testing.T, reader *reading.Reader, read ...string) reading.Source {
	t.Helper()
	var guard door.Options
	var o remote.Options
	if len(read) > 0 {
		var file string
		_, file, o.Token = tokenOf(t, read...)
		tokens, err := access.Open(file, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		guard.Tokens = tokens
	}
	mux, doors := http.NewServeMux(), doors(guard)
	mux.Handle(api.Prefix, api.New(api.Options{Reader: reader}))
	mux.Handle("/loki/", loki.New(loki.Options{Reader: reader}))
	srv := httptest.NewServer(doors.Wrap(mux))
	t.Cleanup(func() {
		doors.DropTails()
		srv.Close()
	})
	c, err := remote.New(srv.URL, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *crew) serve(number int, reader *reading.Reader, guard door.Options) string {
	answer := doors(guard).Wrap(api.New(api.Options{Reader: reader, Forms: "json"}))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := c.asked.Add(1)
		c.served.Store(number, true)
		if joint := r.URL.Query().Get("joint"); joint != "" {
			var fields map[string]json.RawMessage
			_ = json.Unmarshal([]byte(joint), &fields) // the worker says what is wrong
			for kind, of := range fields {
				if string(of) != "null" {
					c.joints.Store(kind, true)
				}
			}
		}
		if r.URL.Query().Get("part") == "" {
			c.t.Errorf("a worker is asked a whole question: %s", r.URL)
		}
		if c.faults != nil {
			if f := c.faults(n); f != nil && f(w, r, answer) {
				return
			}
		}
		answer.ServeHTTP(w, r)
	}))
	c.t.Cleanup(srv.Close)
	return srv.URL
}

// open returns the sharing of the crew, with parts of some bytes.
func (c *crew) open(part int64, change ...func(*fan.Options)) reading.Sharing {
	c.t.Helper()
	o := fan.Options{Part: part, Patience: 2 * time.Second, Rest: time.Millisecond}
	o.Failed = func(_ string, err error) { c.failed.Store(err.Error(), true) }
	for _, f := range change {
		f(&o)
	}
	s, err := fan.New(c.places, o)
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

// tokenOf is a token that may read some services; none: nil. The secret is its own.
func tokenOf(t testing.TB, read ...string) (_ *access.Token, file, secret string) {
	t.Helper()
	if len(read) == 0 {
		return nil, "", ""
	}
	file = filepath.Join(t.TempDir(), "tokens.yaml")
	secret, hash := access.NewSecret()
	if _, err := access.Add(file, access.Entry{ID: "reader", Hash: hash, Read: read}); err != nil {
		t.Fatal(err)
	}
	tokens, err := access.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return tokens[0], file, "reader." + secret
}

// kinds are the faults of workers, by their names.
var kinds = map[string]fault{
	"dies": dies, "429": status(429), "503": status(503), "500": status(500), "cut early": cut(300), "cut late": cut(900),
	"another version": other, "hangs": hangs, "hangs in its middle": stalls,
}

// mixed has faults by turns.
func mixed(seed uint64) func(n int64) fault {
	all := []fault{nil, nil, nil, dies, status(429), cut(200), cut(700), cut(1500), other}
	return func(n int64) fault { return all[rand.New(rand.NewPCG(seed, uint64(n))).IntN(len(all))] }
}

// A shared store passes the tests of a source, and so does a server with one, whose records are entries.
func TestSource(t *testing.T) {
	for _, workers := range []int{3, 1, 16} {
		if testing.Short() && workers != 3 {
			break
		}
		ways := map[string]func(int64) fault{"well": nil, "failing": mixed(uint64(workers)), "over a server": nil}
		for name, faults := range ways {
			t.Run(fmt.Sprint(workers, " ", name), func(t *testing.T) {
				var all atomic.Int64
				open := func(t *testing.T, h *readingtest.House, read ...string) reading.Source {
					c := newCrew(t, h, workers, faults)
					t.Cleanup(func() { all.Add(c.asked.Load()) })
					reader := h.ReaderWith(reading.Options{Sharing: c.open(500)})
					if name == "over a server" {
						return over(t, reader, read...)
					}
					token, _, _ := tokenOf(t, read...)
					return reader.For(token)
				}
				readingtest.Run(t, open)
				if all.Load() < 20 {
					t.Errorf("workers were asked for %d parts", all.Load())
				}
			})
		}
	}
}
