package patterns

import (
	"cmp"
	"slices"
	"time"

	"blobtail/record"
)

// mostBuckets is how many buckets of time a template has at most.
const mostBuckets = 60

// Stats are the numbers of the records of a template in a window.
type Stats struct {
	Count       int64
	First, Last int64 // the times of the first and the last record, in ns
	Levels      [record.NumLevels]int64
	// Services are those of the records, with their numbers; those after a hundred are left out, and
	// so are those for which there is no memory.
	Services []Service
	// Buckets are the stretches of time with records, in order. There are at most 60 of them.
	Buckets []Bucket
	// Example is the message of the newest record, cut at 1 KiB. If there is no memory for that, it is
	// of an older one, or cut at 64 bytes. Entry is the record without its line.
	Example string
	Entry   record.Entry
	// From is the service of the example.
	From string
	Text []byte // of the example
}

// Service counts the records of a service.
type Service struct {
	Name  string
	Count int64
}

// Bucket counts the records of a stretch of time, which begins at Start, in ns.
type Bucket struct {
	Start, Count int64
}

// add takes a record. room takes the memory of an example and of a service.
func (s *Stats) add(e *record.Entry, msg []byte, by time.Duration, room func(int64) bool) {
	service, _ := record.Lookup(e.Line, "service")
	if record.IsString(service) {
		service = service[1 : len(service)-1]
	}
	s.Levels[record.LineLevel(e.Line)]++
	if s.Count++; s.Count == 1 {
		s.First, s.Last = e.Time, e.Time
	}
	s.First, s.Last = min(s.First, e.Time), max(s.Last, e.Time)
	s.from(service, 1, room)
	s.bucket(floor(e.Time, by), 1)
	if s.Count > 1 && s.Entry.Compare(e) >= 0 {
		return
	}
	text := record.CutText(msg, exampleBytes)
	if more := len(text) - cap(s.Text); more > 0 {
		if !room(int64(more)) {
			if s.Count > 1 {
				return
			}
			text = record.CutText(text, shortBytes)
		}
		s.Text = make([]byte, 0, len(text))
	}
	s.Text = append(s.Text[:0], text...)
	s.Entry = record.Entry{Time: e.Time, ID: e.ID}
	if s.From != string(service) {
		s.From = string(service)
	}
}

// size is the memory of the example and the services.
func (s *Stats) size() int64 {
	n := int64(cap(s.Text))
	for i := range s.Services {
		n += serviceBytes + int64(len(s.Services[i].Name))
	}
	return n
}

// from counts records of a service.
func (s *Stats) from(service []byte, n int64, room func(int64) bool) {
	for i := range s.Services {
		if s.Services[i].Name == string(service) {
			s.Services[i].Count += n
			return
		}
	}
	if len(s.Services) < mostServices && room(serviceBytes+int64(len(service))) {
		s.Services = append(s.Services, Service{string(service), n})
	}
}

// bucket counts records of a stretch of time.
func (s *Stats) bucket(start, n int64) {
	if last := len(s.Buckets) - 1; last >= 0 && s.Buckets[last].Start == start {
		s.Buckets[last].Count += n
		return
	}
	at, ok := slices.BinarySearchFunc(s.Buckets, start, func(b Bucket, start int64) int { return cmp.Compare(b.Start, start) })
	if ok {
		s.Buckets[at].Count += n
		return
	}
	s.Buckets = slices.Insert(s.Buckets, at, Bucket{start, n})
}

// cut joins buckets to longer ones.
func (s *Stats) cut(by time.Duration) {
	all := s.Buckets[:0]
	for _, b := range s.Buckets {
		b.Start = floor(b.Start, by)
		if n := len(all); n > 0 && all[n-1].Start == b.Start {
			all[n-1].Count += b.Count
		} else {
			all = append(all, b)
		}
	}
	s.Buckets = all
}

// join adds the records of another template. A service that one of them has left out is left out. room
// takes the memory of an example and of a service.
func (s *Stats) join(of *Stats, room func(int64) bool) {
	if of.Count == 0 {
		return
	}
	if s.Count == 0 {
		s.First, s.Last = of.First, of.Last
	}
	if s.Count == 0 || s.Entry.Compare(&of.Entry) < 0 {
		text := of.Text
		if more := len(text) - cap(s.Text); more > 0 && !room(int64(more)) {
			text = record.CutText(text, shortBytes)
		}
		s.Entry, s.Text, s.From = of.Entry, text, of.From
	}
	s.First, s.Last = min(s.First, of.First), max(s.Last, of.Last)
	whole, all := s.hasAll(), room
	if !whole {
		all = func(int64) bool { return false }
	}
	for _, from := range of.Services {
		s.from([]byte(from.Name), from.Count, all)
	}
	if !of.hasAll() {
		s.Services = slices.DeleteFunc(s.Services, func(from Service) bool {
			return !slices.ContainsFunc(of.Services, func(o Service) bool { return o.Name == from.Name })
		})
	}
	s.Count += of.Count
	for l, n := range of.Levels {
		s.Levels[l] += n
	}
	for _, b := range of.Buckets {
		s.bucket(b.Start, b.Count)
	}
}

// hasAll reports whether no service was left out.
func (s *Stats) hasAll() bool {
	n := s.Count
	for _, from := range s.Services {
		n -= from.Count
	}
	return n == 0
}

// Sort puts services in order: those with the most records first.
func Sort(all []Service) {
	slices.SortFunc(all, func(a, b Service) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name)) })
}

// A step is the length of the buckets of a window: the shortest one that divides its records into
// as many as there may be.
type step struct {
	Length      time.Duration
	Any         bool
	First, Last int64
}

// see notes the time of a record. coarser is called if the length has become greater.
func (b *step) see(ns int64, coarser func()) {
	if !b.Any {
		*b = step{Length: time.Second, Any: true, First: ns, Last: ns}
	}
	if ns > b.First && ns <= b.Last {
		return
	}
	b.First, b.Last = min(b.First, ns), max(b.Last, ns)
	grown := false
	for _, next := range lengths() {
		if floor(b.Last, b.Length)/int64(b.Length)-floor(b.First, b.Length)/int64(b.Length) < mostBuckets {
			break
		}
		if next > b.Length {
			b.Length, grown = next, true
		}
	}
	if grown {
		coarser()
	}
}

// lengths are units of time, each a multiple of the one before.
func lengths() [18]time.Duration {
	const day = 24 * time.Hour
	return [...]time.Duration{
		5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, 5 * day, 10 * day, 30 * day, 360 * day, 3600 * day, 36000 * day,
	}
}

// floor is the start of the bucket of a time.
func floor(ns int64, by time.Duration) int64 {
	n := ns % int64(by)
	if n < 0 {
		n += int64(by)
	}
	return ns - n
}
