// Package canon brings records of a corpus, of blobtail and of VictoriaLogs into one form in which
// they are comparable.
package canon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"strconv"
	"sync/atomic"
	"time"
)

// Form tells how a source names the members of a record. Sums of forms with the same seed are
// comparable.
type Form struct {
	Seed maphash.Seed
	Time string            // the member with the time
	As   map[string]string // other names of members; a member with the name "" does not count
	// Rounded counts the values that are compared after rounding, if it is not nil.
	Rounded *atomic.Int64
}

// Corpus is the form of the generator, and of lines that blobtail stores.
func Corpus(seed maphash.Seed) Form { return Form{Seed: seed, Time: "ts"} }

// Victoria is the form of VictoriaLogs.
func Victoria(seed maphash.Seed) Form {
	return Form{Seed: seed, Time: "_time", As: map[string]string{"_msg": "msg", "_stream": "", "_stream_id": ""}}
}

// Sum returns the time of a record, and a hash of all that it has: the time in ns, and the other
// members as texts, in any order. Members without a value do not count, and neither do zeros at the
// end of a decimal fraction, because VictoriaLogs keeps none of them.
func (f Form) Sum(line []byte) (at int64, sum uint64, err error) {
	timed := false
	err = Members(line, func(name, value []byte) error {
		if string(name) == f.Time {
			t, err := time.Parse(time.RFC3339Nano, string(value))
			at, timed = t.UnixNano(), true
			return err
		}
		if other, ok := f.As[string(name)]; ok {
			name = []byte(other)
		}
		if len(value) == 0 || len(name) == 0 {
			return nil
		}
		sum += Mix(maphash.Bytes(f.Seed, name) ^ bits.RotateLeft64(maphash.Bytes(f.Seed, decimal(value, f.Rounded)), 17))
		return nil
	})
	if err == nil && !timed {
		err = fmt.Errorf("it has no %s", f.Time)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("%w: %.500s", err, line)
	}
	return at, Mix(sum ^ Mix(uint64(at))), nil
}

// decimal cuts zeros from the end of a decimal fraction, and rounds one of more than 15 digits to
// 12: VictoriaLogs returns some numbers so, such as 1.382 as 1.3820000000000001. Other values stay
// as they are.
func decimal(value []byte, rounded *atomic.Int64) []byte {
	if last := value[len(value)-1]; last != '0' && len(value) <= 16 {
		return value
	}
	point, digits := -1, 0
	for i, c := range value {
		switch {
		case c == '.' && point < 0 && i > 0:
			point = i
		case c == '-' && i == 0:
		case c < '0' || c > '9':
			return value
		case c != '0' || digits > 0:
			digits++
		}
	}
	if point < 0 {
		return value
	}
	if v, err := strconv.ParseFloat(string(value), 64); err == nil && digits > 15 {
		if rounded != nil {
			rounded.Add(1)
		}
		value = strconv.AppendFloat(nil, v, 'f', max(0, 12-int(math.Ceil(math.Log10(math.Abs(v))))), 64)
		if bytes.IndexByte(value, '.') < 0 {
			return value
		}
	}
	return bytes.TrimSuffix(bytes.TrimRight(value, "0"), []byte("."))
}

// Mix makes all bits depend on each other (splitmix64).
func Mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Members calls f for each member of a JSON object. A value is a text, or the JSON of another
// scalar. Both are valid until f returns.
func Members(line []byte, f func(name, value []byte) error) error {
	s := bytes.TrimSpace(line)
	if len(s) < 2 || s[0] != '{' || s[len(s)-1] != '}' {
		return errors.New("this is no record")
	}
	s = s[1 : len(s)-1]
	for len(s) > 0 {
		name, rest, err := text(s)
		if err != nil {
			return err
		}
		if len(rest) < 2 || rest[0] != ':' {
			return errors.New("a member has no value")
		}
		value, rest, err := scalar(rest[1:])
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if len(rest) > 0 {
			if rest[0] != ',' || len(rest) == 1 {
				return fmt.Errorf("no comma is after %s", name)
			}
			rest = rest[1:]
		}
		if err := f(name, value); err != nil {
			return err
		}
		s = rest
	}
	return nil
}

// scalar reads a value.
func scalar(s []byte) (value, rest []byte, err error) {
	switch s[0] {
	case '"':
		return text(s)
	case '{', '[':
		return nil, nil, errors.New("the value is no scalar")
	}
	end := bytes.IndexByte(s, ',')
	if end < 0 {
		end = len(s)
	}
	return s[:end], s[end:], nil
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
