package loki

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"blobtail/internal/door"
	"blobtail/record"
)

// appendText appends a string of JSON. Characters that only HTML escapes stay as they are, and
// bytes that are no UTF-8 become text such as \x80.
func appendText(dst []byte, s string) []byte {
	dst = append(dst, '"')
	i := 0
	for i < len(s) && s[i] >= ' ' && s[i] < 0x80 && s[i] != '"' && s[i] != '\\' {
		i++
	}
	dst = append(dst, s[:i]...)
	if i < len(s) {
		dst = record.AppendEscaped(dst, []byte(s[i:]))
	}
	return append(dst, '"')
}

// appendBytes is appendText of bytes.
func appendBytes(dst, text []byte) []byte {
	dst = append(dst, '"')
	dst = record.AppendEscaped(dst, text)
	return append(dst, '"')
}

// appendTexts appends an array of strings.
func appendTexts(dst []byte, all []string) []byte {
	dst = append(dst, '[')
	for i, s := range all {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(dst, s)
	}
	return append(dst, ']')
}

// appendSeconds appends a time as a number of seconds with milliseconds.
func appendSeconds(dst []byte, ns int64) []byte {
	ms := floorDiv(ns, int64(time.Millisecond))
	if ms%1000 == 0 {
		return strconv.AppendInt(dst, ms/1000, 10)
	}
	return strconv.AppendFloat(dst, float64(ms)/1000, 'f', -1, 64)
}

// appendValue appends a number of a series, which is a string there.
func appendValue(dst []byte, v float64) []byte {
	dst = append(dst, '"')
	dst = strconv.AppendFloat(dst, v, 'f', -1, 64)
	return append(dst, '"')
}

// floorDiv divides, and rounds down.
func floorDiv(x, by int64) int64 {
	q := x / by
	if x%by < 0 {
		q--
	}
	return q
}

const jsonType = "application/json; charset=UTF-8"

// errGone is for a client that does not take its answer.
var errGone = errors.New("the client has gone")

// sendFrom is the size from which on a part of an answer is sent before the rest is made.
const sendFrom = 2 << 20

// partial reports whether the client sees that an answer lacks records.
func (c *call) partial() bool { return c.shows || c.form.Get("partial") == "1" }

// finish ends the object of the answer and sends it.
func (c *call) finish() error {
	if c.partial() || c.short {
		c.out = c.appendWarnings(c.out)
	}
	c.out = append(c.out, "}\n"...)
	if err := c.send(); err != nil {
		return err
	}
	c.api.giveBack(c.out)
	return nil
}

// some sends a part of the answer if it is large.
func (c *call) some() error {
	if len(c.out) < sendFrom {
		return nil
	}
	return c.send()
}

// send sends the part of the answer that is made, unless the answer lacks something and the client
// would not show that. All reads have been done before.
func (c *call) send() error {
	if err := c.budget().Err(); err != nil {
		return err
	}
	if !c.sent {
		if !c.told.Complete() && !c.partial() {
			return door.Refuse(http.StatusInternalServerError, "%w; add partial=1 to the request to have the rest", incomplete(&c.told))
		}
		h := c.w.Header()
		h.Set("Content-Type", jsonType)
		h.Set("X-Content-Type-Options", "nosniff")
		c.w.WriteHeader(http.StatusOK)
		c.sent = true
	}
	if _, err := c.w.Write(c.out); err != nil {
		return errGone
	}
	c.out = c.out[:0]
	return nil
}

// hint notes that the answer has less than was asked for.
func (c *call) hint(format string, args ...any) {
	c.short = true
	c.hints = append(c.hints, fmt.Sprintf(format, args...))
}

// maxWarnings is how many warnings an answer has.
const maxWarnings = 10

// appendWarnings appends the reasons why an answer lacks records, and then hints, as a member of
// the object.
func (c *call) appendWarnings(dst []byte) []byte {
	var all []string
	if !c.told.Complete() {
		all = append(all, incomplete(&c.told).Error())
		for _, err := range c.told.Problems()[1:] {
			all = append(all, "incomplete: "+err.Error())
		}
	}
	all = append(all, c.hints...)
	if len(all) == 0 {
		return dst
	}
	dst = append(dst, `,"warnings":`...)
	return appendTexts(dst, all[:min(len(all), maxWarnings)])
}
