package record

import (
	"cmp"
	"slices"
)

// Remap applies the mapping of d to a record by parts, after [Parts.End]. The line is that of End,
// and s its stamp, of a [Parser.Begin] without [Defaults.Seek], which is asked here. A field that
// the mapping names goes into the head. The part of the sender there becomes a field, with
// ".original" appended to its name. The new line is appended to dst; ok is false if the line
// stays as it is. sought says that the caller has looked into the message.
func (p *Parser) Remap(dst, line []byte, s Stamp, d *Defaults, sought bool) (_ []byte, _ Stamp, ok bool) {
	p.reset()
	n, bad := p.scanObject(line)
	if bad != nil || p.reject != nil { // no line of End is so
		p.fields = p.fields[:0]
		return dst, s, false
	}
	p.src, p.found = line[:n], present{} // the names of fields say nothing
	p.learnShape()
	was := s
	p.offer(d, &s)
	own := head{time: headTime, level: headLevel, service: headService, msg: headMsg}
	h := &p.last
	*h = own
	p.remapHead(h, &s, d)
	named := h.level != headLevel || !p.parts.assumed && (s.Level != Other || !p.isEmpty(&p.fields[headLevel]))
	s.OwnTime = s.OwnTime && !(p.parts.observed && h.time == own.time)
	if f := &p.fields[h.msg]; d.Seek != nil && !sought && !(named && s.OwnTime) && p.src[f.val] == '"' {
		p.soughtOr(d, p.text(f), &s, named)
	}
	s.OwnTime = s.OwnTime || p.parts.observed
	if h.time == own.time && h.level == own.level && h.service == own.service && h.msg == own.msg && s.Level == was.Level && s.Time == was.Time {
		p.retract(&s)
		return dst, s, false
	}
	dst = append(dst, tsPrefix...)
	dst = p.clock.append(dst, s.Time)
	dst = append(dst, levelPrefix...)
	if s.Level != Other {
		dst = append(dst, s.Level.String()...)
	} else {
		dst = p.appendWord(dst, &p.fields[h.level])
	}
	dst = append(dst, servicePrefix...)
	dst = append(dst, s.Service...)
	dst = append(dst, msgPrefix...)
	dst = append(p.appendWord(dst, &p.fields[h.msg]), '"')
	s.LevelUnread = s.Level == Other && !p.isEmpty(&p.fields[h.level])
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
func (p *Parser) passHead(d *Defaults, s *Stamp) {
	p.mapped.offers = slices.DeleteFunc(p.mapped.offers, func(o offer) bool {
		return o.at == headTime && !s.OwnTime || o.at == headService && s.Service == cmp.Or(d.Fallback, unknownService)
	})
}

// remapHead finds the parts of the head among the fields that are offered.
func (p *Parser) remapHead(h *head, s *Stamp, d *Defaults) {
	var found Stamp
	if at, _ := p.findTime(nameTs, d, &found); found.OwnTime {
		h.time, s.Time, s.OwnTime, s.Guessed = at, found.Time, true, false
	}
	s.TimeUnread = s.TimeUnread || found.TimeUnread
	if at, l := p.findLevel(); at >= 0 && (l != Other || s.Level == Other) {
		h.level, s.Level = at, l
	}
	if at := p.msgField(); at >= 0 {
		h.msg = at
	}
	if at, text, _ := p.serviceField(); at >= 0 && at != headService {
		folded := p.foldCached(text)
		h.service, h.keepService, s.Service = at, !folded.same, folded.name
	}
}

// appendRest appends the fields that are not in the head, each with the comma before it. was is
// the stamp of the line.
func (p *Parser) appendRest(dst []byte, h *head, was *Stamp, d *Defaults) []byte {
	for i := range p.fields {
		f := &p.fields[i]
		if i == h.time || i == h.level || i == h.msg || i == h.service && !h.keepService {
			continue
		}
		dst = append(dst, ',', '"')
		switch key := p.key(p.src, f); {
		case i >= headEnd:
			dst = append(dst, key...)
		case i == headTime && !was.OwnTime, i == headService && !p.ownService(was, d), p.isEmpty(f):
			dst = dst[:len(dst)-2]
			continue
		default:
			dst = append(dst, p.freeKey(string(key)+".original")...)
		}
		dst = append(dst, '"', ':')
		dst = append(dst, p.src[f.val:f.valEnd]...)
	}
	return dst
}

// ownService reports whether the head of a line has the sender's service, and no field has it too.
func (p *Parser) ownService(was *Stamp, d *Defaults) bool {
	own, ok := lookupKey(p.src, "service.name", true)
	return was.Service != cmp.Or(d.Fallback, unknownService) && !(ok && FoldService(string(TextOf(own))) == was.Service)
}

// Remapped explains the parts of the head that the last call of [Parser.Remap] has found in fields.
func (p *Parser) Remapped(w *Why) {
	at := [numParts]int{p.last.time, p.last.level, p.last.msg, p.last.service}
	for i, own := range [numParts]int{headTime, headLevel, headMsg, headService} {
		if at[i] != own {
			w.parts[i] = p.mappedCause(headPart(i), at[i])
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
