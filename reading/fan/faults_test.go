package fan_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/access"
	"blobtail/internal/dev/testkit/box"
	"blobtail/internal/door"
	"blobtail/reading"
	"blobtail/reading/fan"
	"blobtail/reading/readingtest"
	"blobtail/reading/remote"
	"blobtail/reading/unflushed"
	"blobtail/storage/storagetest"
)

// tries is how often a question is asked until a worker has a part of it: the asker may be faster.
const tries = 100

// hours fills a house with records of some hours, of one service.
func hours(t *testing.T, n int) *readingtest.House {
	h := readingtest.New(t, 1)
	for hour := range n {
		var lines []readingtest.Line
		for i := range 40 {
			at := noon.Add(time.Duration(hour)*time.Hour + time.Duration(i/4)*time.Minute)
			msg := fmt.Sprintf("m%d-%d %s", hour, i, strings.Repeat("x", 50))
			lines = append(lines, readingtest.Line{Time: at, Service: "web", Msg: msg})
		}
		h.Send(0, lines...)
		h.Flush()
	}
	return h
}

func all(services ...string) reading.Ask {
	return reading.Ask{Services: services, Range: reading.Always()}
}

// Each fault of all workers leaves the answer as it is, forwards and backwards.
func TestFaults(t *testing.T) {
	for name, f := range kinds {
		t.Run(name, func(t *testing.T) {
			h := hours(t, 4)
			c := newCrew(t, h, 2, func(n int64) fault { return f })
			o := func(o *fan.Options) { o.Patience = 200 * time.Millisecond }
			alone, shared := h.Reader().For(nil), h.ReaderWith(reading.Options{Sharing: c.open(300, o)}).For(nil)
			for what := 0; what < 4 || what < tries && !c.told(); what++ {
				for _, reverse := range []bool{false, true} {
					a := all("*")
					a.Reverse, a.Texts = reverse, []string{"m"}
					if want, got := said(t, alone, a, what%4-1), said(t, shared, a, what%4-1); got != want {
						t.Errorf("%d, reverse %v: %s\nalone: %s", what, reverse, differ(got, want), differ(want, got))
					}
				}
			}
			if !c.told() {
				t.Errorf("no fault was told, of %d answers", c.asked.Load())
			}
		})
	}
}

// A question of one hour of one service asks nobody, and so does one that reads little or has a limit that
// its first blobs reach.
func TestSmall(t *testing.T) {
	h := hours(t, 6)
	c := newCrew(t, h, 2, nil)
	one := all("web")
	one.Range = reading.Range{From: noon.UnixNano(), To: noon.Add(time.Hour).UnixNano()}
	limited, first, two, oldest := all("web"), all("web"), all("web"), all("web")
	limited.Limit, first.First, two.Limit, oldest.First = 3, 3, 70, 70
	requests := func(part int64, shared bool, a reading.Ask) int64 {
		var n atomic.Int64
		o := reading.Options{}
		if shared {
			o.Sharing = c.open(part)
		}
		h.Faults(func(op storagetest.Op, key string) (f storagetest.Fault) {
			reads := []storagetest.Op{storagetest.Get, storagetest.List, storagetest.Stat, storagetest.Dirs}
			if !strings.Contains(key, "ingesters") && slices.Contains(reads, op) {
				n.Add(1) // ingesters ask for other things
			}
			return f
		})
		defer h.Faults(nil)
		said(t, h.ReaderWith(o).For(nil), a, 0)
		return n.Load()
	}
	for _, q := range []struct {
		part int64
		ask  reading.Ask
	}{{100, one}, {1 << 20, all("web")}, {100, limited}, {100, first}, {100, two}, {100, oldest}} {
		if alone, shared := requests(q.part, false, q.ask), requests(q.part, true, q.ask); shared > alone {
			t.Errorf("%d requests, and %d alone, of %+v", shared, alone, q.ask)
		}
	}
	if n := c.asked.Load(); n > 0 {
		t.Errorf("workers were asked for %d parts", n)
	}
	for part, want := range map[int64]string{100: "", 1 << 20: "less than 2MiB of blobs"} {
		x, _, err := h.ReaderWith(reading.Options{Sharing: c.open(part)}).For(nil).Explain(t.Context(), all("web"))
		if err != nil || x.Alone != want || (x.Parts > 1) != (want == "") || want == "" && x.Workers != 2 || x.Raw == 0 {
			t.Errorf("%d parts with %d workers, %q, of %d bytes: %v", x.Parts, x.Workers, x.Alone, x.Raw, err)
		}
	}
}

// What a question takes is told before, unless a limit may end it.
func TestBegins(t *testing.T) {
	h := hours(t, 6)
	c := newCrew(t, h, 2, nil)
	var told []reading.Explanation
	var mu sync.Mutex
	s := h.ReaderWith(reading.Options{Sharing: c.open(300, func(o *fan.Options) {
		o.Begins = func(d *reading.Division, workers int) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, d.Explain(workers))
		}
	})}).For(nil)
	limited := all("web")
	limited.Limit = 200
	for try := 0; try < tries && len(told) == 0; try++ {
		said(t, s, limited, 0)
		said(t, s, all("web"), 0)
	}
	x, _, err := s.Explain(t.Context(), all("web"))
	for _, of := range told {
		if err != nil || of.Workers != 2 || of.Parts != x.Parts || of.Blobs != x.Blobs || of.Bytes != x.Stored || of.Raw != x.Raw {
			t.Errorf("%+v, and --explain tells %+v (%v)", of, x, err)
		}
	}
	if len(told) == 0 {
		t.Error("no question was told")
	}
}

// A worker that may not read all of the question, or reads another store, reads nothing.
func TestRefused(t *testing.T) {
	h := hours(t, 3)
	h.Send(0, readingtest.Line{Time: noon, Service: "api", Msg: "hidden"})
	h.Flush()
	_, file, secret := tokenOf(t, "web")
	tokens, err := access.Open(file, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	of := func(id string) *reading.Reader {
		return h.Reader(func(o *unflushed.Options) { o.Store = func(context.Context) (string, error) { return id, nil } })
	}
	for name, c := range map[string]struct {
		reader *reading.Reader
		guard  door.Options
		want   string
	}{
		"token": {h.Reader(), door.Options{Tokens: tokens}, "may not read *"},
		"store": {of("00000000000000000000000000000001"), door.Options{}, "another store"},
		"none":  {of(""), door.Options{}, "another store"},
	} {
		t.Run(name, func(t *testing.T) {
			crew := &crew{t: t}
			crew.places = []string{crew.serve(0, c.reader, c.guard)}
			s := h.ReaderWith(reading.Options{Sharing: crew.open(200, func(o *fan.Options) { o.Remote.Token = secret })}).For(nil)
			for try := 0; try < tries && !crew.told(c.want); try++ {
				if got, want := said(t, s, all("*"), 0), said(t, h.Reader().For(nil), all("*"), 0); got != want {
					t.Errorf("%s\nalone: %s", differ(got, want), differ(want, got))
				}
			}
			if !crew.told(c.want) {
				t.Errorf("the reason %q was not told", c.want)
			}
			web := said(t, s, all("web"), 0)
			if want := said(t, h.Reader().For(nil), all("web"), 0); web != want {
				t.Errorf("%s\nalone: %s", differ(web, want), differ(want, web))
			}
		})
	}
	token := fan.Options{Remote: remote.Options{Token: "a.b"}}
	if _, err := fan.New([]string{"http://example.com"}, token); !errors.As(err, new(*remote.PlainError)) {
		t.Errorf("a token goes without TLS: %v", err)
	}
}

// The holder of a token that reads one service gets that one, by workers that may read all.
func TestNarrow(t *testing.T) {
	h := hours(t, 6)
	for hour := range 6 {
		h.Send(0, readingtest.Line{Time: noon.Add(time.Duration(hour)*time.Hour + time.Minute), Service: "api", Msg: "hidden"})
	}
	h.Flush()
	token, _, _ := tokenOf(t, "web")
	c := newCrew(t, h, 2, nil)
	s := h.ReaderWith(reading.Options{Sharing: c.open(200)}).For(token)
	asks := []reading.Ask{all("*"), all("web", "api"), {LogQL: `{service=~".+"} |= "m"`, Range: reading.Always()}}
	for try := 0; try < 3*tries && (try < 30 || c.asked.Load() == 0); try++ {
		a := asks[try%3]
		got, want := said(t, s, a, -(try&1)), said(t, h.Reader().For(token), a, -(try&1))
		if got != want || strings.Contains(got, "hidden") {
			t.Errorf("%s\nalone: %s", differ(got, want), differ(want, got))
		}
	}
	if c.asked.Load() == 0 {
		t.Error("no worker was asked")
	}
}

// doubling writes one line twice.
type doubling struct{ http.ResponseWriter }

func (d doubling) Write(b []byte) (int, error) {
	for line := range bytes.Lines(b) {
		if bytes.Contains(line, []byte("m0-1 ")) {
			line = append(bytes.Clone(line), line...)
		}
		if _, err := d.ResponseWriter.Write(line); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// A worker that could not read a blob before its answer broke off leaves no answer that looks whole,
// even if it has shown another record twice, as one does that cannot read where records came from.
func TestBrokenIncomplete(t *testing.T) {
	for name, twice := range map[string]bool{"lost": false, "lost, and another twice": true} {
		t.Run(name, func(t *testing.T) {
			h := hours(t, 2)
			c := newCrew(t, h, 1, func(int64) fault {
				return func(w http.ResponseWriter, r *http.Request, answer http.Handler) bool {
					q := r.URL.Query()
					q.Set("without", "m0-3 ") // as a worker that does not find one, and breaks off before it tells
					if r.URL.RawQuery = q.Encode(); !twice {
						return cut(800)(w, r, answer)
					}
					return cut(800)(w, r, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						answer.ServeHTTP(doubling{w}, r)
					}))
				}
			})
			want := said(t, h.Reader().For(nil), all("*"), 0)
			for range 10 * tries {
				s := h.ReaderWith(reading.Options{Sharing: c.open(400)}).For(nil) // of workers that do not rest
				text := said(t, s, all("*"), 0)
				switch {
				case strings.Contains(text, "complete false"):
					if !strings.Contains(text, "from 2026-11-20T12") && !strings.Contains(text, "to 2026-11-20T12") {
						t.Errorf("the problem names no hour: %s", text)
					}
					return
				case text != want:
					t.Fatalf("complete, and\n%s\nalone:\n%s", differ(text, want), differ(want, text))
				}
			}
			t.Error("no answer of the worker was cut in its lines")
		})
	}
}

// If nobody answers, the outcome names what is missing.
func TestNobody(t *testing.T) {
	h := hours(t, 3)
	c := newCrew(t, h, 1, func(int64) fault { return dies })
	s := h.ReaderWith(reading.Options{Sharing: c.open(300)}).For(nil)
	broken := errors.New("the disk is gone")
	h.Faults(func(op storagetest.Op, key string) (f storagetest.Fault) {
		if op != storagetest.List && strings.Contains(key, "/1300/") {
			f.Before = broken
		}
		return f
	})
	defer h.Faults(nil)
	out, err := s.Count(t.Context(), reading.Ask{Services: []string{"*"}, Range: reading.Always(), Texts: []string{"m"}})
	if err != nil || out.Complete() || out.Records != 80 || !strings.Contains(out.Problems()[0].Error(), "/1300/") {
		t.Errorf("%v, %d records, %v", err, out.Records, out.Problems())
	}
}

// All addresses of a name are workers, and those that come later are too.
func TestNames(t *testing.T) {
	h := hours(t, 4)
	c := newCrew(t, h, 2, nil)
	var ports []string
	for _, place := range c.places {
		u, err := url.Parse(place)
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, u.Port())
	}
	looked := 0
	c.places = []string{"dns+http://localhost:" + ports[0]}
	sharing := c.open(200, func(o *fan.Options) {
		o.Lookup = func(_ context.Context, name string) ([]string, error) {
			if looked++; name != "localhost" {
				t.Errorf("the addresses of %s are asked for", name)
			}
			return []string{"127.0.0.1"}, nil
		}
	})
	s := h.ReaderWith(reading.Options{Sharing: sharing}).For(nil)
	for try := 0; try < tries && c.asked.Load() == 0; try++ {
		said(t, s, all("*"), 0)
	}
	if _, ok := c.served.Load(0); !ok || looked != 1 {
		t.Errorf("the worker of the name was asked %v, after %d look-ups", ok, looked)
	}
	if _, err := fan.New([]string{"dns+https://workers"}, fan.Options{}); err == nil || !strings.Contains(err.Error(), "port") {
		t.Errorf("a name without a port: %v", err)
	}
}

// A worker counts the age of the whole question, and answers no part of another version.
func TestPart(t *testing.T) {
	h := hours(t, 2)
	c := &crew{t: t}
	place := c.serve(0, h.Reader(), door.Options{})
	for part, want := range map[string]string{
		"3." + box.StoreID + ".1000":                  `"complete":true`,
		"3." + box.StoreID + ".3600000":               `stopped after 30m0s`,
		"1." + box.StoreID + ".1000":                  `of another version`,
		"3." + strings.Repeat("0", 32) + ".1000":      `another store`,
		"3." + box.StoreID + ".-1":                    `"status":400`,
		"3." + box.StoreID:                            `"status":400`,
		"3." + box.StoreID + ".1000&service=nosuch":   `"complete":true`,
		"3." + box.StoreID + ".1000&from=2027-01-01":  `"records":0`,
		"3." + box.StoreID + ".1000&live=off&fold=1":  `"warnings":[]`,
		"3." + box.StoreID + ".1000&live=only&fold=1": `"records":80`,
	} {
		resp, err := http.Get(place + "/api/v1/records?service=web&form=events&limit=0&text=m&part=" + part)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(body), want) {
			t.Errorf("part=%s: %s, not %s", part, body, want)
		}
	}
}
