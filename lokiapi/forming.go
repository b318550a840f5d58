package lokiapi

import (
	"bytes"
	"errors"
	"runtime"
	"sync"

	"blobtail/logql/stage"
)

// errEnough ends a read that has all that is wanted.
var errEnough = errors.New("that is enough")

// batchBytes is how many bytes of records are formed together.
const batchBytes = 64 << 10

// forming makes entries of records. That takes longer than reading them, so several batches are
// formed at once, by the CPUs that there are. The streams take them in order.
type forming struct {
	pipe  *stage.Pipeline
	to    *streams
	open  *batch
	going []*batch // the oldest first
	spare []*batch
}

// A batch is records, and what an answer has of them.
type batch struct {
	lines  []byte
	keys   []byte // the labels of the entries' streams, as JSON
	values []byte // the entries, as JSON
	ends   []entryEnd
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
	if len(f.going) > runtime.GOMAXPROCS(0) {
		return f.takeOldest()
	}
	return nil
}

// end has the streams take what is left. Without it, or after errEnough, wait is called.
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
		b.lines, b.keys, b.values, b.ends = b.lines[:0], b.keys[:0], b.values[:0], b.ends[:0]
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
	b.formed.Go(func() { b.form(f.pipe, f.to.sorts) })
}

// form forms the entries of the batch.
func (b *batch) form(pipe *stage.Pipeline, sorts bool) {
	defer func() { b.failed = recover() }()
	for line := range bytes.Lines(b.lines) {
		e := &b.entry
		if !pipe.Entry(line, e) {
			continue
		}
		labels := e.Stream
		if !sorts {
			b.labels = mergeLabels(b.labels[:0], e)
			labels = b.labels
		}
		b.keys = appendLabels(b.keys, labels)
		b.values = appendLine(b.values, e, sorts)
		b.ends = append(b.ends, entryEnd{len(b.keys), len(b.values), e.Time})
	}
}

// takeOldest has the streams take the oldest batch.
func (f *forming) takeOldest() error {
	b := f.going[0]
	f.going = f.going[1:]
	if b.formed.Wait(); b.failed != nil {
		panic(b.failed) // where the guard of the request sees it
	}
	key, value := 0, 0
	for _, end := range b.ends {
		if f.to.add(b.keys[key:end.key], b.values[value:end.value], end.time) {
			return errEnough
		}
		key, value = end.key, end.value
	}
	f.spare = append(f.spare, b)
	return nil
}
