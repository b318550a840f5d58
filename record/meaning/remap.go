package meaning

import (
	"cmp"
	"slices"

	"blobtail/record"
	"blobtail/record/names"
)

// Remap applies the mapping of d to a record by parts, after [Parts.End]. The line is that of End,
// and s its stamp, of a [Reader.Begin] without [Defaults.Seek], which is asked here. A field that
// the mapping names goes into the head. The part of the sender there becomes a field, with
// ".original" appended to its name. The new line is appended to dst; ok is false if the line
// stays as it is. sought says that the caller has looked into the message.
func (p *Reader) Remap(dst, line []byte, s record.Stamp, d *Defaults, sought bool) (_ []byte, _ record.Stamp, ok bool) {
	p.mapped.before = p.mapped.before[:0]
	if !p.ScanLine(line) { // no line of End is so
		return dst, s, false
	}
	p.Found = record.Tags{} // the names of fields say nothing
	was := s
	p.offer(d, &s)
	h := &p.last
	*h = head{time: headTime, level: headLevel, service: headService, msg: headMsg}
	p.remapHead(h, &s, d)
	named := h.level != headLevel || !p.parts.assumed && (s.Level != record.Other || !p.IsEmpty(&p.Fields[headLevel]))
	s.OwnTime = s.OwnTime && !(p.parts.observed && h.time == headTime)
	if f := &p.Fields[h.msg]; d.Seek != nil && !sought && !(named && s.OwnTime) && p.Src[f.Val] == '"' {
		p.soughtOr(d, p.Text(f), &s, named)
	}
	s.OwnTime = s.OwnTime || p.parts.observed
	moved := h.time != headTime || h.level != headLevel || h.service != headService || h.msg != headMsg
	if !moved && s.Level == was.Level && s.Time == was.Time {
		p.retract(&s)
		return dst, s, false
	}
	dst = p.clock.AppendHead(dst, s.Time, nil)
	if s.Level != record.Other {
		dst = append(dst, s.Level.String()...)
	} else {
		dst = p.AppendWord(dst, &p.Fields[h.level])
	}
	dst = append(p.AppendWord(record.AppendService(dst, s.Service), &p.Fields[h.msg]), '"')
	s.LevelUnread = s.Level == record.Other && !p.IsEmpty(&p.Fields[h.level])
	p.retract(&s)
	return append(p.appendRest(dst, h, &was, d), "}\n"...), s, true
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

// appendRest appends the fields that are not in the head, each with the comma before it. was is
// the stamp of the line.
func (p *Reader) appendRest(dst []byte, h *head, was *record.Stamp, d *Defaults) []byte {
	for i := range p.Fields {
		f := &p.Fields[i]
		if i == h.time || i == h.level || i == h.msg || i == h.service && !h.keepService {
			continue
		}
		dst = append(dst, ',', '"')
		switch key := p.Key(f); {
		case i >= headEnd:
			dst = append(dst, key...)
		case i == headTime && !was.OwnTime, i == headService && !ownService(p, was, d), p.IsEmpty(f):
			dst = dst[:len(dst)-2]
			continue
		default:
			dst = append(dst, p.FreeKey(string(key)+".original")...)
		}
		dst = append(dst, '"', ':')
		dst = append(dst, p.Value(f)...)
	}
	return dst
}

// ownService reports whether the head of a line has the sender's service, and no field has it too.
func ownService(p *Reader, was *record.Stamp, d *Defaults) bool {
	own, ok := record.Member(p.Src, "service.name")
	if was.Service == cmp.Or(d.Fallback, record.UnknownService) {
		return false
	}
	return !ok || record.FoldService(string(record.TextOf(own))) != was.Service
}

// Remapped explains the parts of the head that the last call of [Reader.Remap] has found in fields.
func (p *Reader) Remapped(w *Why) {
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
