package loki

import (
	"errors"
	"fmt"

	"blobtail/record"
	"blobtail/source/body"
)

// json passes the entries of a push request in JSON to the sink. A body that is broken is
// rejected from the broken stream on. The form of before 2019 is read too: a stream with
// labels in one text, and entries that are objects.
func (d *decoder) json(b []byte) {
	c := cursor{b: b}
	if c.atEnd() {
		return
	}
	stream := 0 // where the stream that is being read begins
	err := c.object(func(key []byte) error {
		if string(key) != "streams" {
			return c.skip()
		}
		return c.array(func() error {
			stream = c.at
			return d.jsonStream(&c)
		})
	})
	if err == nil && !c.atEnd() {
		stream, err = c.at, errors.New("text after the object")
	}
	if err != nil && !errors.Is(err, errStop) {
		d.to.Reject(b[stream:], body.Rejection{Reason: fmt.Sprintf("at byte %d: %v", c.at, err), Syntax: true}, len(b))
	}
}

// jsonStream passes the entries of a stream. The labels may come last.
func (d *decoder) jsonStream(c *cursor) error {
	d.stream.clear()
	begun, labelled := c.at, false
	waiting := -1 // where the entries begin that came before the labels
	err := c.object(func(key []byte) (err error) {
		switch string(key) {
		case "stream":
			labelled = true
			err = d.jsonLabels(c)
		case "labels":
			labelled = true
			err = d.jsonSelector(c)
		case "values", "entries":
			if !labelled {
				waiting = c.at
				return c.skip()
			}
			err = d.jsonEntries(c)
		default:
			err = c.skip()
		}
		return err
	})
	if bad, ok := errors.AsType[*labelError](err); ok {
		return d.rejectStream(c, begun, bad)
	}
	if err != nil || waiting < 0 {
		return err
	}
	again := cursor{b: c.b, at: waiting}
	return d.jsonEntries(&again)
}

// A labelError says that the labels of a stream cannot be read.
type labelError struct{ error }

// rejectStream rejects the stream that begins at begun, and goes on behind it.
func (d *decoder) rejectStream(c *cursor, begun int, bad error) error {
	c.at = begun
	if err := c.skip(); err != nil {
		return err
	}
	if !d.to.Reject(c.b[begun:c.at], body.Rejection{Reason: bad.Error()}, c.at) {
		return errStop
	}
	return nil
}

// jsonLabels reads an object of texts.
func (d *decoder) jsonLabels(c *cursor) error {
	if c.null() {
		return nil
	}
	err := c.object(func(key []byte) error {
		name := d.jsonName(key)
		l := &d.stream
		if c.null() {
			return nil
		}
		if !c.isString() {
			from := c.at
			if err := c.skip(); err != nil {
				return err
			}
			l.pairs = append(l.pairs, pair{name: name, value: c.b[from:c.at], json: true})
			return nil
		}
		s, err := c.string()
		if err != nil {
			return err
		}
		from := len(l.text)
		l.text = record.AppendUnescaped(l.text, s)
		l.pairs = append(l.pairs, pair{name: name, value: l.text[from:]})
		return nil
	})
	d.stream.find()
	return err
}

// jsonSelector reads labels in one text.
func (d *decoder) jsonSelector(c *cursor) error {
	s, err := c.string()
	if err != nil {
		return err
	}
	if err := d.selector(record.AppendUnescaped(nil, s)); err != nil {
		return &labelError{err}
	}
	return nil
}

// jsonName returns a key as text.
func (d *decoder) jsonName(key []byte) string {
	d.text = record.AppendUnescaped(d.text[:0], key)
	return d.name(d.text)
}

// jsonEntries passes a list of entries, or null.
func (d *decoder) jsonEntries(c *cursor) error {
	if c.null() {
		return nil
	}
	return c.array(func() (err error) {
		e := entry{}
		d.meta, d.text = d.meta[:0], d.text[:0]
		if c.is('{') {
			err = d.jsonOld(c, &e)
		} else {
			err = d.jsonEntry(c, &e)
		}
		if err != nil {
			return err
		}
		if e.end = c.at; !d.record(e) {
			return errStop
		}
		return nil
	})
}

// jsonEntry reads an entry: its time, its line and, in an object, its metadata.
func (d *decoder) jsonEntry(c *cursor, e *entry) error {
	n := 0
	err := c.array(func() (err error) {
		switch n++; n {
		case 1:
			err = d.jsonTime(c, e)
		case 2:
			e.line, err = d.jsonText(c)
		case 3:
			err = d.jsonMeta(c)
		default:
			err = c.skip()
		}
		return err
	})
	if err == nil && n < 2 {
		return errors.New("an entry is [time, line], or [time, line, metadata]")
	}
	return err
}

// jsonOld reads an entry that is an object.
func (d *decoder) jsonOld(c *cursor, e *entry) error {
	return c.object(func(key []byte) (err error) {
		switch string(key) {
		case "ts", "timestamp":
			err = d.jsonTime(c, e)
		case "line":
			e.line, err = d.jsonText(c)
		default:
			err = c.skip()
		}
		return err
	})
}

// jsonTime reads a time: nanoseconds as a text, and whatever else is a time.
func (d *decoder) jsonTime(c *cursor, e *entry) error {
	var text []byte
	if c.isString() {
		s, err := c.string()
		if err != nil {
			return err
		}
		text = s
	} else {
		from := c.at
		if err := c.skip(); err != nil {
			return err
		}
		text = c.b[from:c.at]
	}
	ns, ok := record.ParseTime(text)
	if e.time = ns; !ok && len(text) > 0 && string(text) != "null" {
		e.badTime = text
	}
	return nil
}

// jsonText reads a string, or null.
func (d *decoder) jsonText(c *cursor) ([]byte, error) {
	if c.null() {
		return nil, nil
	}
	s, err := c.string()
	if err != nil {
		return nil, err
	}
	from := len(d.text)
	d.text = record.AppendUnescaped(d.text, s)
	return d.text[from:len(d.text):len(d.text)], nil
}

// jsonMeta reads the metadata of an entry: an object of texts. Other values stay JSON.
func (d *decoder) jsonMeta(c *cursor) error {
	if !c.is('{') {
		return c.skip()
	}
	return c.object(func(key []byte) error {
		from := len(d.text)
		d.text = record.AppendUnescaped(d.text, key)
		p := pair{name: d.name(d.text[from:])}
		d.text = d.text[:from]
		var err error
		if c.isString() {
			p.value, err = d.jsonText(c)
		} else {
			p.json, from = true, c.at
			err = c.skip()
			p.value = c.b[from:c.at]
		}
		d.meta = append(d.meta, p)
		return err
	})
}
