package loki

import (
	"blobtail/record"
	"blobtail/record/names"
	"blobtail/record/times"
	"blobtail/source/body"
	"blobtail/source/tokens"
)

// json passes the entries of a push request in JSON to the sink. A body that is broken is
// rejected from the broken stream on. The form of before 2019 is read too: a stream with
// labels in one text, and entries that are objects.
func (d *decoder) json(b []byte) {
	c := &tokens.Cursor{Src: b}
	if c.Next() == 0 && c.Fault == "" {
		return
	}
	from := min(c.At, len(b)) // of the stream that is being read
	has, wrong := c.Enter('{')
	if wrong {
		c.Stop("a push request is an object")
	}
	other, any := false, false // members
	for ; has; has = c.More('{') {
		if string(c.Key()) != "streams" {
			other = true
			c.Skip()
			continue
		}
		any = true
		streams, wrong := c.Enter('[')
		if wrong {
			c.Stop("streams is an array")
		}
		for ; streams; streams = c.More('[') {
			from = start(c)
			if !d.jsonStream(c) {
				return
			}
		}
	}
	if c.Fault == "" && c.Next() != 0 {
		from = c.At
		c.Stop("text after the object")
	}
	if other && !any && c.Fault == "" {
		from = 0
		c.Stop("the object has no streams")
	}
	if c.Fault != "" {
		d.to.Reject(b[from:], body.Rejection{Reason: "no push request in JSON: " + c.Fault, Syntax: true}, len(b))
	}
}

// start is the offset of the next token.
func start(c *tokens.Cursor) int {
	c.Next()
	return c.At
}

// jsonStream passes the entries of a stream, and reports whether the sink accepts more. The
// labels may come last.
func (d *decoder) jsonStream(c *tokens.Cursor) (more bool) {
	d.stream.clear()
	from, labelled := c.At, false
	waiting := -1 // where the entries begin that came before the labels
	bad := error(nil)
	has, wrong := c.Enter('{')
	if wrong {
		c.Stop("a stream is an object")
	}
	for ; has; has = c.More('{') {
		switch string(c.Key()) {
		case "stream":
			labelled = true
			d.jsonLabels(c)
		case "labels":
			labelled = true
			bad = d.jsonSelector(c)
		case "values", "entries":
			if !labelled || bad != nil {
				waiting = start(c)
				c.Skip()
			} else if !d.jsonEntries(c) {
				return false
			}
		default:
			c.Skip()
		}
	}
	switch {
	case c.Fault != "":
		return true
	case bad != nil:
		return d.to.Reject(c.Src[from:c.At], body.Rejection{Reason: bad.Error()}, c.At)
	case waiting < 0:
		return true
	}
	again := &tokens.Cursor{Src: c.Src[:c.At], At: waiting}
	return d.jsonEntries(again)
}

// jsonLabels reads an object of texts. Other values stay JSON.
func (d *decoder) jsonLabels(c *tokens.Cursor) {
	has, wrong := c.Enter('{')
	if wrong {
		c.Stop("the labels of a stream are an object")
	}
	l := &d.stream
	for ; has; has = c.More('{') {
		name := d.names.Of(record.AppendUnescaped(nil, c.Key()))
		switch c.Next() {
		case 'n': // null
			c.Skip()
		case '"':
			inside, _ := c.Quoted()
			from := len(l.text)
			l.text = record.AppendUnescaped(l.text, inside)
			l.pairs = append(l.pairs, names.Pair{Name: name, Value: l.text[from:]})
		default:
			l.pairs = append(l.pairs, names.Pair{Name: name, Value: c.Skip(), JSON: true})
		}
	}
	l.find()
}

// jsonSelector reads labels in one text.
func (d *decoder) jsonSelector(c *tokens.Cursor) error {
	inside, _ := c.Quoted()
	if c.Fault != "" {
		return nil // the whole body is broken
	}
	return d.selector(record.AppendUnescaped(nil, inside))
}

// jsonEntries passes a list of entries, or null, and reports whether the sink accepts more.
func (d *decoder) jsonEntries(c *tokens.Cursor) (more bool) {
	has, wrong := c.Enter('[')
	if wrong {
		c.Stop("the values of a stream are an array")
	}
	for ; has; has = c.More('[') {
		e, from := entry{}, start(c)
		d.meta, d.text = d.meta[:0], d.text[:0]
		if c.Next() == '{' {
			d.jsonOld(c, &e)
		} else {
			d.jsonEntry(c, &e)
		}
		if c.Fault != "" {
			return true
		}
		if e.raw, e.end = c.Src[from:c.At], c.At; !d.record(e) {
			return false
		}
	}
	return true
}

// jsonEntry reads an entry: its time, its line and, in an object, its metadata.
func (d *decoder) jsonEntry(c *tokens.Cursor, e *entry) {
	n := 0
	has, _ := c.Enter('[')
	for ; has; has = c.More('[') {
		switch n++; n {
		case 1:
			jsonTime(c, e)
		case 2:
			e.line = d.jsonText(c)
		case 3:
			d.jsonMeta(c)
		default:
			c.Skip()
		}
	}
	if n < 2 {
		c.Stop("an entry is [time, line], or [time, line, metadata]")
	}
}

// jsonOld reads an entry that is an object.
func (d *decoder) jsonOld(c *tokens.Cursor, e *entry) {
	has, _ := c.Enter('{')
	for ; has; has = c.More('{') {
		switch string(c.Key()) {
		case "ts", "timestamp":
			jsonTime(c, e)
		case "line":
			e.line = d.jsonText(c)
		default:
			c.Skip()
		}
	}
}

// jsonTime reads a time: nanoseconds as a text, and any other form that package times knows.
func jsonTime(c *tokens.Cursor, e *entry) {
	var text []byte
	if c.Next() == '"' {
		text, _ = c.Quoted()
	} else {
		text = c.Skip()
	}
	ns, ok := times.Parse(text)
	switch {
	case ok:
		e.time = ns
	case len(text) > 0 && string(text) != "null":
		e.badTime = text
	}
}

// jsonText reads a string. The text of any other value is its JSON, of null nothing.
func (d *decoder) jsonText(c *tokens.Cursor) []byte {
	switch c.Next() {
	case 'n':
		c.Skip()
		return nil
	case '"':
	default:
		return c.Skip()
	}
	inside, escaped := c.Quoted()
	if !escaped {
		return inside
	}
	from := len(d.text)
	d.text = record.AppendUnescaped(d.text, inside)
	return d.text[from:len(d.text):len(d.text)]
}

// jsonMeta reads the metadata of an entry: an object of texts. Other values stay JSON.
func (d *decoder) jsonMeta(c *tokens.Cursor) {
	has, _ := c.Enter('{')
	for ; has; has = c.More('{') {
		from := len(d.text)
		d.text = record.AppendUnescaped(d.text, c.Key())
		p := d.pair(d.text[from:])
		d.text = d.text[:from]
		if p.JSON = c.Next() != '"'; p.JSON {
			p.Value = c.Skip()
		} else {
			p.Value = d.jsonText(c)
		}
	}
}
