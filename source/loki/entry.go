package loki

import (
	"fmt"

	"blobtail/record"
	"blobtail/source/body"
)

// A decoder makes records of the entries of one body. Its memory serves the next body.
type decoder struct {
	to     body.Sink
	stream labels        // of the entries that come
	meta   []record.Pair // the structured metadata of an entry
	names  map[string]string
	text   []byte // unescaped strings of an entry
	shared int    // bytes that labels of streams have added to the records so far
}

// maxShared is how many bytes the labels of streams may add to the records of a body. A body
// says them once for any number of entries, so that a short body could become lines without end.
const maxShared = 128 << 20

func newDecoder() *decoder {
	return &decoder{names: map[string]string{}}
}

// Bounds of the memory that a decoder keeps.
const (
	keptNames = 1024
	longName  = 64
	keptText  = 256 << 10
	keptPairs = 1024
)

// forget makes the decoder ready for another body. It reports whether that is worthwhile.
func (d *decoder) forget() bool {
	if cap(d.text)+cap(d.stream.text) > keptText || cap(d.meta)+cap(d.stream.pairs) > keptPairs {
		return false
	}
	d.to, d.shared = nil, 0
	d.stream.source = nil
	d.meta = d.meta[:cap(d.meta)]
	for i := range d.meta {
		d.meta[i].Value = nil
	}
	d.meta = d.meta[:0]
	return true
}

// name returns a name as a string, allocated once for most names.
func (d *decoder) name(text []byte) string {
	if s, ok := d.names[string(text)]; ok {
		return s
	}
	if len(text) > longName {
		return string(text)
	}
	if len(d.names) >= keptNames {
		clear(d.names)
	}
	s := string(text)
	d.names[s] = s
	return s
}

// pair adds an item of metadata. Entries mostly have the names of the one before.
func (d *decoder) pair(name []byte) *record.Pair {
	n := len(d.meta)
	if n < cap(d.meta) && d.meta[:n+1][n].Name == string(name) {
		d.meta = d.meta[:n+1]
	} else {
		d.meta = append(d.meta, record.Pair{Name: d.name(name)})
	}
	return &d.meta[n]
}

// An entry is a line of a stream. The metadata are in the decoder.
type entry struct {
	time    int64  // Unix nanoseconds, 0 for none
	badTime []byte // the text of a time that could not be read, nil for none
	line    []byte
	raw     []byte // its source in the body
	end     int    // in the body
}

// record passes an entry to the sink. It reports whether to go on.
func (d *decoder) record(e entry) bool {
	h := record.Head{Time: e.time, Unread: e.badTime != nil, Msg: e.line, Renames: true, Why: d.to.Why()}
	h.Why.Named("the timestamp of the entry", "", "the line of the entry", "")
	level, label := record.BestLevel(d.meta, record.OfLoki), 0
	if level.Text == nil {
		level, label = d.stream.level, d.stream.level.Spent
		level.Spent = 0
	}
	h.SetLevel(level)
	service := d.stream.service
	if service.Text == nil {
		service = record.BestService(d.meta, record.OfLoki)
	}
	h.SetService(service)
	if d.shared += d.stream.size; d.shared > maxShared {
		return d.to.Reject(e.raw, body.Rejection{Reason: fmt.Sprintf(
			"the labels of streams add over %d MiB to the entries of this body; send fewer entries together", maxShared>>20)}, e.end)
	}
	if e.badTime != nil {
		h.Why.Time().Pass("ts", e.badTime, record.NoTime)
	}
	b := d.to.Begin(h)
	for i := range d.meta {
		if i+1 != level.Spent {
			b.Add(&d.meta[i])
		}
	}
	for i := range d.stream.pairs {
		if i+1 != d.stream.service.Spent && i+1 != label {
			b.Add(&d.stream.pairs[i])
		}
	}
	if e.badTime != nil {
		b.Text("ts", e.badTime)
	}
	return d.to.Record(e.raw, 1, e.end)
}
