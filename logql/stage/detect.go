package stage

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/record"
)

// A Field is a label that a query may name, in one record.
type Field struct {
	Name  string
	Value string
	Type  string   // int, float, boolean, duration, bytes or string
	After string   // the parser that makes the label: json or logfmt; "": the record has it
	Path  []string // of json: the keys, from the outermost
}

// Fields returns the fields of a record: its level, its own ones under their flattened names,
// and in the view of messages those that a parser finds in the message. They are not whole if the
// budget ends.
func (v View) Fields(line []byte) []Field {
	var h head
	h.all, h.system = true, true
	s := newState(v, []*ref{newRef(nameServiceName)})
	defer s.release()
	h.set(s, line)
	fields := []Field{{Name: nameDetected, Value: LevelName(s.level), Type: "string"}}
	s.addFields()
	labels, _ := s.labels()
	for _, l := range labels {
		fields = append(fields, Field{Name: l.Name, Value: l.Value, Type: typeOf(l.Value)})
	}
	if v.Lines || s.msg == 0 {
		return fields
	}
	msg := bytes.TrimSpace(s.unescaped(s.raw[s.msg:s.endOfMsg()]))
	if len(msg) > 0 && msg[0] == '{' && record.ValueLen(msg) == len(msg) {
		d := &detector{s: s, fields: fields, seen: map[string]bool{}}
		w := record.Walk(msg)
		d.object(&w, nil)
		return d.fields
	}
	return s.fieldsOf(fields, msg)
}

// A detector gathers the fields of a message that is a JSON object.
type detector struct {
	s      *state
	fields []Field
	seen   map[string]bool
	path   []string
}

func (d *detector) object(w *record.Walker, prefix []byte) {
	for {
		key, at := w.Key()
		if at < 0 || d.s.over() {
			return
		}
		name := appendName(slices.Clip(prefix), key, len(prefix) == 0)
		wanted := len(key) > 0 && len(name) <= maxName
		d.path = append(d.path, string(record.AppendUnescaped(nil, key)))
		if wanted && w.First(at) == '{' {
			w.Enter(at)
			if d.object(w, append(name, '_')); !w.Leave() {
				return
			}
		} else {
			value, ok := w.Value(at)
			if !ok {
				return
			}
			if wanted && value[0] != 'n' && value[0] != '[' {
				d.field(string(name), string(d.s.textOf(value)))
			}
		}
		d.path = d.path[:len(d.path)-1]
	}
}

func (d *detector) field(name, value string) {
	if name == nameServiceName {
		name += extracted
	}
	const pathBytes = 16 // of a key
	if !d.seen[name] && d.s.takes(madeBytes+2*len(name)+len(value)+pathBytes*len(d.path)) {
		d.seen[name] = true
		d.fields = append(d.fields, Field{Name: name, Value: value, Type: typeOf(value), After: "json", Path: slices.Clone(d.path)})
	}
}

// fieldsOf appends the pairs of a message in logfmt. A message of words is none.
func (s *state) fieldsOf(fields []Field, msg []byte) []Field {
	seen := map[string]bool{}
	for p := (logfmtPairs{line: msg}); ; {
		key, value, quoted, ok := p.next()
		if !ok {
			return fields
		}
		if quoted {
			value = s.unescaped(value)
		}
		name := string(appendName(nil, key, true))
		if name == nameServiceName {
			name += extracted
		}
		if len(value) == 0 || len(name) > maxName || seen[name] {
			continue
		}
		if !s.takes(madeBytes + 2*len(name) + len(value)) {
			return fields
		}
		seen[name] = true
		fields = append(fields, Field{Name: name, Value: string(value), Type: typeOf(string(value)), After: "logfmt"})
	}
}

// typeOf is the type of a value by its text.
func typeOf(value string) string {
	if value == "true" || value == "false" {
		return "boolean"
	}
	if value == "" || !strings.ContainsRune("+-.0123456789", rune(value[0])) {
		return "string"
	}
	if _, err := strconv.ParseInt(value, 10, 64); err == nil {
		return "int"
	}
	if _, err := strconv.ParseFloat(value, 64); err == nil {
		return "float"
	}
	if _, err := time.ParseDuration(value); err == nil {
		return "duration"
	}
	if _, err := size([]byte(value)); err == nil {
		return "bytes"
	}
	return "string"
}
