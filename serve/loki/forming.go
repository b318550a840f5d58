package loki

import (
	"bytes"
	"errors"
	"runtime"
	"sync"

	"blobtail/internal/budget"
	"blobtail/logql/stage"
)

// errEnough ends a read that has all that is wanted.
var errEnough = errors.New("that is enough")

const (
	// batchBytes is how many bytes of records are formed together, and batchMade from how many
	// bytes of their entries on the rest of them waits until these are taken.
	batchBytes = 64 << 10
	batchMade  = 1 << 20
	// formingBytes and formingBatches are how many bytes of records, and how many batches, are
	// formed at once at most.
	formingBytes   = 4 << 20
	formingBatches = 16
	// largeEntry is the size from which on an entry is taken from the budget. The sizes of batches
	// bound the bytes of smaller ones.
	largeEntry = 256 << 10
)

// forming makes entries of records. That takes longer than reading them, so several batches are
// formed at once, by the CPUs that there are. The streams take them in order.
type forming struct {
	pipe   *stage.Pipeline
	budget *budget.Budget
	to     *streams
	open   *batch
	going  []*batch // the oldest first
	lines  int      // bytes of records in going
	spare  []*batch
}

// A batch is records, and the parts of an answer that are made of them.
type batch struct {
	lines  []byte
	at     int    // the records before it are formed
	keys   []byte // the labels of the entries' streams, as JSON
	values []byte // the entries, as JSON
	ends   []entryEnd
	paid   int64 // taken from the budget for large entries
	formed sync.WaitGroup
	failed any // a panic of the pipeline

	entry  stage.Entry
	labels []stage.Label
}

// An entryEnd is where the parts of an entry end in those of its batch.
type entryEnd struct {
	key, value int
	time       int64
}

// add adds records. The error is errEnough if the streams need no more.
func (f *forming) add(lines []byte) error {
	if f.open == nil {
		f.open = f.fresh()
	}
	f.open.lines = append(f.open.lines, lines...)
	if len(f.open.lines) < batchBytes {
		return nil
	}
	f.start()
	for len(f.going) > min(runtime.GOMAXPROCS(0), formingBatches) || f.lines > formingBytes {
		if err := f.takeOldest(); err != nil {
			return err
		}
	}
	return nil
}

// end has the streams take the remaining batches. Without it, or after errEnough, wait is called.
func (f *forming) end() {
	f.start()
	for len(f.going) > 0 {
		if f.takeOldest() != nil {
			return
		}
	}
}

// wait waits for the batches that nobody takes.
func (f *forming) wait() {
	for _, b := range f.going {
		b.formed.Wait()
	}
}

// fresh is an empty batch.
func (f *forming) fresh() *batch {
	if n := len(f.spare); n > 0 {
		b := f.spare[n-1]
		f.spare = f.spare[:n-1]
		b.lines, b.at = b.lines[:0], 0
		return b
	}
	return &batch{lines: make([]byte, 0, batchBytes+batchBytes/8)}
}

// start begins to form the open batch.
func (f *forming) start() {
	b := f.open
	if b == nil {
		return
	}
	f.open, f.going = nil, append(f.going, b)
	f.lines += len(b.lines)
	b.formed.Go(func() { b.form(f) })
}

// form forms the entries of the batch, or some of them.
func (b *batch) form(f *forming) {
	defer func() { b.failed = recover() }()
	b.keys, b.values, b.ends = b.keys[:0], b.values[:0], b.ends[:0]
	for line := range bytes.Lines(b.lines[b.at:]) {
		b.at += len(line)
		if f.budget.Err() != nil {
			return // the code that answers sees why
		}
		e := &b.entry
		if !f.pipe.Entry(line, e) {
			continue
		}
		if e.Size > largeEntry && !b.pay(f.budget, 2*int64(e.Size)) {
			return
		}
		b.append(e, f.to.sorts)
		made := len(b.keys) + len(b.values)
		if b.paid > 0 && int64(made) > b.paid && !b.pay(f.budget, int64(made)-b.paid) || made > batchMade {
			return
		}
	}
}

// append appends an entry.
func (b *batch) append(e *stage.Entry, sorts bool) {
	labels := e.Stream
	if !sorts {
		b.labels = mergeLabels(b.labels[:0], e)
		labels = b.labels
	}
	b.keys = appendLabels(b.keys, labels)
	b.values = appendLine(b.values, e, sorts)
	b.ends = append(b.ends, entryEnd{len(b.keys), len(b.values), e.Time})
}

// pay takes the bytes of a large entry from the budget.
func (b *batch) pay(of *budget.Budget, n int64) bool {
	if of.Take(n) != nil {
		return false
	}
	b.paid += n
	return true
}

// takeOldest has the streams take the oldest batch.
func (f *forming) takeOldest() error {
	b := f.going[0]
	f.going = f.going[1:]
	f.lines -= len(b.lines)
	b.formed.Wait()
	for {
		if b.failed != nil {
			panic(b.failed) // where the guard of the request sees it
		}
		if err := f.budget.Err(); err != nil {
			return err
		}
		err := b.give(f.to)
		f.budget.Give(b.paid)
		if b.paid = 0; err != nil {
			return err
		}
		if b.at == len(b.lines) {
			break
		}
		b.form(f)
	}
	b.trim()
	f.spare = append(f.spare, b)
	return nil
}

// give gives the entries to the streams.
func (b *batch) give(to *streams) error {
	key, value := 0, 0
	for _, end := range b.ends {
		if to.add(b.keys[key:end.key], b.values[value:end.value], end.time) {
			return errEnough
		}
		key, value = end.key, end.value
	}
	return nil
}

// trim drops the memory of large entries.
func (b *batch) trim() {
	if cap(b.keys)+cap(b.values) > 2*batchMade {
		b.keys, b.values = nil, nil
	}
	if cap(b.lines) > batchMade {
		b.lines = nil
	}
	if b.entry.Size > largeEntry {
		b.entry = stage.Entry{}
	}
}
