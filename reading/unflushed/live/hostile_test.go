package live_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/internal/lease"
	"blobtail/reading/unflushed/live"
	"blobtail/record"
)

// script answers as id with a text.
func script(id, text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers(w.Header(), id)
		io.WriteString(w, text)
	})
}

// A reader rejects an invalid line and all lines behind it. It accepts the lines before
// it, and all records of the other ingesters. The same holds for answers from a peer
// and to a reader.
func TestLies(t *testing.T) {
	one, two, three := entry(10, 2, 0, "web"), entry(20, 2, 1, "web"), entry(30, 2, 2, "web")
	good := wire(one) + wire(two)
	for _, c := range []struct {
		name, text string
		records    int // good ones
		reason     string
	}{
		{"nothing", "", 0, "it ends after 0 records"},
		{"no end", good, 2, "it ends after 2 records"},
		{"cut in a line", good[:len(good)-5], 1, "it ends after 1 records"},
		{"garbage", wire(one) + "\x00\xff\n" + wire(two) + "end 2 0 0\n", 1, "a line that is none"},
		{"empty line", wire(one) + "\nend 1 0 0\n", 1, "a line that is none"},
		{"wrong order", wire(two) + wire(one) + "end 2 0 0\n", 1, "out of order"},
		{"wrong order of indexes", wire(record.Entry{ID: two.ID, Line: one.Line}) + wire(one) + "end 2 0 0\n", 1, "out of order"},
		{"upper case", strings.ToUpper(wire(record.Entry{ID: record.ID{Origin: record.Origin{0xab}}, Line: one.Line})[:32]) + wire(one)[32:], 0, "no origin"},
		{"no hex", "x" + wire(one)[1:], 0, "no origin"},
		{"no index", wire(one)[:33] + "x" + wire(one)[34:], 0, "no index"},
		{"signed index", wire(one)[:33] + "+0" + wire(one)[34:], 0, "no index"},
		{"large index", wire(one)[:33] + "4294967296" + wire(one)[34:], 0, "no index"},
		{"no line", wire(one)[:34] + "\n", 0, "no index"},
		{"not canonical", wire(one)[:35] + `{"msg":"x"}` + "\n", 0, "no canonical line"},
		{"no time", strings.Replace(wire(one), "T15", "T99", 1), 0, "no canonical line"},
		{"not closed", strings.Replace(wire(one), "\"}\n", "\n", 1), 0, "no canonical line"},
		{"another service", wire(entry(1, 1, 1, "db")), 0, "a service that was not asked for"},
		{"no service", strings.Replace(wire(one), `"web"`, `"../x"`, 1), 0, "a service that was not asked for"},
		{"another time", wire(entry(3600, 1, 1, "web")), 0, "a time that was not asked for"},
		{"wrong count", good + "end 3 0 0\n", 2, "2 records came, and it sent 3"},
		{"strange end", good + "end 2 0\n", 2, "a line that is none"},
		{"more answered than asked", good + "end 2 0 1\n", 2, "a line that is none"},
		{"missing without a word", good + "end 2 1 0\n", 2, "a line that is none"},
		{"missing nobody", good + "missing x y z\nend 2 1 0\n", 2, "a line that is none"},
		{"record behind the end", wire(one) + "missing aaaaaaaa - gone\n" + wire(two) + "end 2 1 0\n", 1, "a record behind the end"},
		{"huge line", wire(one) + strings.Repeat("x", 9<<20), 1, "a line of more than"},
		{"error", good + "error all is\trotten\n", 2, "all is rotten"},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := serve(t, script("bbbbbbbb", c.text))
			honest := newIngester(t, "cccccccc")
			honest.log.add(entry(0, 3, 0, "web"), two, three)
			a := newIngester(t, "aaaaaaaa", peer(lease.Ingester{ID: "bbbbbbbb", Address: url, Host: "logs-b"}), honest.peer())
			a.log.add(entry(15, 1, 0, "web"))
			q := live.Query{Service: "web", From: start, To: start + 3600e9}

			got, _, err := read(t, url, q)
			var cut *live.CutError
			if !errors.As(err, &cut) && c.name != "error" || err == nil || !strings.Contains(err.Error(), c.reason) || len(got) != c.records {
				t.Errorf("a reader gets %d records, %v", len(got), err)
			}
			same(t, got, got) // they are as they are written

			merge, _, err := read(t, a.url, q)
			m := incomplete(t, err, 2, 1)
			if m.ID != "bbbbbbbb" || m.Host != "logs-b" || !strings.Contains(m.Reason, c.reason) || m.Damaged != (c.name == "error") {
				t.Errorf("%+v", m)
			}
			same(t, merge, merged(got, a.log.entries, honest.log.entries))
		})
	}
}

// An answer ends at its end line. A peer that goes on sending bytes behind it, without a
// newline, delays nobody.
func TestDripsBehindTheEnd(t *testing.T) {
	record := entry(10, 2, 0, "web")
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers(w.Header(), "bbbbbbbb")
		io.WriteString(w, wire(record)+"end 1 0 0\nx")
		w.(http.Flusher).Flush()
		<-r.Context().Done() // the reader closes the answer
	}))
	if got, _, err := read(t, url, live.Query{Service: "web", From: start, To: start + 3600e9}); err != io.EOF || len(got) != 1 {
		t.Errorf("a reader gets %d records, %v", len(got), err)
	}
}

// Something other than an ingester at an address is detected.
func TestForeign(t *testing.T) {
	html := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<html>welcome")
	})
	header := func(name, value string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			headers(w.Header(), "bbbbbbbb")
			w.Header().Set(name, value)
			io.WriteString(w, "end 0 0 0\n")
		})
	}
	status := func(code int, text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, text, code) })
	}
	for _, c := range []struct {
		name    string
		h       http.Handler
		foreign bool
		want    string
	}{
		{"a page", html, true, `it answers 200 with "text/html"`},
		{"an older version", http.NotFoundHandler(), true, "it does not know /live/ (404)"},
		{"another method", status(http.StatusMethodNotAllowed, ""), true, "it does not know /live/ (405)"},
		{"a redirect", http.RedirectHandler("http://127.0.0.1:1/", http.StatusFound), true, "it sends elsewhere (302), which is not followed"},
		{"text", header("Blobtail-Ingester", ""), true, "does not say which ingester"},
		{"no process", header("Blobtail-Process", ""), true, "does not say of which start"},
		{"process", header("Blobtail-Process", "0123456"), true, "does not say of which start"},
		{"store", header("Blobtail-Store", "0123456789ABCDEF0123456789abcdef"), true, "and which store it is"},
		{"no snapshots", header("Blobtail-Snapshots", ""), true, "its list of ingesters cannot be read"},
		{"snapshots", header("Blobtail-Snapshots", "bbbbbbbb.01234567,bbbbbbbb.76543210"), true, "its list of ingesters cannot be read"},
		{"age of the list", header("Blobtail-Rows-Age", "-1"), true, "the age of its list of ingesters cannot be read"},
		{"positions", header("Blobtail-Positions", "x.y"), true, "its positions cannot be read"},
		{"behind", header("Blobtail-Behind", "x"), true, `"x" in it is no ingester`},
		{"busy", status(http.StatusServiceUnavailable, "64 answers\x1b are under way"), false, "does not answer (503): 64 answers? are under way"},
		{"another one", script("dddddddd", "end 0 0 0\n"), false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := serve(t, c.h)
			a, err := client(t, url).Ask(t.Context(), all("web"))
			var refused *live.NoAnswerError
			if c.want == "" {
				c.want = "at its address " + url + " ingester dddddddd answers"
				a.Close()
			} else if !errors.As(err, &refused) || strings.HasPrefix(err.Error(), "no ingester's live records at "+url) != c.foreign || !strings.Contains(err.Error(), c.want) {
				t.Errorf("a reader gets %v", err)
			}
			b := newIngester(t, "aaaaaaaa", peer(lease.Ingester{ID: "bbbbbbbb", Address: url}))
			_, _, err = read(t, b.url, all("web"))
			if m := incomplete(t, err, 1, 0); !strings.Contains(m.Reason, c.want) {
				t.Errorf("%+v", m)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	l.Close()
	_, err = client(t, url).Ask(t.Context(), all("web"))
	var gone *live.NoAnswerError
	if !errors.As(err, &gone) || gone.Status != 0 || !strings.Contains(err.Error(), "no ingester can be reached at "+url) || !strings.Contains(err.Error(), "connection refused") || strings.Contains(err.Error(), "Get ") {
		t.Errorf("%v", err)
	}
	a := newIngester(t, "aaaaaaaa", peer(lease.Ingester{ID: "bbbbbbbb", Address: url}), peer(lease.Ingester{ID: "cccccccc", Address: "ftp://x"}))
	_, _, err = read(t, a.url, all("web"))
	var lacks *live.IncompleteError
	if !errors.As(err, &lacks) || len(lacks.Missing) != 2 || !strings.Contains(err.Error(), "0 of 2 other ingesters answered") ||
		!strings.Contains(err.Error(), "no URL of an ingester") {
		t.Errorf("%v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client(t, a.url).Ask(ended, all("web")); !errors.Is(err, context.Canceled) || errors.As(err, &gone) {
		t.Errorf("a reader that gave up: %v", err)
	}
}

// An invalid URL is refused at once. No message repeats a URL that may hold a secret.
func TestBase(t *testing.T) {
	for base, want := range map[string]string{
		"http://u:secret@h:1":   "a user or a password",
		"http://secret\x7f@h:1": "cannot be read",
		"127.0.0.1:8514":        "cannot be read",
		"localhost:8514":        "no URL of an ingester: want one like http://",
		"ftp://h":               "no URL of an ingester",
		"http://":               "names no host",
		"http://h?x=secret":     `"http://h" has more behind it than a host`,
		"http://h#secret":       "more behind it than a host",
		"ftp://h?secret":        "no URL of an ingester",
		"u:secret@h":            "a user or a password",
		"":                      "no URL of an ingester",
	} {
		_, err := live.NewClient(base, live.ClientOptions{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", base, err)
		}
	}
	// One behind a proxy, with a path.
	a := newIngester(t, "aaaaaaaa")
	a.log.add(entry(1, 1, 0, "web"))
	mux := http.NewServeMux()
	mux.Handle("GET /logs/live/{service}", a.h)
	s := &http.Server{Handler: mux}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	defer s.Close()
	if got, _, err := read(t, "http://"+l.Addr().String()+"/logs/", all("web")); err != io.EOF || len(got) != 1 {
		t.Errorf("%d records, %v", len(got), err)
	}
}

// Both ends refuse an invalid question, and name a valid one.
func TestBadQuestions(t *testing.T) {
	a := newIngester(t, "aaaaaaaa")
	for target, want := range map[string]string{
		"web?from=yesterday":          `from: "yesterday": want Unix nanoseconds, or RFC 3339 like 2026-11-20T15:04:05Z`,
		"web?to=9999-01-01T00:00:00Z": "want Unix nanoseconds",
		"web?newest=0":                "want a number from 1 to 100000",
		"web?newest=100001":           "want 1 to 100000",
		"web?newest=5&follow=1":       "a follower gets all",
		"web?follow=yes":              `follow: "yes": want 1`,
		"web?peers=yes":               `peers: "yes": want no`,
		"web?after=0badcafe.1":        "only a follower has positions; add follow=1",
		"web?follow=1&after=0badcafe": "8 hex digits, a dot, and a hex number",
		"web?from=1&from=2":           "from: it is there twice",
		"web?since=1h":                "since: there is no such parameter",
		"web?a=%zz":                   "the parameters cannot be read",
		"web-%5B?":                    "it is no glob",
		"a%2Fb":                       "no service can be called so",
		strings.Repeat("x", 5000):     "at most 4096 bytes",
	} {
		resp, err := http.Get(a.url + "/live/" + target)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), want) || strings.Count(string(text), "\n") != 1 {
			t.Errorf("%s: %d %s", target, resp.StatusCode, text)
		}
	}
	for target, want := range map[string]string{
		"web?from=2026-11-20T15:00:01Z&to=1795100402000000000": "end 0 0 0\n",
		"web?to=2026-11-20T16:00:00%2B01:00&peers=no":          "end 0 0 0\n",
		"%2A?follow=1&after=now":                               "end 0 0 0\n",
	} {
		resp, err := http.Get(a.url + "/live/" + target)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK || string(text) != want {
			t.Errorf("%s: %d %s", target, resp.StatusCode, text)
		}
	}
	for _, q := range []live.Query{all(""), all(".."), all("a/b"), all("[x"), {Service: "web", Newest: -1}, {Service: "web", Now: true}} {
		if _, err := client(t, a.url).Ask(t.Context(), q); err == nil {
			t.Errorf("%+v is asked", q)
		}
	}
	for _, method := range []string{http.MethodHead, http.MethodPost} {
		req, _ := http.NewRequestWithContext(t.Context(), method, a.url+"/live/web", nil)
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %v, %v", method, resp, err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestPositions(t *testing.T) {
	p := live.Positions{"bbbbbbbb": 1<<64 - 1, "0badcafe": 0x1a2b}
	if s := p.String(); s != "0badcafe.1a2b,bbbbbbbb.ffffffffffffffff" {
		t.Error(s)
	}
	for _, bad := range []string{",", "0badcafe", "0badcafe.", "0badcafe.01", "0badcafe.0x1", "0badcafe.1,0badcafe.1", "bbbbbbbb.1,0badcafe.1",
		"0BADCAFE.1", "0badcaf.1", "0badcafe.1,", "0badcafe.10000000000000000", "0badcafe.1A"} {
		if p, err := live.ParsePositions(bad); err == nil || p != nil {
			t.Errorf("%q: %v", bad, p)
		}
	}
	var many []string
	for i := range 1025 {
		many = append(many, fmt.Sprintf("%08x.1", i))
	}
	if _, err := live.ParsePositions(strings.Join(many, ",")); err == nil {
		t.Error("any number of positions is read")
	}
	if p, err := live.ParsePositions(strings.Join(many[:1024], ",")); err != nil || len(p) != 1024 {
		t.Error(err)
	}
}

func FuzzParsePositions(f *testing.F) {
	for _, s := range []string{"", "0badcafe.1a2b", "0badcafe.0,bbbbbbbb.ffffffffffffffff", "0badcafe.01", "now", ",", "0badcafe.1,0badcafe.1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := live.ParsePositions(s)
		if err == nil && p.String() != s {
			t.Errorf("%q becomes %q", s, p.String())
		}
	})
}

// body is a connection that answers with a text.
type body string

func (b body) RoundTrip(r *http.Request) (*http.Response, error) {
	header := http.Header{}
	headers(header, "bbbbbbbb")
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(b))), Request: r, Header: header}, nil
}

// The records read from an answer are the ones that were written, and reading always
// ends.
func FuzzAnswer(f *testing.F) {
	good := wire(entry(1, 1, 0, "web")) + wire(entry(1, 1, 0, "db")) + wire(entry(2, 1, 7, "_rejected"))
	for _, s := range []string{"", good, good + "end 3 0 0\n", good + "missing aaaaaaaa - gone\nend 3 2 1\n", good + "error rotten\n",
		"missing - - the table cannot be read\nend 0 1 0\n", "damaged aaaaaaaa h x\nend 0 1 0\n", "\n", "end 0 0 0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := live.NewClient("http://h", live.ClientOptions{HTTP: &http.Client{Transport: body(s)}})
		if err != nil {
			t.Fatal(err)
		}
		q := all("*")
		if strings.Contains(s, `"_`) {
			q = all("_*")
		}
		a, err := c.Ask(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		var text strings.Builder
		var last record.Entry
		for n := 0; ; n++ {
			e, err := a.Next()
			if err != nil {
				var cut *live.CutError
				if err == io.EOF && !strings.HasPrefix(s, text.String()+fmt.Sprintf("end %d ", n)) {
					t.Errorf("%q is whole", s)
				} else if errors.As(err, &cut) && len(a.Positions()) > 0 {
					t.Error("positions of what was cut")
				}
				break
			}
			if n > 0 && e.Compare(&last) < 0 {
				t.Error("out of order")
			}
			last = e
			last.Line = slices.Clone(e.Line)
			text.WriteString(wire(e))
		}
		if !strings.HasPrefix(s, text.String()) {
			t.Errorf("%q becomes %q", s, text.String())
		}
	})
}

// Records may have any time that fits, even the first and the last. An open end leaves
// none of them out: one such record must not cut every answer.
func TestEndsOfTime(t *testing.T) {
	b := newIngester(t, "bbbbbbbb")
	a := newIngester(t, "aaaaaaaa", b.peer())
	var all []record.Entry
	for i, ns := range []int64{math.MinInt64, 0, math.MaxInt64} {
		e := entry(0, byte(i+1), 0, "web")
		e.Time = ns
		e.Line = fmt.Appendf(nil, `{"ts":"%s","level":"info","service":"web","msg":"%d"}`+"\n", record.AppendTime(nil, ns), i)
		all = append(all, e)
	}
	a.log.add(all[:2]...)
	b.log.add(all[2])
	got, _, err := read(t, a.url, live.Query{Service: "web", From: math.MinInt64, To: math.MaxInt64})
	if err != io.EOF {
		t.Fatal(err)
	}
	same(t, got, all)
}

// A question that ends in a panic, which the server survives, holds no part of the log.
func TestPanicLetsGo(t *testing.T) {
	in := newIngesterWith(t, "aaaaaaaa", live.Options{
		Peers: roll([]lease.Ingester{newIngester(t, "bbbbbbbb").peer()}, nil),
		HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodHead { // a ping, from a goroutine of its own
				return nil, io.EOF
			}
			panic(http.ErrAbortHandler)
		})},
	})
	var gone *live.NoAnswerError
	if _, err := client(t, in.url).Ask(t.Context(), all("web")); !errors.As(err, &gone) || gone.Status != 0 {
		t.Errorf("%v", err)
	}
	in.log.lastAsked() // it was asked
	if n := in.log.held.Load(); n != 0 {
		t.Errorf("%d snapshots are held", n)
	}
}

// An ingester that adopts another while it lists the rows has the records of that one in its answer: the
// row may say already that nobody has to ask there.
func TestSnapshotBehindList(t *testing.T) {
	var in *ingester
	e := entry(0, 1, 0, "web")
	in = newIngesterWith(t, "aaaaaaaa", live.Options{Peers: func(context.Context, bool) (live.Roll, error) {
		time.Sleep(20 * time.Millisecond)
		in.log.add(e)
		return live.Roll{Now: time.Now(), Listed: time.Now()}, nil
	}})
	got, _, err := read(t, in.url, all("web"))
	if err != io.EOF {
		t.Fatal(err)
	}
	same(t, got, []record.Entry{e})
}
