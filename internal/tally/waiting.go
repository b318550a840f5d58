package tally

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
)

// waiting estimates the volumes of the largest services without a label, by Space-Saving: a
// service that is not known takes the place of the smallest one, and its volume as an error.
// A service with more records than all others together divided by most is always known.
type waiting struct {
	most int
	at   map[string]*candidate
	heap candidates
}

// candidate is a service that is known.
type candidate struct {
	name   string
	volume float64
	excess float64 // of volume, at most so much is not its own
	place  int     // in the heap
}

// sure is the part of the volume that is surely the service's own.
func (c *candidate) sure() float64 { return c.volume - c.excess }

func newWaiting(most int) waiting {
	return waiting{most: most, at: map[string]*candidate{}}
}

// add adds n records of a service.
func (w *waiting) add(name string, n float64) {
	c := w.at[name]
	switch {
	case c != nil:
		c.volume += n
	case len(w.heap) < w.most:
		c = &candidate{name: strings.Clone(name), volume: n}
		w.at[c.name] = c
		heap.Push(&w.heap, c)
		return
	default:
		c = w.heap[0]
		delete(w.at, c.name)
		c.name, c.excess = strings.Clone(name), c.volume
		c.volume += n
		w.at[c.name] = c
	}
	heap.Fix(&w.heap, c.place)
}

// largest returns the candidates by their sure volumes, the largest first.
func (w *waiting) largest() []*candidate {
	all := slices.Clone(w.heap)
	slices.SortFunc(all, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(b.sure(), a.sure()), cmp.Compare(a.name, b.name))
	})
	return all
}

// remove removes a candidate.
func (w *waiting) remove(c *candidate) {
	delete(w.at, c.name)
	heap.Remove(&w.heap, c.place)
}

// forget leaves a part of all volumes.
func (w *waiting) forget(part float64) {
	for _, c := range w.heap {
		c.volume *= part
		c.excess *= part
	}
}

// candidates are a heap, the smallest first.
type candidates []*candidate

func (c candidates) Len() int           { return len(c) }
func (c candidates) Less(i, j int) bool { return c[i].volume < c[j].volume }
func (c candidates) Swap(i, j int) {
	c[i], c[j] = c[j], c[i]
	c[i].place, c[j].place = i, j
}

// Push implements [heap.Interface].
func (c *candidates) Push(x any) {
	added := x.(*candidate)
	added.place = len(*c)
	*c = append(*c, added)
}

// Pop implements [heap.Interface].
func (c *candidates) Pop() any {
	last := len(*c) - 1
	removed := (*c)[last]
	(*c)[last] = nil
	*c = (*c)[:last]
	return removed
}
