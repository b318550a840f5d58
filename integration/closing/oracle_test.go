package closing_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog/closed"
	"blobtail/catalog/horizon"
	"blobtail/record"
	"blobtail/storage"
)

// place is a service and a day.
type place struct {
	service string
	day     horizon.Day
}

func (p place) String() string { return p.service + " " + p.day.String() }

// object is what is stored under a key.
type object struct {
	key, version string
	at           place
	made         time.Time
	meta         blobfmt.Meta
	recs         []*rec
	part         *closed.Part // nil: a blob
	by           *view
}

// name is that of a blob in an account.
func (o *object) name() string { return o.key + " " + o.meta.Batch.String() }

// rec is a record.
type rec struct {
	id     int
	at     place
	time   int64
	stored time.Time // first; zero: it never was
	copies int       // stored now
}

func (r *rec) line() []byte {
	line := record.AppendTime([]byte(`{"ts":"`), r.time)
	return fmt.Appendf(line, `","level":"info","service":%q,"msg":"r%d"}`+"\n", r.at.service, r.id)
}

// mark is a horizon, or a dropped day.
type mark struct {
	place
	single bool
	made   time.Time
}

// hidden is when a day was hidden first; zero: it was not.
func (w *world) hidden(p place) (at time.Time) {
	for _, m := range w.marks {
		if m.service == p.service && (m.single && m.day == p.day || !m.single && p.day < m.day) && (at.IsZero() || m.made.Before(at)) {
			at = m.made
		}
	}
	return at
}

// highest is the highest part of a day; nil: it has none.
func (w *world) highest(p place) (part *object) {
	for _, o := range w.objects {
		if o.part != nil && o.at == p && (part == nil || o.key > part.key) {
			part = o
		}
	}
	return part
}

// create stores an object for a process, and judges it.
func (w *world) create(v *view, key string, body []byte, attrs storage.Attrs) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.store.Create(context.Background(), key, body, attrs)
	if err != nil {
		w.tell("%s: create %s: %v", v.actor, key, err)
		return err
	}
	w.tell("%s: create %s", v.actor, key)
	w.attrs[key] = attrs
	for _, l := range w.losses {
		l.comes(key, stamp(body, attrs))
	}
	is, err := w.store.Stat(context.Background(), key)
	if err != nil {
		return err
	}
	o := &object{key: key, version: is.Version, made: time.Now(), by: v}
	if name, err := blobfmt.ParseName(key); err == nil {
		o.at = place{name.Service, horizon.DayOf(name.Period)}
		w.created(v, o, body, attrs)
	} else if name, ok := closed.ParseName(key); ok {
		o.at = place{name.Service, name.Day}
		o.part, _ = closed.Parse(key, body)
		if o.part == nil {
			o.part = &closed.Part{}
		}
		w.linked(v, o, name.Number)
		w.objects[key] = o
	} else if strings.HasPrefix(key, closed.RootPrefix) {
		w.root = time.Now()
		w.totals.Roots++
		root, err := closed.ParseRoot(key, body)
		if err != nil {
			w.broken("%v", err)
			return nil
		}
		for _, parts := range root.Days {
			for _, hash := range parts {
				w.rooted[hash] = true
			}
		}
	} else if what, rest, ok := strings.Cut(key, "/"); ok && (what == "_horizon" || what == "_dropped") {
		service, text, _ := strings.Cut(rest, "/")
		day, err := horizon.ParseDay(text)
		if err != nil {
			w.broken("the mark %s: %v", key, err)
		}
		w.marks = append(w.marks, mark{place{service, day}, what == "_dropped", time.Now()})
	}
	return nil
}

// created takes in a new blob.
func (w *world) created(v *view, o *object, body []byte, attrs storage.Attrs) {
	var err error
	if o.meta, err = blobfmt.ParseMeta(attrs.Metadata); err == nil {
		o.recs, err = w.recordsOf(o.key, body)
	}
	if err != nil {
		w.broken("%s: %v", o.key, err)
	}
	for _, r := range o.recs {
		if r.stored.IsZero() {
			r.stored = time.Now()
		}
		r.copies++
	}
	for _, l := range w.losses { // what comes later may make a day look as if it had not been closed before
		l.hidden = l.hidden || l.at == o.at && l.what == "day with parts"
	}
	w.objects[o.key] = o
	w.ever[o.name()] = true
	if o.meta.Compacted > 0 {
		w.totals.Compacted++
		if w.highest(o.at) == nil && w.hidden(o.at).IsZero() && !w.touched[o.at] {
			w.broken("%s compacts a day without an account: %s", v.actor, o.key)
		}
	}
}

// recordsOf decodes a blob.
func (w *world) recordsOf(key string, body []byte) (recs []*rec, err error) {
	x, err := blobfmt.ReadIndex(key, int64(len(body)), func(off, n int64) ([]byte, error) { return body[off : off+n], nil })
	if err != nil {
		return nil, err
	}
	for _, b := range x.Blocks {
		lines, err := w.dec.Block(nil, body[b.Offset:b.Offset+b.Stored], b)
		if err != nil {
			return nil, err
		}
		for line := range bytes.Lines(lines) {
			r := w.record(line)
			if r == nil {
				return nil, fmt.Errorf("it has a record that nobody sent: %s", line)
			}
			recs = append(recs, r)
		}
	}
	return recs, nil
}

// record finds the record of a line; nil: nobody sent it.
func (w *world) record(line []byte) *rec {
	_, rest, _ := bytes.Cut(line, []byte(`"msg":"r`))
	text, _, _ := bytes.Cut(rest, []byte(`"`))
	n, err := strconv.Atoi(string(text))
	if err != nil || n >= len(w.records) {
		return nil
	}
	return w.records[n]
}

// linked judges a new part.
func (w *world) linked(v *view, o *object, number int) {
	w.totals.Parts++
	before := w.highest(o.at)
	if over := time.Since((o.at.day + 1).Start()); over < w.p.After {
		w.broken("%s closes %s %s after its end", v.actor, o.at, over)
	}
	has, taken, gone, dropped := map[string]bool{}, map[string]bool{}, map[string]bool{}, false
	for _, list := range [][]closed.Blob{o.part.Blobs, o.part.Replaced} {
		for _, b := range list {
			name := b.Key + " " + b.Batch.String()
			taken[b.Key] = true // another blob with the name of a missing one is none of the account
			if has[name] = true; !w.ever[name] {
				w.broken("%s has a blob that was never stored: %s", o.key, name)
			}
		}
	}
	for _, e := range o.part.Events {
		dropped = dropped || e.Kind == closed.Dropped
		gone[e.Key] = gone[e.Key] || e.Kind == closed.Deleted
	}
	for _, l := range o.part.Lost {
		gone[l.Key] = true
	}
	if dropped {
		return
	}
	for _, b := range w.objects {
		if b.part == nil && b.at == o.at && b.made.Before(v.began) && !has[b.name()] && !taken[b.key] {
			w.broken("%s lacks %s, stored before its run began", o.key, b.name())
		}
	}
	if before == nil {
		return
	}
	if before.part.Sum != o.part.Before && !w.touched[o.at] || number == 1 {
		w.broken("%s does not follow from %s", o.key, before.key)
	}
	for _, b := range before.part.Blobs {
		if !has[b.Key+" "+b.Batch.String()] && !gone[b.Key] {
			w.broken("%s has lost %s of the part before", o.key, b.Key)
		}
	}
}

// delete deletes an object for a process, and judges that.
func (w *world) delete(v *view, b storage.Blob) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.store.Delete(context.Background(), b); err != nil {
		return err
	}
	o := w.objects[b.Key]
	if o == nil || b.Version != "" && b.Version != o.version {
		return nil
	}
	delete(w.objects, b.Key)
	for _, r := range o.recs {
		r.copies--
	}
	w.tell("%s: delete %s", v.actor, b.Key)
	w.totals.Deleted++
	if o.part != nil {
		w.unlinked(v, o)
		return nil
	}
	at := w.hidden(o.at)
	switch linked := w.links(o); {
	case w.unsaid(o.at) && !linked && o.by != v:
		w.broken("%s deletes %s of a dropped day, and no part says that it was", v.actor, o.key)
		return nil
	case !at.IsZero() && (linked || o.by == v || time.Since(at) >= horizon.Settle):
		return nil
	case !at.IsZero():
		w.broken("%s deletes %s only %s after its day was hidden", v.actor, o.key, time.Since(at))
	case !linked && !w.touched[o.at]:
		w.broken("%s deletes %s, and no part says that another replaces it", v.actor, o.name())
	}
	for _, r := range o.recs {
		if r.copies == 0 && !w.touched[o.at] {
			w.broken("%s deletes the last copy of record %d with %s", v.actor, r.id, o.key)
		}
	}
	return nil
}

// links reports whether a part says that a blob is replaced.
func (w *world) links(o *object) bool {
	for _, part := range w.objects {
		if part.part == nil || part.at != o.at {
			continue
		}
		for _, b := range part.part.Replaced {
			if b.Key == o.key && b.Batch == o.meta.Batch {
				return true
			}
		}
	}
	return false
}

// unsaid reports whether the account of a day is to say that the day was dropped, and does not. A first
// part may be on its way when the day is dropped; the next daily run says it then.
func (w *world) unsaid(p place) bool {
	part := w.highest(p)
	for _, m := range w.marks {
		if m.service == p.service && !m.single && p.day < m.day {
			return false
		}
	}
	if part != nil && part.part.Before == (closed.Hash{}) && part.made.After(w.hidden(p)) {
		return false
	}
	return part != nil && !w.touched[p] && !w.hidden(p).IsZero() && !slices.Contains(part.part.Events, closed.Event{Kind: closed.Dropped})
}

// unlinked judges the deletion of a part: a root has to be younger than the horizon above it, which
// has to be a grace old.
func (w *world) unlinked(v *view, o *object) {
	for _, m := range w.marks {
		if m.service == o.at.service && !m.single && o.at.day < m.day && time.Since(m.made) >= grace && w.root.After(m.made) {
			return
		}
	}
	w.broken("%s deletes %s, and no root says that it may", v.actor, o.key)
}
