package rig

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path"
	"strings"
)

// LinesOf are the lines of a corpus or an answer, without their ends. A line is valid until the next
// one, and has at most 16 MB. If they cannot be read, the last pair is an error.
func LinesOf(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(make([]byte, 64<<10), 16<<20)
		for lines.Scan() {
			if !yield(lines.Bytes(), nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// Lines are [LinesOf] a file.
func Lines(file string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		f, err := os.Open(file)
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		LinesOf(f)(yield)
	}
}

// Members calls f for each member of a JSON object. Values must be scalars. A value is a text, or the
// JSON of another scalar. Name and value are valid until f returns.
func Members(line []byte, f func(name, value []byte, text bool) error) error {
	s := bytes.TrimSpace(line)
	if len(s) < 2 || s[0] != '{' || s[len(s)-1] != '}' {
		return errors.New("this is no record")
	}
	for s = s[1 : len(s)-1]; len(s) > 0; {
		name, rest, err := text(s)
		if err == nil && (len(rest) < 2 || rest[0] != ':' || rest[1] == '{' || rest[1] == '[') {
			err = fmt.Errorf("%s has no value, or one that is no scalar", name)
		}
		if err != nil {
			return err
		}
		s = rest[1:]
		isText := s[0] == '"'
		var value []byte
		if isText {
			if value, s, err = text(s); err != nil {
				return err
			}
		} else if end := bytes.IndexByte(s, ','); end >= 0 {
			value, s = s[:end], s[end:]
		} else {
			value, s = s, nil
		}
		if err := f(name, value, isText); err != nil {
			return err
		}
		if len(s) > 0 {
			if s[0] != ',' || len(s) == 1 {
				return fmt.Errorf("no member is after %s", name)
			}
			s = s[1:]
		}
	}
	return nil
}

// text reads a JSON string.
func text(s []byte) (value, rest []byte, err error) {
	if s[0] != '"' {
		return nil, nil, fmt.Errorf("no text is at %.20s", s)
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			value, rest = s[1:i], s[i+1:]
			if bytes.IndexByte(value, '\\') >= 0 {
				var v string
				err = json.Unmarshal(s[:i+1], &v)
				value = []byte(v)
			}
			return value, rest, err
		}
	}
	return nil, nil, fmt.Errorf("a text has no end: %.50s", s)
}

// Globs choose rows by their IDs. Without a glob they choose all. They are the value of a flag, with
// commas between.
type Globs []string

// String implements [flag.Value].
func (g *Globs) String() string { return strings.Join(*g, ",") }

// Set implements [flag.Value].
func (g *Globs) Set(text string) error {
	*g = nil
	for glob := range strings.SplitSeq(text, ",") {
		if _, err := path.Match(glob, ""); err != nil {
			return fmt.Errorf("%w: %s", err, glob)
		}
		*g = append(*g, glob)
	}
	return nil
}

// Choose reports whether they choose one of some rows.
func (g Globs) Choose(ids ...string) bool {
	for _, glob := range g {
		for _, id := range ids {
			if ok, _ := path.Match(glob, id); ok {
				return true
			}
		}
	}
	return len(g) == 0
}
