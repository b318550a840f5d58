package loki

import (
	"fmt"

	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/record/names"
	"blobtail/source/body"
)

// A decoder makes records of the entries of one body. Its memory serves the next body.
type decoder struct {
	to     body.Sink
	stream labels // of the entries that come
	meta   []pair // the structured metadata of an entry
	names  map[string]string
	text   []byte // unescaped strings of an entry
	shared int    // bytes that labels of streams have added to the records so far
}

// maxShared is how many bytes the labels of streams may add to the records of a body. A body
// says them once for any number of entries, so that a short body could become lines without end.
const maxShared = 128 << 20

// A pair is a label, or an item of structured metadata.
type pair struct {
	name  string
	value []byte
	json  bool // value is JSON, not text
	other bool // the name is known to be no name of a level
}

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
		d.meta[i].value = nil
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
	level, inMeta := bestLevel(d.meta), true
	if level < 0 {
		level, inMeta = d.stream.level, false
	}
	service := d.stream.service
	switch {
	case service >= 0:
		h.Service = d.stream.pairs[service].named(h.Why.Service()).value
	default:
		if at := best(d.meta, serviceRank); at >= 0 {
			h.Service = d.meta[at].named(h.Why.Service()).value
		}
	}
	switch {
	case level < 0:
	case inMeta:
		h.Level = d.meta[level].named(h.Why.Level()).word()
	default:
		h.Level = d.stream.pairs[level].named(h.Why.Level()).word()
	}
	if d.shared += d.stream.size; d.shared > maxShared {
		return d.to.Reject(e.raw, body.Rejection{Reason: fmt.Sprintf(
			"the labels of streams add over %d MiB to the entries of this body; send fewer entries together", maxShared>>20)}, e.end)
	}
	if e.badTime != nil {
		h.Why.Time().Pass("ts", e.badTime, meaning.NoTime)
	}
	b := d.to.Begin(h)
	for i := range d.meta {
		if m := &d.meta[i]; i != level || !inMeta {
			m.add(b)
		}
	}
	for i := range d.stream.pairs {
		l := &d.stream.pairs[i]
		// The head keeps the name of the service, also if it is folded.
		named := i == service && (l.name == "service_name" || l.name == "service")
		if !named && (i != level || inMeta) {
			l.add(b)
		}
	}
	if e.badTime != nil {
		b.Text("ts", e.badTime)
	}
	return d.to.Record(e.raw, 1, e.end)
}

// named notes that a part of a head is that of the pair.
func (p *pair) named(of *meaning.Cause) *pair {
	of.Note(meaning.FromField, p.name)
	return p
}

// word is the value of a pair with the level; of a number, the word that it is under the pair's name.
func (p *pair) word() []byte {
	if l, _ := names.FieldLevel(p.name, p.value); len(p.value) > 0 && p.value[0] <= '9' && l != record.Other {
		return []byte(l.String())
	}
	return p.value
}

func (p *pair) add(b *meaning.Parts) {
	if p.json {
		b.JSON(p.name, p.value)
	} else {
		b.Text(p.name, p.value)
	}
}

// best returns the index of the pair with the lowest rank from 1 on, or -1. 0 is no rank.
func best(pairs []pair, rank func(name string) int) int {
	at, least := -1, 0
	for i := range pairs {
		if n := rank(pairs[i].name); n > 0 && (at < 0 || n < least) {
			at, least = i, n
		}
	}
	return at
}

// bestLevel returns the index of the pair with the level, or -1: of the first name that has one,
// else of the first that has a word of the sender's own. Loki's word for a level that it could not
// detect, unknown, is none.
func bestLevel(pairs []pair) int {
	at, least, own := -1, 0, false
	for i := range pairs {
		p := &pairs[i]
		if p.other {
			continue
		}
		l, place := names.FieldLevel(p.name, p.value)
		if place == 0 || len(p.value) == 0 || string(p.value) == "unknown" || own && l == record.Other && place > least {
			continue
		}
		if at < 0 || own && l != record.Other || own == (l == record.Other) && place < least {
			at, least, own = i, place, l == record.Other
		}
	}
	return at
}

// serviceRank ranks the labels that name a service, in the order in which Loki looks for one
// (discover_service_name,
// https://grafana.com/docs/loki/latest/get-started/labels/#default-labels-for-all-users).
func serviceRank(name string) int {
	switch name {
	case "service_name":
		return 1
	case "service":
		return 2
	case "app":
		return 3
	case "application":
		return 4
	case "app_name":
		return 5
	case "name":
		return 6
	case "app_kubernetes_io_name":
		return 7
	case "container":
		return 8
	case "container_name":
		return 9
	case "k8s_container_name":
		return 10
	case "component":
		return 11
	case "workload":
		return 12
	case "job":
		return 13
	case "k8s_job_name":
		return 14
	}
	return 0
}
