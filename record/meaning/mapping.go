package meaning

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"slices"

	"blobtail/record"
	"blobtail/record/names"
	"blobtail/record/times"
)

const (
	// MostNames is how many names a [Naming] may have.
	MostNames = 32
	// LongestName is the length of the longest name in a [Naming].
	LongestName = 255
	// mostDots is how many dots of a name may be steps into an object.
	mostDots = 8
)

// Names are the names of the fields that may have the time, the level, the message or the
// service of a record, in the order in which they are tried. Their case does not matter.
type Names struct{ Time, Level, Message, Service []string }

// KnownNames are the names that are tried in every record.
func KnownNames() Names {
	return Names{names.Known(names.Time), names.Known(names.Level), names.Known(names.Message), names.Known(names.Service)}
}

// A Naming is names that an operator or a sender gives for the parts of the head. They are tried
// in their order, before [KnownNames], in any case. A name with dots is that of a field, or else
// that of a member of nested objects.
type Naming struct {
	Names
	// Services are names and globs of the services that the names are for. Empty: all. With
	// services there are no names for the service, because it is found first.
	Services []string
}

// A Mapping has fields that a parser uses besides those with known names. For each part of the head
// the names of the first [Naming] count that are for the service and have names of the part. Any
// number of goroutines may use it.
type Mapping struct {
	of        []Naming
	sender    bool // the first are the sender's own
	selective bool // some are for some services alone
	far       bool
}

// NewMapping makes a mapping; nil if there are no fields.
func NewMapping(of []Naming) *Mapping {
	if len(of) == 0 {
		return nil
	}
	return &Mapping{of: of, selective: slices.ContainsFunc(of, func(f Naming) bool { return len(f.Services) > 0 })}
}

// With returns the mapping of a request with fields that its sender names. A record is refused if a
// field that the sender names for the time has a value that is no time, or one more than [record.MaxAhead]
// after the arrival. m may be nil.
func (m *Mapping) With(sent Names) *Mapping {
	own := &Mapping{of: []Naming{{Names: sent}}, sender: true}
	if m != nil {
		own.of, own.selective, own.far = append(own.of, m.of...), m.selective, m.far
	}
	return own
}

// A chosen has the names for one service.
type chosen struct {
	targets map[string][]target // by the canonical key of a field, in lower case
	longest int                 // length of a key
	some    uint64              // has the bits of the keys
	strict  bool                // the sender has named the time
	levels  []string            // in lower case
}

// A target is a use of a field.
type target struct {
	part  names.Part
	place int
	rest  string // the name of the member, "" for the field itself
	name  string // all of it
}

// choose returns the names for a service. The service itself is found by those for all.
func (m *Mapping) choose(service string) *chosen {
	c := &chosen{targets: make(map[string][]target)}
	done := [names.NumParts]bool{}
	for i := range m.of {
		f := &m.of[i]
		if len(f.Services) > 0 && !slices.ContainsFunc(f.Services, func(p string) bool { return record.MatchService(p, service) }) {
			continue
		}
		for n, own := range [names.NumParts][]string{f.Time, f.Level, f.Message, f.Service} {
			part := names.Part(n)
			if len(own) == 0 || done[part] {
				continue
			}
			done[part] = true
			for place, name := range own {
				c.add(part, place, lower(name))
			}
			switch part {
			case names.Time:
				c.strict = m.sender && i == 0
			case names.Level:
				for _, name := range own {
					c.levels = append(c.levels, lower(name))
				}
			}
		}
	}
	return c
}

func (c *chosen) add(part names.Part, place int, name string) {
	key := func(first, rest string) {
		k := string(record.AppendEscaped(nil, []byte(first)))
		c.targets[k] = append(c.targets[k], target{part, place, rest, name})
		c.longest = max(c.longest, len(k))
		c.some |= keyBit([]byte(k))
	}
	key(name, "")
	dots := 0
	for at := range len(name) {
		if name[at] == '.' && at > 0 && at < len(name)-1 && dots < mostDots {
			dots++
			key(name[:at], name[at+1:])
		}
	}
}

// keyBit is one of 64 bits that a key has, in any case. Most fields have none of a name.
func keyBit(key []byte) uint64 {
	if len(key) == 0 {
		return 1
	}
	return 1 << ((uint(key[0]|0x20) + 7*uint(len(key))) % 64)
}

// lower folds ASCII letters.
func lower(name string) string { return string(appendLower(nil, []byte(name))) }

func appendLower(dst, name []byte) []byte {
	for _, c := range name {
		if c-'A' < 26 {
			c |= 0x20
		}
		dst = append(dst, c)
	}
	return dst
}

// mapped is a parser's memory of a mapping, and of the fields that it found in the present record.
type mapped struct {
	mapping *Mapping
	by      map[string]*chosen // by service
	service string
	now     *chosen // of service
	offers  []offer // by part and place; none without a mapping
	before  []offer // those of the record appended last
	real    int     // fields of the record: behind them are members that are offered
	refused string
}

// An offer is a field that may be used, by its index.
type offer struct {
	target
	at int
}

// Refused returns the reason for which the object or the parts that a line was made of last are no
// record, "" for none. Only a mapping of [Mapping.With] has reasons.
func (p *Reader) Refused() string { return p.mapped.refused }

// namesOfLevel returns the names of levels for the present record, in lower case.
func (p *Reader) namesOfLevel() []string {
	if p.mapped.now == nil {
		return nil
	}
	return p.mapped.now.levels
}

// Mapped reports whether a mapping has the key of a field for a service, or a member of it.
func (p *Reader) Mapped(m *Mapping, service, key string) bool {
	c := p.mapped.choose(m, service)
	var buf [LongestName]byte
	return len(key) <= c.longest && len(c.targets[string(appendLower(buf[:0], []byte(key)))]) > 0
}

// mappedBy returns the level of the object scanned last, which is the message of the present
// record of another parser, under the names for that.
func (p *Reader) mappedBy(of *Reader) record.Level {
	m := &p.mapped
	if m.now = of.mapped.now; m.now == nil {
		return record.Other
	}
	m.mapping, m.real = nil, len(p.Fields)
	p.collect(m.now, false)
	_, _, l := p.mappedLevel()
	p.Fields, m.offers = p.Fields[:m.real], m.offers[:0]
	return l
}

// choose returns the names for a service.
func (m *mapped) choose(of *Mapping, service string) *chosen {
	const most = 1024
	if !of.selective {
		service = ""
	}
	if m.mapping != of {
		m.mapping, m.by, m.now = of, make(map[string]*chosen), nil
	}
	if m.now != nil && m.service == service {
		return m.now
	}
	c := m.by[service]
	if c == nil {
		if len(m.by) >= most {
			clear(m.by)
		}
		c = of.choose(service)
		m.by[service] = c
	}
	m.service, m.now = service, c
	return c
}

// offer notes the fields that the mapping names. retract has to be called before the fields are
// written. parts is the stamp of a record by parts, nil for an object.
func (p *Reader) offer(d *Defaults, parts *record.Stamp) {
	m := &p.mapped
	m.refused, m.real = "", len(p.Fields)
	service := d.Service
	if service == "" && d.Mapping.selective {
		p.collect(m.choose(d.Mapping, ""), true)
		s := record.Stamp{}
		if parts != nil {
			s.Service = parts.Service
			p.mapped.passHead(d, parts)
			if at, text, _ := p.serviceField(); at >= 0 {
				s.Service = p.services.fold(text).name
			}
		} else {
			p.findService(d.Fallback, &s)
		}
		service = s.Service
		p.Fields = p.Fields[:m.real]
	}
	p.collect(m.choose(d.Mapping, service), d.Service == "")
	if parts != nil {
		p.mapped.passHead(d, parts)
	}
}

// retract forgets the offers. The stamp is that of the record.
func (p *Reader) retract(s *record.Stamp) {
	if p.mapped.now.strict && !s.OwnTime {
		for _, f := range p.offered(names.Time) {
			if !emptyTime(p.Value(f)) {
				p.refuse(f, 0, false) // a clock alone
			}
		}
	}
	m := &p.mapped
	m.before = append(m.before[:0], m.offers...)
	p.Fields, m.offers = p.Fields[:m.real], m.offers[:0]
}

// collect makes the offers. service says whether there are some for the service.
func (p *Reader) collect(c *chosen, service bool) {
	var buf [LongestName]byte
	all := p.mapped.offers[:0]
	for i := range p.Fields {
		f := &p.Fields[i]
		key := p.Key(f)
		if len(key) > c.longest || keyBit(key)&c.some == 0 {
			continue
		}
		for _, t := range c.targets[string(appendLower(buf[:0], key))] {
			if (t.rest == "" || p.IsObject(i)) && (service || t.part != names.Service) {
				all = append(all, offer{t, i})
			}
		}
	}
	if len(all) > 1 {
		slices.SortStableFunc(all, func(a, b offer) int {
			return cmp.Or(cmp.Compare(a.part, b.part), cmp.Compare(a.place, b.place), cmp.Compare(a.order(), b.order()))
		})
	}
	p.mapped.offers = p.resolve(all)
}

// order is the place of a target among those of one name: the field itself is the first, and then
// the outermost object.
func (t target) order() int {
	if t.rest == "" {
		return 0
	}
	return LongestName + 1 - len(t.rest)
}

// resolve makes fields of the members that are offered. It leaves out a member if a field has its
// whole name.
func (p *Reader) resolve(all []offer) []offer {
	kept := all[:0]
	part, place := names.NumParts, 0 // of the last whole name that is a field
	for _, o := range all {
		if o.rest == "" {
			if f := &p.Fields[o.at]; f.Tag == 0 {
				f.Tag = names.Mapped
			}
			part, place = o.part, o.place
			kept = append(kept, o)
			continue
		}
		if o.part == part && o.place == place {
			continue
		}
		if val, end := within(p.Src, int(p.Fields[o.at].Val), o.rest); end > 0 {
			o.at = p.Add(val, end, names.Mapped)
			kept = append(kept, o)
		}
	}
	return kept
}

// within returns the place of a member of the object at a place of the source: of the one with a
// name, or else for a.b of the one named b in the object a. The end is 0 for none.
func within(src []byte, at int, name string) (val, end int) {
	w := record.Walk(src)
	for w.Enter(at); ; {
		key, i := w.Key()
		if i < 0 {
			return val, end
		}
		value, ok := w.Value(i)
		if !ok {
			return val, end
		}
		if bytes.IndexByte(key, '\\') >= 0 {
			key = record.AppendUnescaped(nil, key)
		}
		switch {
		case len(key) == 0 || len(key) > len(name) || !record.IsFolded(key, name[:len(key)]):
		case len(key) == len(name):
			return i, i + len(value)
		case end == 0 && name[len(key)] == '.' && value[0] == '{':
			val, end = within(src, i, name[len(key)+1:])
		}
	}
}

// offered iterates over the fields that are offered for a part.
func (p *Reader) offered(part names.Part) iter.Seq2[int, *record.Field] {
	return func(yield func(int, *record.Field) bool) {
		for i := range p.mapped.offers {
			if o := &p.mapped.offers[i]; o.part == part && !yield(o.at, &p.Fields[o.at]) {
				return
			}
		}
	}
}

// mappedTime is findTime for the fields that are offered. A date or a clock is in parts.
func (p *Reader) mappedTime(d *Defaults, latest int64, s *record.Stamp) (at int, parts timeParts) {
	parts = timeParts{dayAt: -1, clockAt: -1}
	for at, f := range p.offered(names.Time) {
		text, _ := p.timeText(f)
		ns, part := p.readTime(f, text, d)
		switch ahead := part != times.None && part != times.Clock && ns > latest; {
		case part == times.Full && !ahead:
			s.Time, s.OwnTime = ns, true
			return at, parts
		case !ahead && parts.add(at, ns, part, latest):
		case !emptyTime(p.Value(f)):
			s.TimeUnread = true
			p.refuse(f, ns, ahead)
		}
	}
	return -1, parts
}

// refuse notes why the record is refused for a field that the sender has named for the time.
func (p *Reader) refuse(f *record.Field, ns int64, ahead bool) {
	const shown = 64
	m := &p.mapped
	switch {
	case !m.now.strict || m.refused != "":
	case ahead:
		m.refused = fmt.Sprintf("the time %s of the field that _time names is more than 24h ahead", record.AppendTime(nil, ns))
	default:
		m.refused = fmt.Sprintf("the field that _time names is no time: %s", record.CutText(p.Value(f), shown))
	}
}

// mappedLevel is findLevel for the fields that are offered. own is the first with a word of the
// sender's own, or -1.
func (p *Reader) mappedLevel() (at, own int, l record.Level) {
	own = -1
	for at, f := range p.offered(names.Level) {
		known := f.Tag
		if known >= names.Priority {
			f.Tag = names.Mapped
		}
		l, _ = p.levelOf(f)
		f.Tag = known
		if l != record.Other {
			return at, own, l
		}
		if own < 0 && p.isOwnLevel(f) {
			own = at
		}
	}
	return -1, own, record.Other
}

// mappedWord returns the first field with a text that is offered for a part, or -1. other is the
// first with another value that may be one.
func (p *Reader) mappedWord(part names.Part) (at, other int) {
	other = -1
	for at, f := range p.offered(part) {
		switch c := p.Src[f.Val]; {
		case c == '"' && f.ValEnd-f.Val > 2:
			return at, other
		case other < 0 && c != '"' && c != 'n' && c != '{':
			other = at
		}
	}
	return -1, other
}
