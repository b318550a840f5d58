package meaning

import (
	"bytes"
	"cmp"
	"slices"

	"blobtail/record"
	"blobtail/record/names"
	"blobtail/record/text"
)

// mapsLevel reports whether a record by parts has the level of a pair in its message that the mapping
// names, which the seeker has noted, and no level but one of the message.
func (p *Reader) mapsLevel(h *Head, d *Defaults) bool {
	service := d.Service
	if service == "" && len(h.Service) > 0 {
		service = record.FoldService(string(h.Service))
	}
	word := text.NamedLevel(h.Msg, p.mapped.choose(d.Mapping, cmp.Or(service, d.Fallback)).levels)
	if word != nil && len(h.Level) > 0 {
		p.Seek(nil, d, true)
		p.seeker.text(h.Msg)
		if !bytes.Equal(h.Level, p.seeker.found.word) {
			return false
		}
	}
	p.seeker.found.word = word
	return word != nil
}

// remap applies the mapping to a record by parts that has ended with a line. A field that
// the mapping names goes into the head. The part of the sender there becomes a field, with
// ".original" appended to its name. The message is looked into now, since no level was sought before.
func (p *Reader) remap(b *Parts, line []byte) ([]byte, record.Stamp, error) {
	d, s := b.d, b.stamp
	p.mapped.before = p.mapped.before[:0]
	if !p.ScanLine(line[b.from:]) { // no line of End is so
		return line, s, nil
	}
	p.Found = record.Tags{} // the names of fields say nothing
	h := &p.last
	*h = head{time: headTime, level: headLevel, service: headService, msg: headMsg, parts: true}
	p.offer(d, &s)
	p.remapHead(h, &s, d)
	h.dropTime, h.dropService = !b.stamp.OwnTime, h.service != headService && !ownService(p, &b.stamp, d)
	named := h.level != headLevel || !b.assumed && (s.Level != record.Other || !p.IsEmpty(&p.Fields[headLevel]))
	s.OwnTime = s.OwnTime && !(b.observed && h.time == headTime)
	if f := &p.Fields[h.msg]; d.Seeks && !b.sought && !(named && s.OwnTime) && p.Src[f.Val] == '"' {
		p.soughtOr(d, p.Text(f), &s, named)
	}
	s.OwnTime = s.OwnTime || b.observed
	moved := h.time != headTime || h.level != headLevel || h.service != headService || h.msg != headMsg
	if moved = moved || s.Level != b.stamp.Level || s.Time != b.stamp.Time; moved {
		s.LevelUnread = s.Level == record.Other && !p.IsEmpty(&p.Fields[h.level])
		b.mapped = p.appendHead(b.mapped[:0], nil, &s)
	}
	p.retract(&s)
	if d.Explains {
		b.explain()
	}
	if !moved {
		return line, s, nil
	}
	b.mapped = append(p.appendFields(b.mapped, h), "}\n"...)
	return append(line[:b.from], b.mapped...), s, nil
}

// The places of the head among the fields of a line.
const (
	headTime = iota
	headLevel
	headService
	headMsg
	headEnd
)

// passHead passes over a time and a service of the head that are not the sender's.
func (m *mapped) passHead(d *Defaults, s *record.Stamp) {
	m.offers = slices.DeleteFunc(m.offers, func(o offer) bool {
		return o.at == headTime && !s.OwnTime || o.at == headService && s.Service == cmp.Or(d.Fallback, record.UnknownService)
	})
}

// remapHead finds the parts of the head among the fields that are offered.
func (p *Reader) remapHead(h *head, s *record.Stamp, d *Defaults) {
	var found record.Stamp
	if at, _ := p.findTime(names.Ts, d, &found); found.OwnTime {
		h.time, s.Time, s.OwnTime, s.Guessed = at, found.Time, true, false
	}
	s.TimeUnread = s.TimeUnread || found.TimeUnread
	if at, l := p.findLevel(); at >= 0 && (l != record.Other || s.Level == record.Other) {
		h.level, s.Level = at, l
	}
	if at := p.msgField(); at >= 0 {
		h.msg = at
	}
	if at, text, _ := p.serviceField(); at >= 0 && at != headService {
		folded := p.services.fold(text)
		h.service, h.keepService, s.Service = at, !folded.same, folded.name
	}
}

// ownService reports whether the head of a line has the sender's service, and no field has it too.
func ownService(p *Reader, was *record.Stamp, d *Defaults) bool {
	own, ok := record.Member(p.Src, "service.name")
	if was.Service == cmp.Or(d.Fallback, record.UnknownService) {
		return false
	}
	return !ok || record.FoldService(string(record.TextOf(own))) != was.Service
}

// remapped explains the parts of the head that the mapping has found in fields.
func (p *Reader) remapped(w *Why) {
	at := [names.NumParts]int{p.last.time, p.last.level, p.last.msg, p.last.service}
	for i, own := range [names.NumParts]int{headTime, headLevel, headMsg, headService} {
		if at[i] != own {
			w.parts[i] = p.mapped.cause(names.Part(i), at[i])
		}
	}
}

// WithFar returns the mapping with which guessed times are believed however far off they are, or not
// again. m may be nil.
func (m *Mapping) WithFar(far bool) *Mapping {
	own := &Mapping{}
	if m != nil {
		*own = *m
	}
	own.far = far
	return own
}

// Far reports whether guessed times are believed however far off they are. m may be nil.
func (m *Mapping) Far() bool { return m != nil && m.far }

// Named returns the mapping, or nil if it has no names. m may be nil.
func (m *Mapping) Named() *Mapping {
	if m == nil || len(m.of) == 0 {
		return nil
	}
	return m
}
