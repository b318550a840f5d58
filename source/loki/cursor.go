package loki

import (
	"bytes"
	"errors"
	"fmt"

	"blobtail/record"
)

// errStop says that the sink accepts no more.
var errStop = errors.New("stopped")

// A cursor goes through JSON. Its methods expect it before a value, and leave it behind one.
// Only record.ValueLen goes into values that nobody reads, so depth is no danger.
type cursor struct {
	b  []byte
	at int
}

// space skips white space.
func (c *cursor) space() {
	for c.at < len(c.b) && (c.b[c.at] == ' ' || c.b[c.at] == '\n' || c.b[c.at] == '\r' || c.b[c.at] == '\t') {
		c.at++
	}
}

// is reports whether the next byte is ch, behind white space.
func (c *cursor) is(ch byte) bool {
	c.space()
	return c.at < len(c.b) && c.b[c.at] == ch
}

// isString reports whether a string is next.
func (c *cursor) isString() bool { return c.is('"') }

// atEnd reports whether only white space is left.
func (c *cursor) atEnd() bool {
	c.space()
	return c.at == len(c.b)
}

// null skips the word null, if that is next.
func (c *cursor) null() bool {
	if c.is('n') && bytes.HasPrefix(c.b[c.at:], []byte("null")) {
		c.at += len("null")
		return true
	}
	return false
}

// skip skips a value.
func (c *cursor) skip() error {
	c.space()
	n := record.ValueLen(c.b[c.at:])
	if n == 0 {
		return c.broken("a value")
	}
	c.at += n
	return nil
}

// string returns the inside of a string, still escaped.
func (c *cursor) string() ([]byte, error) {
	if !c.isString() {
		return nil, c.broken("a string")
	}
	from := c.at
	if err := c.skip(); err != nil {
		return nil, err
	}
	return c.b[from+1 : c.at-1], nil
}

// token skips a byte of the grammar.
func (c *cursor) token(ch byte) error {
	if !c.is(ch) {
		return c.broken("'" + string(ch) + "'")
	}
	c.at++
	return nil
}

// object calls member for each member, with its key, which is still escaped. member moves the
// cursor behind the value.
func (c *cursor) object(member func(key []byte) error) error {
	if err := c.token('{'); err != nil {
		return err
	}
	if c.is('}') {
		c.at++
		return nil
	}
	for {
		key, err := c.string()
		if err != nil {
			return err
		}
		if err := c.token(':'); err != nil {
			return err
		}
		c.space()
		if err := member(key); err != nil {
			return err
		}
		if done, err := c.ends('}'); done || err != nil {
			return err
		}
	}
}

// array calls element for each element.
func (c *cursor) array(element func() error) error {
	if err := c.token('['); err != nil {
		return err
	}
	if c.is(']') {
		c.at++
		return nil
	}
	for {
		c.space()
		if err := element(); err != nil {
			return err
		}
		if done, err := c.ends(']'); done || err != nil {
			return err
		}
	}
}

// ends skips the bracket that ends an array or an object, or the comma before the next value.
func (c *cursor) ends(bracket byte) (done bool, err error) {
	switch {
	case c.is(bracket):
		c.at++
		return true, nil
	case c.is(','):
		c.at++
		return false, nil
	}
	return false, c.broken("',' or '" + string(bracket) + "'")
}

func (c *cursor) broken(want string) error {
	if c.at >= len(c.b) {
		return fmt.Errorf("the body ends where %s is expected", want)
	}
	return fmt.Errorf("no push request in JSON: %s is expected", want)
}
