package buffer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/buffer"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
	"blobtail/record/origin"
	"blobtail/storage/fsys/simdisk"
)

// The requests, messages, restarts and failures are random. All accepted records are
// stored, in order and each identity once, and a message is acknowledged only then. The
// store always refuses one service, so its batches are parked. The buffer's account is
// right at every step.
func TestRandomLives(t *testing.T) {
	parked := 0
	for seed := range uint64(testkit.Share(12, 2)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{t: t, r: rand.New(rand.NewPCG(seed, 1)), disk: simdisk.New(seed), sink: &memSink{}, sent: map[string]*sentMessage{}, want: map[string]bool{}, stored: map[string]bool{}}
				w.live()
				parked += w.parked
			})
		})
	}
	if parked == 0 {
		t.Error("nothing was parked")
	}
}

// world is a log, the requests sent to it, and the answers.
type world struct {
	t    *testing.T
	disk *simdisk.Disk
	sink *memSink
	p    *process
	n    int

	mu     sync.Mutex
	r      *rand.Rand
	want   map[string]bool         // lines
	sent   map[string]*sentMessage // by reply
	stored map[string]bool         // lines of the first batches in the sink
	looked int                     // the number of these batches
	parked int
	watch  watcher
}

// sentMessage is a message of the stream, which keeps it until it is acknowledged.
type sentMessage struct {
	r            *record.Request
	texts        []string
	acknowledged bool
}

func (w *world) dice(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.r.IntN(n)
}

func (w *world) Found(string)   {}
func (w *world) Dropped(string) {}

// Stored checks that the message is stored at the time of the call.
func (w *world) Stored(reply string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.sent[reply]
	if m == nil {
		w.t.Errorf("stored: %q was never sent", reply)
		return
	}
	m.acknowledged = true
	for _, b := range w.sink.all()[w.looked:] {
		w.looked++
		for _, l := range b.lines {
			w.stored[textOf(l.text)] = true
		}
	}
	for _, text := range m.texts {
		if !w.stored[text] {
			w.t.Errorf("%s acknowledged, %s not stored", reply, text)
		}
	}
}

// textOf is the first word of the message in a line.
func textOf(l string) string {
	_, text, _ := strings.Cut(l, `"msg":"`)
	text, _, _ = strings.Cut(text, " ")
	return text
}

func (w *world) live() {
	w.sink.setRefuse(func(service string) error {
		if service == "x" || w.dice(3) == 0 {
			return errors.New("refused")
		}
		return nil
	})
	for range 6 {
		w.p = startOn(w.t, w.disk, "/wal", w.sink, w.options(), w.dice(5) > 0)
		for range 60 {
			w.step()
			w.audit()
			if w.dice(2) == 0 {
				w.look()
			}
		}
		w.lookAway()
		w.parked += w.p.buf.Parked()
		disk := w.disk
		if w.dice(2) == 0 { // no start finds the process's writes from here on
			disk = disk.Fork(simdisk.Crash(w.dice(int(simdisk.Crashes))), uint64(w.n))
		}
		w.p.stop()
		w.disk = disk
	}
	w.sink.setRefuse(nil)
	w.p = startOn(w.t, w.disk, "/wal", w.sink, w.options(), true)
	w.p.flush()
	w.audit()
	for _, m := range w.sent {
		if !m.acknowledged {
			w.p.accept(m.r)
		}
	}
	w.p.flush()
	w.audit()
	w.p.stop()
	w.check()
}

func (w *world) options() buffer.Options {
	return buffer.Options{
		Messages: w, Size: 20_000, Period: 15 * time.Minute, Soft: 160 << 10, Age: 3 * time.Second, Min: 1,
	}
}

// step sends a request, waits, or flushes.
func (w *world) step() {
	switch n := w.dice(20); {
	case n == 0:
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_, _ = w.p.buf.Flush(ctx)
		cancel()
	case n < 4:
		time.Sleep(time.Duration(w.dice(10_000)) * time.Millisecond)
	case n < 9:
		w.message()
	default:
		w.p.accept(request(0, w.lines()...))
		w.watch.acknowledged = append(w.watch.acknowledged, w.watch.sending...)
		w.watch.sending = nil
	}
}

func (w *world) lines() (lines []line) {
	for range 1 + w.dice(8) {
		w.n++
		service := []string{"a", "b", "c"}[w.dice(3)]
		size := 2000
		if w.dice(12) == 0 {
			service, size = "x", 20
		}
		text := fmt.Sprintf("n%d", w.n)
		w.want[text] = true
		w.watch.sending = append(w.watch.sending, text)
		lines = append(lines, line{service, at(w.dice(50)) + int64(w.dice(3)), text + " " + noise(rand.New(rand.NewPCG(1, uint64(w.n))), size)})
	}
	return lines
}

// message sends a new message, or repeats one that was not acknowledged.
func (w *world) message() {
	w.mu.Lock()
	var replies []string
	for reply, m := range w.sent {
		if !m.acknowledged {
			replies = append(replies, reply)
		}
	}
	w.mu.Unlock()
	slices.Sort(replies)
	m := &sentMessage{}
	w.n++
	if len(replies) > 0 && w.dice(3) == 0 {
		m = w.sent[replies[w.dice(len(replies))]]
	} else {
		lines := w.lines()
		for _, l := range lines {
			text, _, _ := strings.Cut(l.text, " ")
			m.texts = append(m.texts, text)
		}
		m.r = request(0, lines...)
		m.r.Origin = origin.OfStream(time.Unix(0, 0), "LOGS", uint64(w.n))
	}
	r := *m.r
	r.Reply = fmt.Sprint("m", w.n)
	w.mu.Lock()
	m.r = &r
	w.sent[r.Reply] = m
	w.mu.Unlock()
	w.watch.sending = nil // the next start may omit it
	w.p.accept(m.r)
	w.watch.messages = append(w.watch.messages, m.texts...)
}

func (w *world) audit() {
	w.t.Helper()
	if err := w.p.buf.Audit(); err != nil {
		w.t.Fatal(err)
	}
}

// check checks all stored records. A batch stored again after a lost commit, and a
// message accepted again, have the same identities.
func (w *world) check() {
	seen, texts := map[string]string{}, map[string]string{}
	for _, b := range w.sink.all() {
		checkOrder(w.t, b)
		for _, l := range b.lines {
			text, id := textOf(l.text), fmt.Sprint(l.origin, l.index, b.service, b.period.Hour())
			if old, ok := seen[id]; ok && old != text {
				w.t.Errorf("%s and %s have the identity %s", old, text, id)
			}
			if old, ok := texts[text]; ok && old != id {
				w.t.Errorf("%s was stored as %s and as %s", text, old, id)
			}
			seen[id], texts[text] = text, id
			if live, ok := w.watch.ids[text]; ok && live != id {
				w.t.Errorf("%s was read as %s and stored as %s", text, live, id)
			}
		}
	}
	for text := range w.want {
		if texts[text] == "" {
			w.t.Errorf("%s is lost", text)
		}
	}
}
