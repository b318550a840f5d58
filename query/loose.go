package query

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"blobtail/catalog"
	"blobtail/record"
)

// looseMemory is how many bytes of a [Loose] are in memory, with the identities.
const looseMemory = 64 << 20

// Loose are unflushed records: from ingesters, from the tail. Some may be in blobs by
// now. A read merges them with blobs; it shows one of copies, which have the same
// time, identity and bytes.
//
// Add the records of each service in their order, Seal it, name it in [Query.Loose],
// and Close it after the last read. It holds up to 64 MiB in memory, and the rest in
// an unnamed temporary file. Add and Seal are for one goroutine; after Seal several
// goroutines may read it.
type Loose struct {
	name    string
	streams map[string]*stream
	last    *stream // the stream of the record that was added last
	size    int64   // in memory
	file    *os.File
	end     int64 // of the file
	sealed  bool
	err     error // no more can be added
}

// NewLoose returns an empty Loose. Problems are reported with its name.
func NewLoose(name string) *Loose {
	return &Loose{name: name, streams: make(map[string]*stream)}
}

// Add adds a copy of e. It refuses a line that is not canonical, has a service that
// blobs cannot have, or has another time than e; the other records are unharmed. After
// another error nothing more can be added.
func (l *Loose) Add(e *record.Entry) error {
	if l.sealed {
		return fmt.Errorf("%s: sealed already", l.name)
	}
	if l.err != nil {
		return l.err
	}
	service, err := entryService(e)
	if err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	s := l.last
	if s == nil || s.service != string(service) {
		if s = l.streams[string(service)]; s == nil {
			s = &stream{loose: l, service: string(service)}
			l.streams[s.service] = s
		}
		l.last = s
	}
	if err := s.add(e); err != nil {
		return l.fail(err)
	}
	if l.size > looseMemory {
		return l.fail(l.spill())
	}
	return nil
}

func (l *Loose) fail(err error) error {
	if err != nil {
		l.err = fmt.Errorf("%s: %w", l.name, err)
	}
	return l.err
}

// entryService checks an entry, which may come from any sender, and returns its
// service.
func entryService(e *record.Entry) ([]byte, error) {
	t, ok := record.LineTime(e.Line)
	service, whole := record.LineService(e.Line)
	if !ok || !whole || t != e.Time {
		return nil, errors.New("an entry is no canonical line of its time")
	}
	if i := bytes.IndexByte(e.Line, '\n'); i != len(e.Line)-1 {
		return nil, errors.New("an entry is not one line")
	}
	if !catalog.IsService(string(service)) {
		return nil, fmt.Errorf("an entry is of no service: %.80q", service)
	}
	return service, nil
}

// spill moves the records in memory to the file.
func (l *Loose) spill() error {
	if l.file == nil {
		f, err := os.CreateTemp(os.TempDir(), "blobtail-")
		if err != nil {
			return fmt.Errorf("put records aside: %w", err)
		}
		l.file = f
		// The file goes with the process, however it ends.
		if err := os.Remove(f.Name()); err != nil {
			return fmt.Errorf("put records aside: %w", err)
		}
	}
	for _, s := range l.streams {
		if err := s.spill(); err != nil {
			return err
		}
	}
	if l.size > looseMemory {
		return errors.New("too many records of one time and identity")
	}
	return nil
}

// Seal ends the adding. Reads are allowed only after it.
func (l *Loose) Seal() error {
	if l.err != nil || l.sealed {
		return l.err
	}
	for _, s := range l.streams {
		s.seal()
	}
	l.sealed = true
	return nil
}

// Close releases everything. No read may be under way, and none may follow.
func (l *Loose) Close() error {
	l.streams, l.last, l.sealed, l.err = nil, nil, false, fmt.Errorf("%s: closed", l.name)
	if l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	if err := f.Close(); err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	return nil
}

// Len is the number of records, without copies.
func (l *Loose) Len() int {
	n := 0
	for _, s := range l.streams {
		n += s.records
	}
	return n
}

// Services are the services of the records, in order.
func (l *Loose) Services() []string { return slices.Sorted(maps.Keys(l.streams)) }

// looseNames are the services of all unflushed records.
func (q *Query) looseNames() (map[string]bool, error) {
	names := make(map[string]bool)
	for _, l := range q.Loose {
		if !l.sealed {
			return nil, &BadQueryError{fmt.Errorf("%s: not sealed", l.name)}
		}
		for name := range l.streams {
			names[name] = true
		}
	}
	return names, nil
}

// looseOf returns the unflushed records of some services, which are sorted.
func (q *Query) looseOf(services []string) []*stream {
	var out []*stream
	for _, l := range q.Loose {
		for _, name := range services {
			if s := l.streams[name]; s != nil && s.records > 0 {
				out = append(out, s)
			}
		}
	}
	return out
}
