package live

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"

	"blobtail/record"
)

const (
	// maxAlike bounds the lines of one identity. There is one line for each service
	// that a request wrote to.
	maxAlike = 64 << 20
	// maxKept bounds the lines that are held back to find the newest.
	maxKept = 64 << 20
)

// merge brings the records of all ingesters into one order and leaves out copies.
type merge struct {
	query Query
	out   *bufio.Writer
	sent  uint64

	heads []head

	// The lines that were sent of one time and identity: mostly one, seldom more, of
	// other services.
	last   record.Entry // Line is ours
	any    bool
	others map[string]bool
	alike  int

	holds     bool   // lines are held back: peers may have newer ones
	kept      []kept // the newest so far, oldest first, from first on
	first     int
	keptBytes int

	prefix []byte
}

// head is the next record of another ingester.
type head struct {
	stream *stream
	entry  record.Entry
}

type kept struct {
	id   record.ID
	line []byte
}

// run merges all of f. The error is that of the reader, of the own log, or of ctx. The
// failures of peers are noted in f.
func (m *merge) run(ctx context.Context, f *fan) error {
	m.holds = m.query.Newest > 0 && len(f.answers) > 0
	m.start(f)
	var reader error
	err := f.held.Each(ctx, func(e *record.Entry) error {
		if reader = m.before(ctx, f, e); reader == nil {
			reader = m.put(e)
		}
		return reader
	})
	switch {
	case reader != nil:
		return reader
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && !errors.As(err, &f.damage):
		return err
	}
	if err := m.before(ctx, f, nil); err != nil {
		return err
	}
	return m.flush()
}

// start gets the first record of each stream. It reads all streams at the same time,
// because several may hang.
func (m *merge) start(f *fan) {
	streams := slices.Clone(f.answers)
	entries, errs := make([]record.Entry, len(streams)), make([]error, len(streams))
	var reading sync.WaitGroup
	for i, s := range streams {
		reading.Go(func() { entries[i], errs[i] = s.answer.Next() })
	}
	reading.Wait()
	for i, s := range streams {
		if errs[i] == nil {
			s.gave = true
			m.heads = append(m.heads, head{s, entries[i]})
			continue
		}
		m.ended(f, s, errs[i])
	}
}

// before sends the records of peers that come before e, or all of them without e.
func (m *merge) before(ctx context.Context, f *fan, e *record.Entry) error {
	for len(m.heads) > 0 {
		least := 0
		for i := range m.heads[1:] {
			if m.heads[i+1].entry.Compare(&m.heads[least].entry) < 0 {
				least = i + 1
			}
		}
		h := &m.heads[least]
		if e != nil && h.entry.Compare(e) > 0 {
			return nil
		}
		if err := m.put(&h.entry); err != nil {
			return err
		}
		m.pull(f, least)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// pull gets the next record of stream i of heads, or removes the stream at its end.
func (m *merge) pull(f *fan, i int) {
	h := &m.heads[i]
	var err error
	if h.entry, err = h.stream.answer.Next(); err != nil {
		m.ended(f, h.stream, err)
		m.heads = slices.Delete(m.heads, i, i+1)
	}
}

// ended notes how the answer of s ended.
func (m *merge) ended(f *fan, s *stream, err error) {
	if err != io.EOF { // not errors.Is: io.EOF may also be the cause of a cut
		f.lose(s, err)
	}
}

// put sends e, unless it is a copy.
func (m *merge) put(e *record.Entry) error {
	if !m.any || m.last.Compare(e) != 0 {
		m.any = true
		m.last.Time, m.last.ID = e.Time, e.ID
		m.last.Line = append(m.last.Line[:0], e.Line...)
		clear(m.others)
		m.alike = 0
		return m.keep(e)
	}
	if string(m.last.Line) == string(e.Line) || m.others[string(e.Line)] {
		return nil
	}
	if m.alike += len(e.Line); m.alike > maxAlike {
		return fmt.Errorf("more than %d bytes of lines with the identity %s %d", maxAlike, e.ID.Origin, e.ID.Index)
	}
	if m.others == nil {
		m.others = map[string]bool{}
	}
	m.others[string(e.Line)] = true
	return m.keep(e)
}

// keep sends e, or holds it back while it may be too old. A single log returns only its
// newest records. If the held lines take too much memory, the oldest are sent: they may
// be more than were asked for.
func (m *merge) keep(e *record.Entry) error {
	if !m.holds {
		return m.send(e.ID, e.Line)
	}
	m.kept = append(m.kept, kept{e.ID, append([]byte(nil), e.Line...)})
	m.keptBytes += len(e.Line)
	if len(m.kept)-m.first > m.query.Newest {
		m.drop()
	}
	for m.keptBytes > maxKept {
		k := m.drop()
		if err := m.send(k.id, k.line); err != nil {
			return err
		}
	}
	return nil
}

// drop removes the oldest line that is held back.
func (m *merge) drop() kept {
	k := m.kept[m.first]
	m.kept[m.first] = kept{}
	m.keptBytes -= len(k.line)
	if m.first++; m.first > len(m.kept)/2 {
		m.kept = append(m.kept[:0], m.kept[m.first:]...)
		m.first = 0
	}
	return k
}

// flush sends the lines that are held back.
func (m *merge) flush() error {
	for _, k := range m.kept[m.first:] {
		if err := m.send(k.id, k.line); err != nil {
			return err
		}
	}
	return nil
}

// send writes one line of the answer.
func (m *merge) send(id record.ID, line []byte) error {
	m.prefix = hex.AppendEncode(m.prefix[:0], id.Origin[:])
	m.prefix = append(m.prefix, ' ')
	m.prefix = strconv.AppendUint(m.prefix, uint64(id.Index), 10)
	m.prefix = append(m.prefix, ' ')
	m.sent++
	_, _ = m.out.Write(m.prefix) // Write of the line returns the error, if there is one
	_, err := m.out.Write(line)
	return err
}
