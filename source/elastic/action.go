package elastic

import (
	"bytes"
	"fmt"

	"blobtail/record"
	"blobtail/record/meaning"
)

// A kind is the kind of an action.
type kind uint8

const (
	create kind = iota
	index
	update
	remove
	numKinds
)

// String returns the word for the kind in a body and in an answer.
func (k kind) String() string { return [...]string{"create", "index", "update", "delete"}[k] }

// kindOf returns the kind with a word; ok is false if there is none.
func kindOf(word []byte) (k kind, ok bool) {
	for k := range numKinds {
		if string(word) == k.String() {
			return k, true
		}
	}
	return 0, false
}

// An action is the line before a document.
type action struct {
	target int
	// id is the sender's id of the document as the inside of a JSON string, nil for none.
	id []byte
}

// A reader reads actions. Most are the same as one shortly before, or differ in their ids,
// so it compares before it parses.
type reader struct {
	outer, inner *meaning.Reader // of the line, and of the object in it

	now   action // read last
	forms [8]form
	turn  int    // the form that is replaced next
	text  []byte // memory for the name of an index
	// Memory for an id that is not a plain string.
	id, scratch []byte
}

// A form is a line read before, and its action.
type form struct {
	line          []byte
	before, after []byte // the line around its id, if that is plain
	action        action
}

// read reads a line. The action is now. A reason says that it is none. target returns the
// number of a kind and an index, which is empty if the line has none, and whether later lines
// may have the same.
func (r *reader) read(line []byte, target func(k kind, index []byte) (n int, keep bool)) (reason string) {
	for i := range r.forms {
		f := &r.forms[i]
		if bytes.Equal(line, f.line) {
			r.now = f.action
			return ""
		}
		if id, ok := f.idIn(line); ok {
			r.now = action{f.action.target, id}
			return ""
		}
	}
	k, members, reason := r.open(line)
	if reason != "" {
		return reason
	}
	r.text, r.id, r.now.id = r.text[:0], r.id[:0], nil
	// Of repeated keys the first counts. An action that is nested too deeply has neither an index
	// nor an id, but it has a document.
	if _, err := r.inner.Scan(members); err == nil {
		for key, value := range r.inner.Members() {
			switch string(key) {
			case "_index":
				r.text = appendText(r.text, value)
			case "_id":
				r.now.id = r.idOf(value)
			}
		}
	}
	var keep bool
	if r.now.target, keep = target(k, r.text); keep {
		r.learn(line)
	}
	return ""
}

// idIn returns the id in a line that differs from the form in nothing else.
func (f *form) idIn(line []byte) (id []byte, ok bool) {
	n := len(line) - len(f.before) - len(f.after)
	if f.before == nil || n <= 0 || !bytes.HasPrefix(line, f.before) || !bytes.HasSuffix(line, f.after) {
		return nil, false
	}
	id = line[len(f.before) : len(f.before)+n]
	return id, isPlain(id)
}

// open returns the kind of an action, and the object that describes it.
func (r *reader) open(line []byte) (k kind, members []byte, reason string) {
	n, err := r.outer.Scan(line)
	switch {
	case err != nil:
		return 0, nil, "no action: " + err.Error()
	case len(bytes.TrimSpace(line[n:])) > 0:
		return 0, nil, fmt.Sprintf("no action: at byte %d: text after it", n)
	}
	// The action comes first. Elasticsearch passes over members behind it, which some clients
	// write, such as the "attempts" of winston-elasticsearch.
	first, others := true, false
	for key, value := range r.outer.Members() {
		kind, ok := kindOf(bytes.TrimSuffix(key, []byte(".2"))) // a key that is repeated
		switch {
		case ok && first && value[0] == '{':
			k, members = kind, value
		case ok:
			others = true
		}
		first = false
	}
	if members == nil || others {
		return 0, nil, `no action: want a line such as {"create":{}} or {"index":{}} before each document`
	}
	return k, members, ""
}

// learn remembers a line, and the bytes of it around a plain id.
func (r *reader) learn(line []byte) {
	const key = `"_id":"`
	id := r.now.id
	if len(r.id) > 0 {
		return // the memory of the id is used again
	}
	f := &r.forms[r.turn]
	r.turn = (r.turn + 1) % len(r.forms)
	*f = form{line: line, action: r.now}
	at := bytes.Index(line, []byte(key)) + len(key)
	if at < len(key) || len(id) == 0 || bytes.Contains(line[at:], []byte(key)) {
		return
	}
	if rest, ok := bytes.CutPrefix(line[at:], id); ok && rest[0] == '"' {
		f.before, f.after = line[:at], rest
	}
}

// idOf returns the id in a value as the inside of a JSON string, nil if there is none.
func (r *reader) idOf(value []byte) []byte {
	if value[0] == '"' && isPlain(value[1:len(value)-1]) {
		return value[1 : len(value)-1]
	}
	r.scratch = appendText(r.scratch[:0], value)
	r.id = record.AppendEscaped(r.id[:0], r.scratch)
	return r.id
}

// appendText appends the text of a string or a number; any other value has none.
func appendText(dst, value []byte) []byte {
	switch c := value[0]; {
	case c == '"':
		return record.AppendUnescaped(dst, value[1:len(value)-1])
	case c == '-' || c >= '0' && c <= '9':
		return append(dst, value...)
	}
	return dst
}

// isPlain reports whether a text is printable ASCII without quotes and backslashes.
func isPlain(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
