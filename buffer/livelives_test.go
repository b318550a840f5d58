package buffer_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"blobtail/buffer"
)

// watcher reads a world's log while the world lives.
type watcher struct {
	sending      []string // texts
	acknowledged []string // of requests
	messages     []string // of messages, accepted in this life
	ids          map[string]string

	position uint64
	followed map[string]bool
	behind   int
	looks    int

	held []heldSnapshot
}

// heldSnapshot is a snapshot for a second reading, and the result of the first one.
type heldSnapshot struct {
	l    *buffer.Live
	want []stored
}

// look checks that a snapshot and the stored records together have all acknowledged
// records. It also checks that a follower gets all records since the last look.
func (w *world) look() {
	w.t.Helper()
	if !w.p.buf.Replayed() {
		return
	}
	v := &w.watch
	if v.ids == nil {
		v.ids, v.followed = map[string]string{}, map[string]bool{}
	}
	v.looks++
	got, _ := snapshot(w.t, w.p.buf, everything())
	there := map[string]bool{}
	for _, s := range got {
		text := textOf(s.text)
		there[text] = true
		id := w.idOf(s)
		if old, ok := v.ids[text]; ok && old != id {
			w.t.Errorf("%s was read as %s and as %s", text, old, id)
		}
		v.ids[text] = id
	}
	for _, b := range w.sink.all() {
		for _, l := range b.lines {
			there[textOf(l.text)] = true
		}
	}
	for _, text := range slices.Concat(v.acknowledged, v.messages) {
		if !there[text] {
			w.t.Fatalf("%s is acknowledged, and neither read nor stored", text)
		}
	}
	for text := range there {
		if !w.want[text] {
			w.t.Fatalf("%s was never sent", text)
		}
	}
	w.followOn()
	w.hold()
}

// idOf is the identity that check uses.
func (w *world) idOf(s stored) string {
	return fmt.Sprint(s.origin, s.index, serviceOf(s.text), time.Unix(0, s.time).UTC().Hour())
}

func serviceOf(text string) string {
	_, name, _ := strings.Cut(text, `"service":"`)
	name, _, _ = strings.Cut(name, `"`)
	return name
}

// followOn reads the records since the last look, in this life or an earlier one.
func (w *world) followOn() {
	w.t.Helper()
	v := &w.watch
	q := everything()
	q.Follow, q.After = true, v.position
	l, err := w.p.buf.Live(context.Background(), q)
	if err != nil {
		w.t.Fatal(err)
	}
	defer l.Close()
	first := v.position == 0
	v.position = l.Position()
	for _, s := range each(w.t, l) {
		text := textOf(s.text)
		if v.followed[text] && slices.Contains(v.acknowledged, text) {
			w.t.Fatalf("%s was given out before", text)
		}
		v.followed[text] = true
	}
	if l.Behind() || first {
		v.behind++
		for text := range w.want { // a message may be acknowledged in a life after the next
			v.followed[text] = true
		}
	}
	for _, text := range slices.Concat(v.acknowledged, v.messages) {
		if !v.followed[text] {
			w.t.Fatalf("%s is acknowledged and was not given to who follows", text)
		}
	}
}

// hold takes snapshots and reads them again a few steps later: no line may be missing
// then.
func (w *world) hold() {
	w.t.Helper()
	v := &w.watch
	if len(v.held) > 3 {
		h := v.held[0]
		v.held = v.held[1:]
		same(w.t, "a snapshot that was held", each(w.t, h.l), h.want)
		h.l.Close()
		h.l.Close()
	}
	if w.dice(5) == 0 {
		l, err := w.p.buf.Live(context.Background(), everything())
		if err != nil {
			w.t.Fatal(err)
		}
		v.held = append(v.held, heldSnapshot{l, each(w.t, l)})
	}
}

// lookAway ends a life of the watcher.
func (w *world) lookAway() {
	for _, h := range w.watch.held {
		h.l.Close()
	}
	w.watch.held, w.watch.messages = nil, nil
}
