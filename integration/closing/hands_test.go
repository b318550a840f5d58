package closing_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog/closed"
	"blobtail/record"
	"blobtail/storage"
)

// loss is what somebody did to a day by hand.
type loss struct {
	at     place
	hour   time.Time // zero: the day
	what   string
	since  time.Time
	hidden bool                   // from reads: only verify can tell
	gone   map[string]closed.Hash // what was removed, by keys
	undone time.Time              // when jobs had made all of that again, with the same bytes; zero: they have not
}

// comes notes that an object is stored.
func (l *loss) comes(key string, is closed.Hash) {
	if l.gone[key] != is {
		return
	}
	if delete(l.gone, key); len(l.gone) == 0 {
		l.undone = time.Now()
	}
}

// stamp is a hash over all that an object has.
func stamp(body []byte, attrs storage.Attrs) closed.Hash {
	return closed.HashOf(fmt.Appendf(nil, "%v %s", attrs, body))
}

// What hands do. Some of it the jobs make good, or take for their own: it is done at the end alone.
var (
	handsBetween = []string{"blob", "hour", "day", "day with parts", "newest part with its blobs", "newest part", "swap"}
	handsAtEnd   = append([]string{"rewrite", "rename", "rename", "other batch", "old part in place of the newest"}, handsBetween...)
)

// hand does something to a closed day whose highest part a root names. It reports whether it did.
func (w *world) hand(kind string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hands++
	rng := w.fate("hand", fmt.Sprint(w.hands))
	var all []place
	for p := range w.places() {
		part := w.highest(p)
		if part != nil && !w.touched[p] && w.hidden(p).IsZero() && w.rooted[part.part.Sum] &&
			len(part.part.Blobs) > 0 && w.has(part.part.Blobs) && !w.behind(p) {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return false
	}
	slices.SortFunc(all, func(a, b place) int { return strings.Compare(a.prefix(), b.prefix()) })
	at := pick(rng, all)
	part := w.highest(at)
	b := pick(rng, part.part.Blobs)
	l := &loss{at: at, what: kind, since: time.Now(), gone: map[string]closed.Hash{}}
	of := func(keep func(o *object) bool) (keys []string) {
		for _, key := range slices.Sorted(maps.Keys(w.objects)) {
			if o := w.objects[key]; o.at == at && keep(o) {
				keys = append(keys, key)
			}
		}
		return keys
	}
	var gone []string
	switch kind {
	case "blob":
		gone, l.hour = []string{b.Key}, b.First.Truncate(time.Hour)
	case "hour":
		l.hour = b.First.Truncate(time.Hour)
		gone = of(func(o *object) bool { return o.part == nil && o.hour().Equal(l.hour) })
	case "day":
		gone = of(func(o *object) bool { return o.part == nil })
	case "day with parts":
		gone = of(func(*object) bool { return true })
	case "newest part with its blobs", "newest part", "old part in place of the newest":
		before := w.before(part)
		if before == nil {
			return false
		}
		l.hidden, gone = true, []string{part.key}
		if kind == "newest part with its blobs" {
			had := map[string]bool{}
			for _, b := range slices.Concat(before.part.Blobs, before.part.Replaced) {
				had[b.Key] = true
			}
			gone = append(gone, of(func(o *object) bool { return o.part == nil && !had[o.key] })...)
		}
	case "rewrite", "other batch":
		o := w.objects[b.Key]
		if o.meta.Compacted > 0 || len(o.recs) < 2 {
			return false
		}
		l.hidden = kind == "rewrite"
		w.take(l)
		w.remove(b.Key)
		id := b.Batch
		if kind == "other batch" {
			binary.BigEndian.PutUint64(id[8:], 1<<40)
		}
		w.forge(o, id, o.recs[:len(o.recs)-1])
		return true
	case "rename":
		o := *w.objects[b.Key]
		n, _ := blobfmt.ParseName(b.Key)
		n.Number += 5
		if body, attrs := w.body(b.Key), w.attrs[b.Key]; w.objects[n.String()] == nil {
			w.take(l)
			w.remove(b.Key)
			o.key = n.String()
			w.put(&o, body, attrs)
		}
		return w.touched[at]
	case "swap":
		other := pick(rng, part.part.Blobs)
		if other.Key == b.Key {
			return false
		}
		w.take(l)
		w.swap(b.Key, other.Key)
		return true
	}
	w.take(l)
	body := w.body(part.key)
	if kind == "old part in place of the newest" {
		body = w.body(w.before(part).key)
	}
	for _, key := range gone {
		l.gone[key] = stamp(w.body(key), w.attrs[key])
		w.remove(key)
	}
	if kind == "old part in place of the newest" {
		o := *part
		w.put(&o, body, w.attrs[w.before(part).key])
	}
	return true
}

// take notes what is done.
func (w *world) take(l *loss) {
	w.tell("a hand: %s of %s", l.what, l.at)
	w.touched[l.at] = true
	w.losses = append(w.losses, l)
	w.totals.Hands++
}

// has reports whether blobs are there.
func (w *world) has(list []closed.Blob) bool {
	return !slices.ContainsFunc(list, func(b closed.Blob) bool { return w.objects[b.Key] == nil || w.objects[b.Key].meta.Batch != b.Batch })
}

// behind reports whether a day has a blob that its highest part does not have.
func (w *world) behind(p place) bool {
	part, has := w.highest(p), map[string]bool{}
	for _, b := range slices.Concat(part.part.Blobs, part.part.Replaced) {
		has[b.Key+" "+b.Batch.String()] = true
	}
	for _, o := range w.objects {
		if o.at == p && o.part == nil && !has[o.name()] {
			return true
		}
	}
	return false
}

// before is the part before.
func (w *world) before(part *object) *object {
	n, _ := closed.ParseName(part.key)
	n.Number--
	return w.objects[n.String()]
}

func (o *object) hour() time.Time {
	n, _ := blobfmt.ParseName(o.key)
	return n.Period.Truncate(time.Hour)
}

func (w *world) remove(key string) {
	w.tell("a hand removes %s", key)
	if err := w.drive().Delete(bg, storage.Blob{Key: key}); err != nil {
		w.broken("%v", err)
	}
	for _, r := range w.objects[key].recs {
		r.copies--
	}
	delete(w.objects, key)
}

func (w *world) put(o *object, body []byte, attrs storage.Attrs) {
	w.tell("a hand stores %s", o.key)
	err := w.drive().Create(bg, o.key, body, attrs)
	is, serr := w.drive().Stat(bg, o.key)
	if err != nil || serr != nil {
		w.broken("%v, %v", err, serr)
	}
	o.version, o.made = is.Version, time.Now()
	for _, r := range o.recs {
		r.copies++
	}
	w.objects[o.key], w.attrs[o.key] = o, attrs
	w.ever[o.name()] = true
}

// forge stores a blob as if it were another one, with some of its records.
func (w *world) forge(o *object, id blobfmt.BatchID, recs []*rec) {
	enc, err := blobfmt.NewEncoder(blobfmt.EncoderOptions{})
	if err != nil {
		w.broken("%v", err)
		return
	}
	var origin record.Origin
	copy(origin[:], id[:])
	for i, r := range recs {
		if err := enc.Add(r.line(), r.time, origin, uint32(i)); err != nil {
			w.broken("%v", err)
		}
	}
	body, meta, err := enc.Finish(id)
	if err != nil {
		w.broken("%v", err)
	}
	w.put(&object{key: o.key, at: o.at, meta: meta, recs: recs}, slices.Clone(body),
		storage.Attrs{ContentType: blobfmt.ContentType, ContentEncoding: blobfmt.ContentEncoding, Metadata: meta.Map()})
}

// swap has two blobs change their names.
func (w *world) swap(a, b string) {
	x, y, bodies := *w.objects[a], *w.objects[b], [][]byte{w.body(a), w.body(b)}
	attrs := []storage.Attrs{w.attrs[a], w.attrs[b]}
	w.remove(a)
	w.remove(b)
	x.key, y.key = b, a
	w.put(&x, bodies[0], attrs[0])
	w.put(&y, bodies[1], attrs[1])
}
