package tally

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"blobtail/internal/count"
	"blobtail/record"
)

// rest is the label of the services without their own.
const rest = "other"

// forgotten is the part of a volume that is left after an hour.
const forgotten = 0.97

// margin is by how much a service must be larger than one with a label to take its place. So
// two of about the same size do not take turns.
const margin = 2

// byLevel counts the records of a service by level.
type byLevel [record.NumLevels]uint32

func (b *byLevel) sum() (n uint64) {
	for _, c := range b {
		n += uint64(c)
	}
	return n
}

// numLacks is how many counts [record.Lacks] has.
const numLacks = 4

// service is a service with a label, or all those without.
type service struct {
	counts [record.NumLevels]atomic.Uint64
	// volume and seen, the count at the last turn, belong to turn.
	volume float64
	seen   uint64
	lacks  [numLacks]atomic.Uint64
}

func (s *service) add(b *byLevel) {
	for level, n := range b {
		if n > 0 {
			s.counts[level].Add(uint64(n))
		}
	}
}

func (s *service) sum() (n uint64) {
	for i := range s.counts {
		n += s.counts[i].Load()
	}
	return n
}

// labels has the services with a label.
//
// Its invariant: named has at most most services besides rejected. A goroutine that adds to a
// service holds mu for reading, so that no service loses its label meanwhile.
type labels struct {
	most     int
	rejected service
	rest     service

	mu    sync.RWMutex
	named map[string]*service

	waitingMu sync.Mutex
	waiting   waiting
}

func newLabels(most int) *labels {
	return &labels{
		most:    most,
		named:   map[string]*service{},
		waiting: newWaiting(most),
	}
}

// add adds the counts of a request's services.
func (l *labels) add(names []string, counts []byLevel, lacks []record.Lacks) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for i, name := range names {
		if i%256 == 255 { // a request of very many services must not hold up a new label
			l.mu.RUnlock()
			l.mu.RLock()
		}
		if n := counts[i].sum(); n > 0 {
			s := l.find(name, n)
			s.add(&counts[i])
			if i < len(lacks) {
				for kind, n := range [numLacks]uint32{lacks[i].Time, lacks[i].TimeUnread, lacks[i].LevelUnread, lacks[i].TimeFar} {
					s.lacks[kind].Add(uint64(n))
				}
			}
		}
	}
}

// find returns a service, or the rest if it has no label and gets none. l.mu is held for
// reading.
func (l *labels) find(name string, n uint64) *service {
	switch name {
	case record.RejectedService:
		return &l.rejected
	case rest:
		return &l.rest
	}
	s := l.named[name]
	if s == nil && len(l.named) < l.most {
		l.mu.RUnlock()
		l.label(name)
		l.mu.RLock()
		s = l.named[name]
	}
	if s == nil {
		l.waitingMu.Lock()
		defer l.waitingMu.Unlock()
		l.waiting.add(name, float64(n))
		return &l.rest
	}
	return s
}

// label gives a service a label if there is one left.
func (l *labels) label(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.named[name] == nil && len(l.named) < l.most {
		l.named[strings.Clone(name)] = &service{}
	}
}

// turn gives the labels of the smallest services to much larger ones without a label.
func (l *labels) turn() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waitingMu.Lock()
	defer l.waitingMu.Unlock()
	for _, s := range l.named {
		now := s.sum()
		s.volume += float64(now - s.seen)
		s.seen = now
	}
	smallest := slices.SortedFunc(maps.Keys(l.named), func(a, b string) int {
		return cmp.Or(cmp.Compare(l.named[a].volume, l.named[b].volume), cmp.Compare(a, b))
	})
	for _, c := range l.waiting.largest() {
		if len(l.named) >= l.most {
			if len(smallest) == 0 || c.sure() <= margin*l.named[smallest[0]].volume {
				break
			}
			delete(l.named, smallest[0])
			smallest = smallest[1:]
		}
		l.named[c.name] = &service{volume: c.sure()}
		l.waiting.remove(c)
	}
	for _, s := range l.named {
		s.volume *= forgotten
	}
	l.waiting.forget(forgotten)
}

// write writes the series of all services. A service has all levels from its first record on:
// without a sample of 0 before it, nobody sees the first error.
func (l *labels) write(p *count.Page) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	p.Family("blobtail_records_total", "counter",
		"Records that were accepted, or left out by a rule; the service "+rest+" stands for those without a label of their own.")
	l.each(func(name string, s *service) {
		for level := range record.Level(record.NumLevels) {
			p.Value(float64(s.counts[level].Load()), "level", level.String(), "service", name)
		}
	})
	for kind, lack := range [numLacks]struct{ name, help string }{
		{"blobtail_records_without_time_total", "Records without a time that could be found; they have that of their arrival."},
		{"blobtail_records_time_unread_total", "Records with a field for the time that could not be read; ingest try says why."},
		{"blobtail_records_level_unread_total", "Records with a field for the level that could not be read; ingest try says why."},
		{"blobtail_records_time_far_total", "Records whose guessed time is too far from arrival: name the field, or set time-near: off."},
	} {
		p.Family(lack.name, "counter", lack.help)
		l.each(func(name string, s *service) { p.Value(float64(s.lacks[kind].Load()), "service", name) })
	}
}

// each calls a function for each service with a label, and for the rest. l.mu is held.
func (l *labels) each(f func(name string, s *service)) {
	f(rest, &l.rest)
	f(record.RejectedService, &l.rejected)
	for _, name := range slices.Sorted(maps.Keys(l.named)) {
		f(name, l.named[name])
	}
}
