package loki_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"blobtail/internal/dev/testkit"
	"blobtail/reading/readingtest"
)

// tails plays a test with ingesters and a server, in virtual time.
// With tokens, its doors ask for them.
func tails(t *testing.T, ingesters int, play func(t *testing.T, h *readingtest.House, p *testkit.Pipes), tokens ...string) {
	synctest.Test(t, func(t *testing.T) {
		h := readingtest.New(t, ingesters)
		p := testkit.NewPipes(nil)
		w := inhabited(t, h)
		if len(tokens) > 0 {
			w.guarded(tokens...)
		}
		server := &http.Server{Handler: w.api}
		ended := make(chan error)
		go func() { ended <- server.Serve(p) }()
		play(t, h, p)
		_ = server.Close()
		<-ended
		for n := range ingesters { // before the bubble ends
			if h.Running(n) {
				h.Kill(n)
			}
		}
	})
}

// A listener is the client of one tail.
type listener struct {
	t     *testing.T
	conn  *websocket.Conn
	pings atomic.Int64
}

// listen opens a tail. It begins when the server follows.
func listen(t *testing.T, p *testkit.Pipes, params ...string) *listener {
	t.Helper()
	l := &listener{t: t}
	form := url.Values{"query": {`{service_name="web"}`}}
	for i := 0; i < len(params); i += 2 {
		form.Set(params[i], params[i+1])
	}
	header := as(form.Get("as"), nil)
	if flags := form.Get("flags"); flags != "" {
		header.Set("X-Loki-Response-Encoding-Flags", flags)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: p.Dial, DisableKeepAlives: true}}
	conn, _, err := websocket.Dial(t.Context(), "ws://example.com/loki/api/v1/tail?"+form.Encode(), &websocket.DialOptions{
		HTTPClient: client,
		HTTPHeader: header,
		OnPingReceived: func(context.Context, []byte) bool {
			l.pings.Add(1)
			return true
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(-1)
	l.conn = conn
	time.Sleep(time.Second)
	return l
}

func (l *listener) close() { _ = l.conn.CloseNow() }

// frame reads the next frame, to the byte.
func (l *listener) frame() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	kind, text, err := l.conn.Read(ctx)
	if err == nil && kind != websocket.MessageText {
		l.t.Errorf("a frame of the type %v", kind)
	}
	return string(text), err
}

// message is a frame as clients decode it.
type message struct {
	Streams []struct {
		Stream map[string]string `json:"stream"`
		Values [][]string        `json:"values"`
	} `json:"streams"`
	Dropped []any `json:"dropped_entries"`
}

// lines reads frames until it has so many lines.
func (l *listener) lines(n int) (lines []string) {
	l.t.Helper()
	for len(lines) < n {
		text, err := l.frame()
		if err != nil {
			l.t.Fatalf("%v, after %d lines", err, len(lines))
		}
		some := l.decode(text)
		if len(some) == 0 || len(some) > 100 {
			l.t.Errorf("%d lines in a frame", len(some))
		}
		lines = append(lines, some...)
	}
	return lines
}

func (l *listener) decode(text string) (lines []string) {
	l.t.Helper()
	var m message
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		l.t.Fatalf("%v: %s", err, text)
	}
	if m.Dropped == nil || len(m.Dropped) > 0 {
		l.t.Errorf("dropped are %v", m.Dropped)
	}
	for _, s := range m.Streams {
		for _, v := range s.Values {
			if len(v) != 2 {
				l.t.Errorf("a value with %d elements: %s", len(v), text)
			}
			lines = append(lines, v[1])
		}
	}
	return lines
}

// dropped checks that the connection ends without a closing frame.
func (l *listener) dropped(within time.Duration) {
	l.t.Helper()
	begun := time.Now()
	for {
		_, err := l.frame()
		if err == nil {
			continue
		}
		if status := websocket.CloseStatus(err); status != -1 || errors.Is(err, context.DeadlineExceeded) {
			l.t.Errorf("the tail ends with %v", err)
		}
		if took := time.Since(begun); took > within {
			l.t.Errorf("the tail ends after %v, and not within %v", took, within)
		}
		return
	}
}

// many are some records, named by their number.
func many(from, to int) (all []readingtest.Line) {
	for i := from; i < to; i++ {
		all = append(all, readingtest.Line{Service: "web", Msg: fmt.Sprintf("m%d", i), Time: time.Now().Add(time.Duration(i))})
	}
	return all
}

// names checks that lines are those of records, each once and in order.
func names(t *testing.T, got []string, from, to int) {
	t.Helper()
	want := []string{}
	for i := from; i < to; i++ {
		want = append(want, fmt.Sprintf("m%d", i))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d lines are shown, want %d: %.200q", len(got), len(want), got)
	}
}

// A frame has the shape of Loki, and streams stand in the order of their lines.
func TestTailFrames(t *testing.T) {
	tails(t, 1, func(t *testing.T, h *readingtest.House, p *testkit.Pipes) {
		old := listen(t, p, "query", `{}`)
		defer old.close()
		now := time.Now()
		h.Send(0,
			readingtest.Line{Service: "web", Msg: "a", Time: now},
			readingtest.Line{Service: "orders", Msg: "b", Time: now.Add(1), Level: "error", Fields: `"n":1`},
			readingtest.Line{Service: "web", Msg: "c", Time: now.Add(2)},
			readingtest.Line{Service: "web", Msg: "d", Time: now.Add(3)})
		got, err := old.frame()
		web := `{"stream":{"detected_level":"info","service_name":"web"},"values":[`
		want := fmt.Sprintf(`{"streams":[`+web+`["%d","a"]]},{"stream":{"detected_level":"error","n":"1","service_name":"orders"},"values":[["%d","b"]]},`+
			web+`["%d","c"],["%d","d"]]}],"dropped_entries":[]}`, now.UnixNano(), now.UnixNano()+1, now.UnixNano()+2, now.UnixNano()+3)
		if err != nil || got != want {
			t.Errorf("%v, the frame is\n%s\nwant\n%s", err, got, want)
		}
	})
}

// A tail begins with nothing, or with the newest lines since a time, that time included.
func TestTailBegins(t *testing.T) {
	tails(t, 1, func(t *testing.T, h *readingtest.House, p *testkit.Pipes) {
		begun := time.Now()
		h.Send(0, many(0, 5)...)
		h.Flush()
		time.Sleep(time.Second)
		h.Send(0, many(5, 10)...)
		fresh, three, six := listen(t, p), listen(t, p, "start", text(begun.UnixNano()), "limit", "3"), listen(t, p, "start", text(begun.UnixNano()+4))
		defer fresh.close()
		defer three.close()
		defer six.close()
		h.Send(0, many(10, 12)...)
		names(t, fresh.lines(2), 10, 12)
		names(t, three.lines(5), 7, 12)
		names(t, six.lines(8), 4, 12)
	})
}

// Filters are those of queries, also for services that come later.
func TestTailFilters(t *testing.T) {
	tails(t, 1, func(t *testing.T, h *readingtest.House, p *testkit.Pipes) {
		l := listen(t, p, "query", `{service_name=~"w.*"} |= "yes" | n > 1`)
		defer l.close()
		for _, s := range []string{"web", "orders", "worker"} {
			h.Send(0, readingtest.Line{Service: s, Msg: "yes " + s, Fields: `"n":2`}, readingtest.Line{Service: s, Msg: "yes", Fields: `"n":1`}, readingtest.Line{Service: s, Msg: "no", Fields: `"n":2`})
			time.Sleep(time.Second)
		}
		if got := l.lines(2); !slices.Equal(got, []string{"yes web", "yes worker"}) {
			t.Errorf("shown are %q", got)
		}
	})
}

// Each line comes once and in order at 5,000 records a second. A client that reads slowly gets
// them all, and others do not wait for it.
func TestTailOfSlowReader(t *testing.T) {
	tails(t, 1, func(t *testing.T, h *readingtest.House, p *testkit.Pipes) {
		slow, quick := listen(t, p), listen(t, p)
		defer slow.close()
		defer quick.close()
		const all = 20_000
		go func() {
			for i := 0; i < all; i += 500 {
				h.Send(0, many(i, i+500)...)
				time.Sleep(100 * time.Millisecond)
			}
		}()
		begun := time.Now()
		names(t, quick.lines(all), 0, all)
		if took := time.Since(begun); took > 8*time.Second {
			t.Errorf("the quick client has all after %v", took)
		}
		var got []string
		for len(got) < all {
			time.Sleep(200 * time.Millisecond)
			got = append(got, slow.lines(1)...)
		}
		names(t, got, 0, all)
	})
}

// The restart of an ingester loses and repeats nothing, and the connection outlives it.
func TestTailOverRestart(t *testing.T) {
	tails(t, 2, func(t *testing.T, h *readingtest.House, p *testkit.Pipes) {
		l := listen(t, p)
		defer l.close()
		h.Send(1, many(120, 121)...)
		l.lines(1) // it has begun, with all ingesters running
		for i := range 6 {
			h.Send(0, many(20*i, 20*i+10)...)
			h.Kill(0)
			time.Sleep(time.Duration(i) * time.Second)
			h.Send(1, many(20*i+10, 20*i+15)...)
			h.Start(0)
			h.Send(0, many(20*i+15, 20*i+20)...)
			time.Sleep(time.Second)
		}
		got := l.lines(120)
		seen := map[string]bool{}
		for _, line := range got {
			if seen[line] {
				t.Errorf("%s comes twice", line)
			}
			seen[line] = true
		}
		if len(seen) != 120 {
			t.Errorf("%d lines are shown", len(seen))
		}
	})
}

// A tail that lacks records is broken off: at once if it begins so, and when an ingester stays
// away.
func TestTailBreaksOff(t *testing.T) {
	tails(t, 2, func(t *testing.T, h *readingtest.House, p *testkit.Pipes) {
		h.Send(0, many(0, 2)...)
		l := listen(t, p, "start", text(time.Now().Add(-time.Hour).UnixNano()))
		names(t, l.lines(2), 0, 2)
		h.Kill(0)
		l.dropped(40 * time.Second)
		again := listen(t, p, "start", text(time.Now().Add(-time.Hour).UnixNano()))
		again.dropped(time.Second)
	})
}

// With a delay, lines come in the order of time even if older ones are sent later.
func TestTailDelays(t *testing.T) {
	tails(t, 1, func(t *testing.T, h *readingtest.House, p *testkit.Pipes) {
		l := listen(t, p, "delay_for", "3")
		defer l.close()
		begun := time.Now()
		at := func(i int) readingtest.Line {
			return readingtest.Line{Service: "web", Msg: fmt.Sprintf("m%d", i), Time: begun.Add(time.Duration(i))}
		}
		h.Send(0, at(1), at(3))
		time.Sleep(time.Second)
		h.Send(0, at(0), at(2))
		names(t, l.lines(4), 0, 4)
		if took := time.Since(begun); took < 3*time.Second || took > 5*time.Second {
			t.Errorf("the lines come after %v", took)
		}
	})
}

// A silent connection has a ping each 10 s, and nothing is left when its client goes.
func TestTailPings(t *testing.T) {
	tails(t, 1, func(t *testing.T, h *readingtest.House, p *testkit.Pipes) {
		l := listen(t, p)
		reading := make(chan error)
		go func() {
			_, err := l.frame()
			reading <- err
		}()
		time.Sleep(65 * time.Second)
		if n := l.pings.Load(); n < 5 || n > 7 {
			t.Errorf("%d pings in a minute", n)
		}
		l.close()
		<-reading
	})
}

// A hundred tails at once have all lines, each once.
func TestManyTails(t *testing.T) {
	tails(t, 1, func(t *testing.T, h *readingtest.House, p *testkit.Pipes) {
		var reading sync.WaitGroup
		for range testkit.Share(100, 10) {
			reading.Go(func() {
				l := listen(t, p)
				defer l.close()
				names(t, l.lines(300), 0, 300)
			})
		}
		time.Sleep(2 * time.Second)
		for i := 0; i < 300; i += 100 {
			h.Send(0, many(i, i+100)...)
			time.Sleep(300 * time.Millisecond)
		}
		reading.Wait()
	})
}

// With the header of Grafana's data source, labels stand apart by their category.
func TestTailCategories(t *testing.T) {
	tails(t, 1, func(t *testing.T, h *readingtest.House, p *testkit.Pipes) {
		l := listen(t, p, "flags", "categorize-labels")
		defer l.close()
		now := time.Now()
		h.Send(0, readingtest.Line{Service: "web", Msg: "a", Time: now, Fields: `"n":1`})
		got, err := l.frame()
		want := fmt.Sprintf(`{"encodingFlags":["categorize-labels"],"streams":[{"stream":{"service_name":"web"},"values":[["%d","a",{"structuredMetadata":{"detected_level":"info","n":"1"}}]]}],"dropped_entries":[]}`, now.UnixNano())
		if err != nil || got != want {
			t.Errorf("%v, the frame is\n%s\nwant\n%s", err, got, want)
		}
	})
}
