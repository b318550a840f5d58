package record

import (
	"bytes"
	"math/bits"
	"strconv"

	"blobtail/record/times"
)

// The Elastic Common Schema has objects where other senders have flat names: log has the
// level, service has the name. Only a record that has such an object pays for these.

// isObject reports whether the value of a field is an object.
func (p *Parser) isObject(at int) bool { return at >= 0 && p.src[p.fields[at].val] == '{' }

// member returns the value of the first member of a valid object with a key, or nil.
func member(object []byte, key string) []byte {
	for w := Walk(object); ; {
		name, value, ok := w.Member()
		if !ok {
			return nil
		}
		if isKey(name, key) {
			return value
		}
	}
}

// findLevel finds the field with the level, or -1. l is Other for a word of the sender's own.
// A field with a name from [namePriority] on stays: at is -1, and l the level.
func (p *Parser) findLevel() (at int, l Level) {
	own := -1
	if len(p.mapped.offers) > 0 {
		if at, own, l = p.mappedLevel(); at >= 0 {
			return at, l
		}
	}
	if p.found[kindLevel/perKind]&1 != 0 { // as nearly all records have it
		f := &p.fields[p.slots[kindLevel]]
		if v := p.src[f.val:f.valEnd]; v[0] == '"' {
			if l = LevelOf(v[1 : len(v)-1]); l != Other {
				return int(p.slots[kindLevel]), l
			}
		}
	}
	for left := p.found[kindLevel/perKind]; left != 0; left &= left - 1 {
		n := kindLevel + name(bits.TrailingZeros32(left))
		for at = int(p.slots[n]); at >= 0; at = p.next(at) {
			f := &p.fields[at]
			switch l = p.levelOf(f); {
			case l != Other && n >= namePriority:
				if own < 0 {
					p.levelAt = at
					return -1, l
				}
			case l != Other:
				return at, l
			case own < 0 && n <= nameLogLevel && p.isOwnLevel(f):
				own = at
			}
		}
	}
	if own < 0 && p.has(nameAtT) && (p.has(nameAtM) || p.has(nameAtMt)) {
		p.levelAt = int(p.slots[nameAtT])
		return -1, Info // Serilog leaves it out
	}
	return own, Other
}

// isOwnLevel reports whether a field may have a word of the sender's own for a level: a string
// or a number.
func (p *Parser) isOwnLevel(f *field) bool {
	c := p.src[f.val]
	return c == '-' || isDigit(c) || c == '"' && f.valEnd-f.val > 2
}

// levelOf returns the level that a field has by the vocabulary of its name.
func (p *Parser) levelOf(f *field) Level {
	v := p.src[f.val:f.valEnd]
	if v[0] == '"' {
		if l := LevelOf(v[1 : len(v)-1]); l != Other && f.known != nameS {
			return l
		}
		return levelBy(f.known, p.text(f))
	}
	if !isDigit(v[0]) || f.known >= namePriority {
		return Other
	}
	return levelBy(f.known, v)
}

// levelBy returns the level that a text is by the vocabulary of a name.
func levelBy(n name, text []byte) Level {
	switch n {
	case nameLevelNo, nameLevelValue, nameSeverityNum, nameSeverityNum2:
		return levelNumber(n, text)
	case nameS:
		if len(text) == 0 || text[0]-'A' >= 26 || len(text) > len("D5") {
			return Other // MongoDB has letters
		}
	}
	return ParseLevel(text)
}

// FieldLevel returns the level that a field of a record by parts has, and the place of its name
// in [KnownNames], from 1 on. A lower place is tried first. It is 0 if the name is none of a level,
// or says too little.
func FieldLevel(key string, text []byte) (l Level, place int) {
	n := lookupName([]byte(key))
	if n/perKind != kindLevel/perKind || n >= namePriority {
		return Other, 0
	}
	return levelBy(n, text), int(n-kindLevel) + 1
}

// FirstLevel returns the level of an object, if its first members are texts, numbers or the words
// of JSON up to one that is called level and has a level, as loggers write them. ok is false for
// other objects: a [Parser] has to read these. The object need not be valid behind that member.
func FirstLevel(object []byte) (l Level, ok bool) {
	const most = 16
	if len(object) == 0 || object[0] != '{' {
		return Other, false
	}
	i := skipSpace(object, 1)
	for range most {
		if i >= len(object) || object[i] != '"' {
			return Other, false
		}
		end, state := scanString(object, i+1)
		if state != 0 {
			return Other, false
		}
		key := object[i+1 : end]
		if i = skipSpace(object, end+1); i >= len(object) || object[i] != ':' {
			return Other, false
		}
		i = skipSpace(object, i+1)
		from := i
		if i < len(object) && object[i] == '"' {
			if end, state = scanString(object, i+1); state == stringBad {
				return Other, false
			}
			i = end + 1
		} else if end, bad := scanScalar(object, i); bad == nil {
			i = end
		} else {
			return Other, false
		}
		if len(key) == len("level") && lookupName(key) == kindLevel {
			l = ParseLevel(bytes.Trim(object[from:i], `"`))
			return l, l != Other && string(key) == "level"
		}
		if i = skipSpace(object, i); i >= len(object) || object[i] != ',' {
			return Other, false
		}
		i = skipSpace(object, i+1)
	}
	return Other, false
}

// StayingLevel returns the level of a field of a record by parts with a name that others use for
// other things too, such as priority. The field stays. It is Other for any other field.
func StayingLevel(key string, text []byte) Level {
	if n := lookupName([]byte(key)); n/perKind == kindLevel/perKind && n >= namePriority {
		return levelBy(n, text)
	}
	return Other
}

// TimePlace returns the place of a name in [KnownNames] of times, from 1 on, or 0.
func TimePlace(key string) int {
	if n := lookupName([]byte(key)); n/perKind == kindTime/perKind {
		return int(n-kindTime) + 1
	}
	return 0
}

// MessagePlace returns the place of a name in [KnownNames] of messages, from 1 on, or 0.
func MessagePlace(key string) int {
	if n := lookupName([]byte(key)); n/perKind == kindMsg/perKind {
		return int(n-kindMsg) + 1
	}
	return 0
}

// levelNumber returns the level that a number has in Python's logging, in Logback or in
// OpenTelemetry.
func levelNumber(n name, text []byte) Level {
	v, err := strconv.Atoi(string(text))
	switch {
	case err != nil || v < 1:
		return Other
	case n == nameLevelNo:
		v /= 10
	case n == nameLevelValue:
		v /= 10_000
	default:
		v = (v - 1) / 4
	}
	return Level(min(v, int(Other)))
}

// path returns the value of the last of some keys, each a member of the one before, and the first
// of the field with a name. It is nil if there is none.
func (p *Parser) path(n name, keys ...string) []byte {
	if !p.has(n) || !p.isObject(int(p.slots[n])) {
		return nil
	}
	f := &p.fields[p.slots[n]]
	v := p.src[f.val:f.valEnd]
	for _, key := range keys {
		if len(v) == 0 || v[0] != '{' {
			return nil
		}
		v = member(v, key)
	}
	return v
}

// The objects that may have members for the head.
const (
	parentFields = kindParent + iota
	parentPayload
	parentRecord
	parentKubernetes
	parentContext
	parentBody
	parentMeta // of tslog
	parentLogMeta
)

// nestedTime returns the time in the objects of loguru and of tslog, at most latest, with the
// path of its member; "" for none.
func (p *Parser) nestedTime(latest int64) (ns int64, path string) {
	if p.found[kindParent/perKind] == 0 {
		return 0, ""
	}
	for _, m := range [...]struct {
		v    []byte
		path string
	}{
		{p.path(parentRecord, "time", "timestamp"), "record.time.timestamp"},
		{p.path(parentMeta, "date"), "_meta.date"},
		{p.path(parentLogMeta, "date"), "_logMeta.date"},
	} {
		if len(m.v) == 0 {
			continue
		}
		if ns, part := p.times.Read(TextOf(m.v)); part == times.Full && ns <= latest {
			return ns, m.path
		}
	}
	return 0, ""
}

// nestedLevel returns the string or the number in log.level, or in the objects of Google's
// logging, of loguru, Roarr and tslog; nil for none.
func (p *Parser) nestedLevel() []byte {
	if p.found[kindParent/perKind] == 0 && !(p.has(nameLog) && p.isObject(int(p.slots[nameLog]))) {
		return nil
	}
	v, _ := p.nestedLevelAt()
	return v
}

// nestedLevelAt is nestedLevel, with the path of the member.
func (p *Parser) nestedLevelAt() (v []byte, path string) {
	for _, m := range [...]struct {
		v    []byte
		path string
	}{
		{p.path(nameLog, "level"), "log.level"},
		{p.path(parentPayload, "severity"), "jsonPayload.severity"},
		{p.path(parentPayload, "level"), "jsonPayload.level"},
		{p.path(parentRecord, "level", "name"), "record.level.name"},
		{p.path(parentContext, "logLevel"), "context.logLevel"},
		{p.path(parentMeta, "logLevelName"), "_meta.logLevelName"},
		{p.path(parentLogMeta, "logLevelName"), "_logMeta.logLevelName"},
	} {
		if len(m.v) > 0 && (m.v[0] == '"' || isDigit(m.v[0])) && string(m.v) != `""` {
			return m.v, m.path
		}
	}
	return nil, ""
}

// nestedMsg returns the string of the message in the objects of tracing for Rust, of Google's
// logging and of loguru; nil for none.
func (p *Parser) nestedMsg() []byte {
	if p.found[kindParent/perKind] == 0 {
		return nil
	}
	v, _ := p.nestedMsgAt()
	return v
}

// nestedMsgAt is nestedMsg, with the path of the member.
func (p *Parser) nestedMsgAt() (v []byte, path string) {
	for _, m := range [...]struct {
		v    []byte
		path string
	}{
		{p.path(parentFields, "message"), "fields.message"},
		{p.path(parentPayload, "message"), "jsonPayload.message"},
		{p.path(parentRecord, "message"), "record.message"},
		{p.path(parentBody, "Value"), "Body.Value"},
	} {
		if len(m.v) > len(`""`) && m.v[0] == '"' {
			return m.v, m.path
		}
	}
	return nil, ""
}

// appendNestedLevel is appendLevel for a value of nestedLevel.
func (p *Parser) appendNestedLevel(dst, v []byte) ([]byte, Level) {
	if v[0] == '"' {
		v = v[1 : len(v)-1]
		p.scratch = AppendUnescaped(p.scratch[:0], v)
		if l := ParseLevel(p.scratch); l != Other {
			return append(dst, l.String()...), l
		}
		return appendCanonical(dst, v), Other
	}
	if l := ParseLevel(v); l != Other {
		return append(dst, l.String()...), l
	}
	return append(dst, v...), Other
}

// msgField is the index of the field with the message, -1 for none: the first with a text, else
// the first with another value that may be one.
func (p *Parser) msgField() int {
	other := -1
	if len(p.mapped.offers) > 0 {
		var at int
		if at, other = p.mappedWord(partMsg); at >= 0 {
			return at
		}
	}
	if p.found[kindMsg/perKind]&1 != 0 { // as nearly all records have it
		if f := &p.fields[p.slots[kindMsg]]; p.src[f.val] == '"' && f.valEnd-f.val > 2 {
			return int(p.slots[kindMsg])
		}
	}
	for left := p.found[kindMsg/perKind]; left != 0; left &= left - 1 {
		n := kindMsg + name(bits.TrailingZeros32(left))
		for at := int(p.slots[n]); at >= 0; at = p.next(at) {
			f := &p.fields[at]
			switch c := p.src[f.val]; {
			case n == nameText && p.nestedMsg() != nil:
				return -1
			case c == '"' && f.valEnd-f.val > 2:
				return at
			case other < 0 && n <= nameLog && c != '"' && c != 'n' && (n != nameLog || c != '{'):
				other = at
			}
		}
	}
	return other
}

// serviceField finds the field with the service, -1 for none, and its text, which may be in
// scratch. nested says that the text is a member of the field.
func (p *Parser) serviceField() (at int, text []byte, nested bool) {
	other := -1
	if len(p.mapped.offers) > 0 {
		if at, other = p.mappedWord(partService); at >= 0 {
			return at, p.text(&p.fields[at]), false
		}
	}
	for left := p.found[kindService/perKind]; left != 0; left &= left - 1 {
		n := kindService + name(bits.TrailingZeros32(left))
		for at = int(p.slots[n]); at >= 0; at = p.next(at) {
			f := &p.fields[at]
			switch c := p.src[f.val]; {
			case c == '"' && f.valEnd-f.val > 2:
				return at, p.text(f), false
			case c == '{' && n == nameService:
				if v := p.path(n, "name"); len(v) > len(`""`) && v[0] == '"' {
					p.scratch = AppendUnescaped(p.scratch[:0], v[1:len(v)-1])
					return at, p.scratch, true
				}
			case other < 0 && n <= nameApp && c != '"' && c != 'n' && c != '{':
				other = at
			}
		}
	}
	if other >= 0 {
		return other, p.compact(&p.fields[other]), false
	}
	if p.found[kindParent/perKind] == 0 {
		return -1, nil, false
	}
	if v := p.path(parentKubernetes, "container_name"); len(v) > len(`""`) && v[0] == '"' {
		p.scratch = AppendUnescaped(p.scratch[:0], v[1:len(v)-1])
		return int(p.slots[parentKubernetes]), p.scratch, true
	}
	return -1, nil, false
}
