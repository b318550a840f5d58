package live

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strconv"
	"sync"

	"blobtail/record"
)

// maxKept bounds the lines that are held back to find the newest.
const maxKept = 64 << 20

// merge brings the records of all ingesters into one order and leaves out copies.
type merge struct {
	*fan
	out  *bufio.Writer
	sent uint64

	heads []*stream // those with a next record

	copies Copies

	holds     bool           // lines are held back: peers may have newer ones
	kept      []record.Entry // the newest so far, oldest first
	keptBytes int
}

// run merges all answers. The error is that of the reader, of the own log, or of ctx. The
// failures of peers are noted in the fan.
func (m *merge) run(ctx context.Context) error {
	m.holds = m.query.Newest > 0 && len(m.answers) > 0
	m.start()
	var reader error
	err := m.held.Each(ctx, func(e *record.Entry) error {
		if reader = m.before(ctx, e); reader == nil {
			reader = m.put(e)
		}
		return reader
	})
	switch {
	case reader != nil:
		return reader
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && !errors.As(err, &m.damage):
		return err
	}
	if err := m.before(ctx, nil); err != nil {
		return err
	}
	for _, k := range m.kept {
		if err := m.send(&k); err != nil {
			return err
		}
	}
	return nil
}

// start gets the first record of each stream. It reads all streams at the same time,
// because several may hang.
func (m *merge) start() {
	var reading sync.WaitGroup
	for _, s := range m.answers {
		reading.Go(s.pull)
	}
	reading.Wait()
	m.heads = slices.DeleteFunc(slices.Clone(m.answers), m.ended)
}

// ended reports whether s has no next record.
func (m *merge) ended(s *stream) bool {
	if s.err != nil && s.err != io.EOF { // not errors.Is: io.EOF may also be the cause of a cut
		m.lose(s)
	}
	return s.err != nil
}

// before sends the records of peers that come before e, or all of them without e.
func (m *merge) before(ctx context.Context, e *record.Entry) error {
	for len(m.heads) > 0 {
		least := 0
		for i, s := range m.heads {
			if s.next.Compare(&m.heads[least].next) < 0 {
				least = i
			}
		}
		s := m.heads[least]
		if e != nil && s.next.Compare(e) > 0 {
			return nil
		}
		if err := m.put(&s.next); err != nil {
			return err
		}
		if s.pull(); m.ended(s) {
			m.heads = slices.Delete(m.heads, least, least+1)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// put sends e, unless it is a copy.
func (m *merge) put(e *record.Entry) error {
	if again, err := m.copies.Again(e); again || err != nil {
		return err
	}
	return m.keep(e)
}

// keep sends e, or holds it back while it may be too old. A single log returns only its
// newest records. If the held lines take too much memory, the oldest are sent: they may
// be more than were asked for.
func (m *merge) keep(e *record.Entry) error {
	if !m.holds {
		return m.send(e)
	}
	m.kept = append(m.kept, record.Entry{ID: e.ID, Line: bytes.Clone(e.Line)})
	m.keptBytes += len(e.Line)
	if len(m.kept) > m.query.Newest {
		m.drop()
	}
	for m.keptBytes > maxKept {
		k := m.drop()
		if err := m.send(&k); err != nil {
			return err
		}
	}
	return nil
}

// drop removes the oldest line that is held back.
func (m *merge) drop() record.Entry {
	k := m.kept[0]
	m.kept[0] = record.Entry{} // append copies the rest to a new place only when this one is full
	m.kept = m.kept[1:]
	m.keptBytes -= len(k.Line)
	return k
}

// send writes one line of the answer.
func (m *merge) send(e *record.Entry) error {
	m.sent++
	prefix := hex.AppendEncode(m.out.AvailableBuffer(), e.ID.Origin[:])
	prefix = append(prefix, ' ')
	prefix = strconv.AppendUint(prefix, uint64(e.ID.Index), 10)
	_, _ = m.out.Write(append(prefix, ' ')) // Write of the line returns the error, if there is one
	_, err := m.out.Write(e.Line)
	return err
}
