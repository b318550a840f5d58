package complete_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/catalog/closed"
	"blobtail/catalog/horizon"
	"blobtail/storage"
)

type batchID = blobfmt.BatchID

// An inventory knows the blobs that were in a store: their right places, and the names of their
// records.
type inventory struct {
	place map[batchID]string
	names map[batchID][]string
}

// An object is one of the store, with its bytes.
type object struct {
	storage.Blob
	body  []byte
	name  blobfmt.Name // zero: it is no blob
	batch batchID
}

func (o *object) of() serviceDay { return serviceDay{o.name.Service, horizon.DayOf(o.name.Period)} }

// objects takes stock of the store: its blobs by their keys, and the parts of its days in order.
func (w *thiefWorld) objects() (all map[string]*object, parts map[serviceDay][]*object) {
	ctx := context.Background()
	all, parts = map[string]*object{}, map[serviceDay][]*object{}
	store := w.stores[0].blobs
	for b, err := range store.List(ctx, "", "") {
		var body []byte
		if err == nil {
			body, err = catalog.Read(ctx, store, b.Key, 0, -1)
		}
		if err != nil {
			w.trouble("take stock: %v", err)
			return all, parts
		}
		o := &object{Blob: b, body: body}
		if n, ok := closed.ParseName(b.Key); ok {
			at := serviceDay{n.Service, n.Day}
			parts[at] = append(parts[at], o)
		} else if name, err := blobfmt.ParseName(b.Key); err == nil && !strings.HasPrefix(b.Key, "_") {
			meta, _ := blobfmt.ParseMeta(b.Metadata)
			o.name, o.batch = name, meta.Batch
			all[b.Key] = o
			w.stock(o)
		}
	}
	return all, parts
}

// stock notes a blob.
func (w *thiefWorld) stock(o *object) {
	if w.seen.place[o.batch] != "" {
		return
	}
	w.seen.place[o.batch] = o.Key
	for frame, err := range blobfmt.NewDecoder(1).Walk(o.Key, o.body) {
		if err != nil {
			w.trouble("take stock of %s: %v", o.Key, err)
			return
		}
		for line := range strings.Lines(string(frame.Lines)) {
			w.seen.names[o.batch] = append(w.seen.names[o.batch], nameOf([]byte(line)))
		}
	}
}

// recorded returns the names of the records in blobs that are where they belong.
func (w *thiefWorld) recorded(all map[string]*object) map[string]bool {
	in := map[string]bool{}
	for _, o := range all {
		if w.seen.place[o.batch] == o.Key {
			for _, name := range w.seen.names[o.batch] {
				in[name] = true
			}
		}
	}
	return in
}

// A loot is the day that the thief has come for.
type loot struct {
	w     *thiefWorld
	at    serviceDay
	all   map[string]*object
	blobs []*object // of the day, in order
	parts []*object
	rng   *rand.Rand
	named bool // by a root
}

// steal has the thief come, while nobody else does anything.
func (w *thiefWorld) steal() {
	synctest.Wait()
	all, parts := w.objects()
	rng := w.fate("thief")
	days := slices.SortedFunc(maps.Keys(parts), func(a, b serviceDay) int { return strings.Compare(a.prefix(), b.prefix()) })
	if len(days) == 0 {
		return
	}
	l := &loot{w: w, at: days[rng.IntN(len(days))], all: all, rng: rng}
	l.parts = parts[l.at]
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if o := all[key]; o.of() == l.at {
			l.blobs = append(l.blobs, o)
		}
	}
	kinds := []struct {
		name string
		do   func(*loot)
	}{
		{"a blob", (*loot).blob}, {"a blob", (*loot).blob}, {"an hour", (*loot).hour}, {"the blobs of a day", (*loot).emptied},
		{"a day", (*loot).day}, {"swapped", (*loot).swap}, {"moved", (*loot).move},
		{"a part with its blobs", (*loot).back}, {"a part", (*loot).part}, {"an older part", (*loot).older},
	}
	kind := kinds[rng.IntN(len(kinds))]
	if len(l.blobs) == 0 && kind.name != "a day" {
		return
	}
	w.harmed.Store(true)
	w.say("the thief comes to %s for %s", l.at.prefix(), kind.name)
	kind.do(l)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.thefts.Thefts++
	w.thefts.kinds[kind.name]++
}

func (l *loot) remove(objects ...*object) {
	for _, o := range objects {
		if err := l.w.stores[0].blobs.Delete(context.Background(), storage.Blob{Key: o.Key}); err != nil {
			l.w.trouble("remove %s: %v", o.Key, err)
		}
		l.w.say("- %s", o.Key)
	}
}

func (l *loot) put(key string, o *object) {
	if err := l.w.stores[0].blobs.Create(context.Background(), key, o.body, o.Attrs); err != nil {
		l.w.trouble("put %s: %v", key, err)
	}
	l.w.say("%s is put to %s", o.Key, key)
}

// any is a blob of the day.
func (l *loot) any() *object { return l.blobs[l.rng.IntN(len(l.blobs))] }

func (l *loot) blob() {
	l.remove(l.any())
	l.account(false)
}

func (l *loot) hour() {
	one := l.any()
	for _, o := range l.blobs {
		if o.name.Period.Equal(one.name.Period) {
			l.remove(o)
		}
	}
	l.account(false)
}

func (l *loot) emptied() {
	l.remove(l.blobs...)
	l.account(false)
}

func (l *loot) day() {
	l.remove(l.blobs...)
	l.rob(l.parts...)
	l.account(true)
}

// swap exchanges two blobs of the service.
func (l *loot) swap() {
	one, others := l.any(), []*object(nil)
	for _, key := range slices.Sorted(maps.Keys(l.all)) {
		if o := l.all[key]; o.name.Service == l.at.service && o != one {
			others = append(others, o)
		}
	}
	if len(others) == 0 {
		return
	}
	other := others[l.rng.IntN(len(others))]
	l.remove(one, other)
	l.put(one.Key, other)
	l.put(other.Key, one)
	l.account(false)
}

// move puts a blob to where another service, or another hour, has none.
func (l *loot) move() {
	one := l.any()
	to := one.name
	if l.rng.IntN(2) == 0 {
		to.Service = services[(slices.Index(services, to.Service)+1)%len(services)]
	} else {
		to.Period = to.Period.Add(time.Hour)
	}
	to.Number += 70
	l.remove(one)
	if l.all[to.String()] == nil {
		l.put(to.String(), one)
	}
	l.account(false)
}

// back removes the newest part, with the blobs that only it has.
func (l *loot) back() {
	last := len(l.parts) - 1
	now, _ := closed.Parse(l.parts[last].Key, l.parts[last].body)
	was := &closed.Part{}
	if last > 0 {
		was, _ = closed.Parse(l.parts[last-1].Key, l.parts[last-1].body)
	}
	if now == nil || was == nil {
		return
	}
	for _, o := range l.blobs {
		is := func(b closed.Blob) bool { return b.Key == o.Key && b.Batch == o.batch }
		if slices.ContainsFunc(now.Blobs, is) && !slices.ContainsFunc(was.Blobs, is) {
			l.remove(o)
		}
	}
	l.part()
}

// part removes the newest part.
func (l *loot) part() {
	last := len(l.parts) - 1
	l.rob(l.parts[last])
	l.account(true)
}

// older puts an older part in place of the newest.
func (l *loot) older() {
	last := len(l.parts) - 1
	if last == 0 {
		return
	}
	l.rob(l.parts[last])
	l.put(l.parts[last].Key, l.parts[l.rng.IntN(last)])
	l.account(true)
}

// rob removes parts.
func (l *loot) rob(parts ...*object) {
	for root, err := range catalog.Roots(context.Background(), l.w.stores[0].blobs, nil) {
		if err != nil {
			l.w.trouble("roots: %v", err)
			continue
		}
		l.named = l.named || root.Days.Get(l.at.day, l.at.service) != (closed.Hash{})
	}
	l.w.stolen = append(l.w.stolen, parts...)
	l.remove(parts...)
}

// account notes which records of the service are in no blob now, and whether the account of their day
// has them. changed says that parts of the day were changed.
func (l *loot) account(changed bool) {
	w, has := l.w, map[serviceDay]map[batchID]string{}
	all, parts := w.objects()
	in := w.recorded(all)
	for at, of := range parts {
		has[at] = map[batchID]string{}
		if part, err := closed.Parse(of[len(of)-1].Key, of[len(of)-1].body); err == nil {
			for _, b := range part.Blobs {
				has[at][b.Batch] = b.Key
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	l.vanish(all, parts)
	fresh := map[string]*missing{}
	for batch, key := range w.seen.place {
		name, _ := blobfmt.ParseName(key)
		at := serviceDay{name.Service, horizon.DayOf(name.Period)}
		for _, record := range w.seen.names[batch] {
			if m := w.gone[record]; in[record] || at.service != l.at.service || m != nil && (!changed || at != l.at) {
				continue
			}
			if fresh[record] == nil {
				fresh[record] = &missing{of: at, blobs: map[string]batchID{}}
			}
			fresh[record].blobs[key] = batch
			v := w.vanished[at]
			fresh[record].guarded = fresh[record].guarded || has[at][batch] == key || v != nil && (v.before || v.after)
		}
	}
	for name, m := range fresh {
		if w.gone[name] == nil && m.guarded {
			w.thefts.Guarded++
		} else if w.gone[name] == nil {
			w.thefts.Lost++
		}
		w.gone[name] = m
	}
}

// vanish notes a day of which nothing is left. w.mu is held.
func (l *loot) vanish(all map[string]*object, parts map[serviceDay][]*object) {
	w, left := l.w, map[serviceDay]bool{}
	for _, o := range all {
		left[o.of()] = true
	}
	for at := range parts {
		left[at] = true
	}
	if !left[l.at] && w.vanished[l.at] == nil && l.named {
		w.vanished[l.at] = &vanished{true, true}
	}
	for at, v := range w.vanished {
		before, after := false, false
		for other := range left {
			before = before || other.service == at.service && other.day < at.day
			after = after || other.service == at.service && other.day > at.day
		}
		v.before, v.after = v.before && before, v.after && after
	}
}
