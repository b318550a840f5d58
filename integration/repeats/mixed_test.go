package repeats_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"blobtail/reading/blobs"
)

// A piece of a mixed body is one record: a line of text or an object.
type piece struct {
	text string
	time string // its own; "" if it has none
}

// drawPieces makes a body in which all objects have times. Each piece has a number.
func drawPieces(t *rapid.T) (all []piece) {
	timed := 0
	for i := range rapid.IntRange(2, 12).Draw(t, "lines") {
		at := time.Date(2026, 11, 20, 14, rapid.IntRange(0, 59).Draw(t, "minute"), i, 500e6, time.UTC)
		own := at.Format("2006-01-02T15:04:05.000000000Z")
		p := piece{time: own}
		switch rapid.IntRange(0, 7).Draw(t, "kind") {
		case 0, 1:
			p.text = fmt.Sprintf(`{"time":%q,"msg":"%d object"}`, at.Format(time.RFC3339Nano), i)
		case 2:
			p.text = fmt.Sprintf("{\n  \"time\": %q,\n  \"msg\": \"%d object\"\n}", at.Format(time.RFC3339Nano), i)
		case 3:
			p.text = at.Format("2006-01-02 15:04:05.000") + fmt.Sprintf(" INFO %d text", i) // no zone: UTC
		case 4:
			p.text = at.In(time.FixedZone("", 19800)).Format("2006/01/02 15:04:05,000 -0700") + fmt.Sprintf(" [info] %d text", i)
		case 5:
			p.text = at.Format("Jan 02 15:04:05") + fmt.Sprintf(" host %d text", i) // no year
			p.time = at.Truncate(time.Second).Format("2006-01-02T15:04:05.000000000Z")
		default:
			p = piece{text: fmt.Sprintf("Error: %d text\n\tat f\n\tat g", i)}
		}
		if p.time != "" {
			timed++
		}
		all = append(all, p)
	}
	if timed == 0 {
		all = append(all, piece{fmt.Sprintf(`{"time":"2026-11-20T14:00:00.5Z","msg":"%d object"}`, len(all)), "2026-11-20T14:00:00.500000000Z"})
	}
	return all
}

// want are the times of the pieces: their own, else that of the one before, else that of the
// first one with a time.
func want(all []piece) (times map[int]string) {
	times = map[int]string{}
	last := all[slices.IndexFunc(all, func(p piece) bool { return p.time != "" })].time
	for i, p := range all {
		if p.time != "" {
			last = p.time
		}
		times[i] = last
	}
	return times
}

// shown returns the time of each record of service web by its number, and how many records
// there are.
func (w *world) shown(t *rapid.T) (times map[int]string, n int) {
	numbered := regexp.MustCompile(`\d+ (text|object)`)
	plan, err := blobs.New(w.Store, blobs.Options{}).Plan(context.Background(), blobs.Query{Services: []string{"web"}, Range: blobs.Always()})
	if err != nil {
		t.Fatal(err)
	}
	times = map[int]string{}
	sum, err := plan.Read(context.Background(), func(lines []byte) error {
		for line := range strings.Lines(string(lines)) {
			var r struct{ Ts, Msg string }
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				return err
			}
			var number int
			if _, err := fmt.Sscan(numbered.FindString(r.Msg), &number); err != nil {
				return fmt.Errorf("%q: %w", r.Msg, err)
			}
			times[number], n = r.Ts, n+1
		}
		return nil
	})
	if err != nil || !sum.Complete() {
		t.Fatalf("%v, %+v", err, sum)
	}
	return times, n
}

// A body of JSON and text that is sent to two ingesters, one after the other, is shown once,
// with or without a key. Texts without a time have that of the record before.
func TestMixedTwice(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pieces := drawPieces(rt)
		var lines []string
		for _, p := range pieces {
			lines = append(lines, p.text)
		}
		q := request{contentType: "text/plain", body: strings.Join(lines, rapid.SampledFrom([]string{"\n", "\n\n", " \n"}).Draw(rt, "end"))}
		q.key = rapid.SampledFrom([]string{"", uuid7, plain}).Draw(rt, "key")
		w := newWorld(t)
		a, b := w.ingester(0), w.ingester(1)
		defer w.Stop()
		for _, in := range []*ingester{a, b} {
			if got := in.post(q); got.Accepted != len(pieces) || got.Rejected > 0 {
				rt.Fatalf("%+v of %d: %q", got, len(pieces), q.body)
			}
			w.clock = w.clock.Add(7 * time.Minute)
		}
		if got := a.post(q); !got.Duplicate {
			rt.Errorf("the first ingester does not know the body any more: %q", q.body)
		}
		a.Flush()
		b.Flush()
		got, n := w.shown(rt)
		if times := want(pieces); n != len(pieces) || !maps.Equal(got, times) {
			rt.Fatalf("%q: %d records %v, want %v", q.body, n, got, times)
		}
	})
}

// Texts before an object without a time have no time either. With a key a repeat is shown
// once as before, and without one, twice.
func TestMixedUntimed(t *testing.T) {
	for _, body := range []string{"a\nb\n", "a\n{\"msg\":\"b\"}\n", "{\"msg\":\"a\"}\nb\n"} {
		for key, want := range map[string]string{"": "a a b b", uuid7: "a b"} {
			w := newWorld(t)
			first, second := w.ingester(0), w.ingester(1)
			q := request{contentType: "text/plain", key: key, body: body}
			for _, in := range []*ingester{first, second} {
				in.post(q)
				w.clock = w.clock.Add(7 * time.Minute)
			}
			if got := w.read(first, second); got != want {
				t.Errorf("%q with the key %q: %q, want %q", body, key, got, want)
			}
		}
		// A key without a time is remembered by the ingester.
		w := newWorld(t)
		in := w.ingester(0)
		q := request{contentType: "text/plain", key: plain, body: body}
		in.post(q)
		w.clock = w.clock.Add(7 * time.Minute)
		if got := in.post(q); !got.Duplicate {
			t.Errorf("%q: %+v", body, got)
		}
	}
}
