package loki

import (
	"blobtail/record/meaning"
	"blobtail/record/names"
	"blobtail/source/body"
)

// A decoder makes records of the entries of one body. Its memory serves the next body.
type decoder struct {
	to     body.Sink
	stream labels       // of the entries that come
	meta   []names.Pair // the structured metadata of an entry
	names  body.Names
	text   []byte      // unescaped strings of an entry
	shared body.Shared // what labels of streams add to the records
}

func newDecoder() *decoder {
	return &decoder{names: body.Names{}}
}

// Bounds of the memory that a decoder keeps.
const (
	keptText  = 256 << 10
	keptPairs = 1024
)

// forget makes the decoder ready for another body. It reports whether that is worthwhile.
func (d *decoder) forget() bool {
	if cap(d.text)+cap(d.stream.text) > keptText || cap(d.meta)+cap(d.stream.pairs) > keptPairs {
		return false
	}
	d.to, d.shared = nil, body.Shared{}
	d.stream.source = nil
	d.meta = d.meta[:cap(d.meta)]
	for i := range d.meta {
		d.meta[i].Value = nil
	}
	d.meta = d.meta[:0]
	return true
}

// pair adds an item of metadata. Entries mostly have the names of the one before.
func (d *decoder) pair(name []byte) *names.Pair {
	n := len(d.meta)
	if n < cap(d.meta) && d.meta[:n+1][n].Name == string(name) {
		d.meta = d.meta[:n+1]
	} else {
		d.meta = append(d.meta, names.Pair{Name: d.names.Of(name)})
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
	h := meaning.Head{Time: e.time, Unread: e.badTime != nil, Msg: e.line, Renames: true, Why: d.to.Why()}
	h.Why.Named("the timestamp of the entry", "", "the line of the entry", "")
	level, label := names.BestLevel(d.meta, names.OfLoki), 0
	if level.Text == nil {
		level, label = d.stream.level, d.stream.level.Spent
		level.Spent = 0
	}
	h.SetLevel(level)
	service := d.stream.service
	if service.Text == nil {
		service = names.BestService(d.meta, names.OfLoki)
	}
	h.SetService(service)
	if !d.shared.Add(d.stream.size) {
		return d.to.Reject(e.raw, d.shared.Rejection("the labels of streams add"), e.end)
	}
	if e.badTime != nil {
		h.Why.Time().Pass("ts", e.badTime, meaning.NoTime)
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
