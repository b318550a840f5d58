package record

// The Elastic Common Schema has objects where other senders have flat names: log has the
// level, service has the name. Only a record that has such an object pays for these.

// isObject reports whether the value of a field is an object.
func (p *Parser) isObject(at int) bool { return at >= 0 && p.src[p.fields[at].val] == '{' }

// member returns the value of the first member of a valid object with a key, or nil.
func (p *Parser) member(object []byte, key string) []byte {
	for i := skipSpace(object, 1); object[i] == '"'; {
		end, state := scanString(object, i+1)
		name := object[i+1 : end]
		if state&stringEscaped != 0 {
			p.scratch = AppendUnescaped(p.scratch[:0], name)
			name = p.scratch
		}
		found := string(name) == key
		i = skipSpace(object, end+1)
		i = skipSpace(object, i+1) // behind the colon
		end, _ = p.scanValue(object[i:])
		if found {
			return object[i : i+end]
		}
		if i = skipSpace(object, i+end); object[i] == ',' {
			i = skipSpace(object, i+1)
		}
	}
	return nil
}

// nestedLevel returns the string or the number in log.level, or nil.
func (p *Parser) nestedLevel() []byte {
	if p.found>>nameLog&1 == 0 || !p.isObject(int(p.slots[nameLog])) {
		return nil
	}
	f := &p.fields[p.slots[nameLog]]
	v := p.member(p.src[f.val:f.valEnd], "level")
	if len(v) > 0 && (v[0] == '"' || isDigit(v[0])) {
		return v
	}
	return nil
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

// msgField is the index of the field with the message, -1 for none.
func (p *Parser) msgField() int {
	if at := p.first(nameMsg, nameLog); at >= 0 && !p.isNoMsg(&p.fields[at]) {
		return at
	}
	return -1
}

// isNoMsg reports whether the field with the first name for the message is an object log,
// which is none.
func (p *Parser) isNoMsg(f *field) bool { return f.known == nameLog && p.src[f.val] == '{' }

// serviceField is the index of the field with the service, -1 for none. If that is an object
// service with a name, it returns the name too, which may be in scratch.
func (p *Parser) serviceField() (at int, name []byte) {
	at = p.first(nameService, nameApp)
	if !p.isObject(at) || p.fields[at].known != nameService {
		return at, nil
	}
	f := &p.fields[at]
	if v := p.member(p.src[f.val:f.valEnd], "name"); len(v) > len(`""`) && v[0] == '"' {
		p.scratch = AppendUnescaped(p.scratch[:0], v[1:len(v)-1])
		return at, p.scratch
	}
	return p.first(nameServiceName, nameApp), nil
}
