package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"blobtail/internal/cli"
	"blobtail/record"
)

// output gathers writes to stdout into large ones. It holds nothing back for longer than
// a person waits: a search may find its first record long before its second.
type output struct {
	mu    sync.Mutex
	w     *bufio.Writer
	armed bool // a flush will come
	// before is called before the first write; nil: nothing is.
	before func()
}

const (
	outputBuffer = 256 << 10
	outputDelay  = 100 * time.Millisecond
)

func newOutput(w io.Writer) *output { return &output{w: bufio.NewWriterSize(w, outputBuffer)} }

// Write implements io.Writer. It fails after any failed write, and so does flush: few
// callers need the error.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.before != nil && len(b) > 0 {
		o.before()
		o.before = nil
	}
	n, err := o.w.Write(b)
	if err != nil {
		return n, fmt.Errorf("%w: %w", errOutput, err)
	}
	if !o.armed && o.w.Buffered() > 0 {
		o.armed = true
		// After an error the next Write or flush fails with the same one.
		time.AfterFunc(outputDelay, func() { _ = o.flush() })
	}
	return n, nil
}

func (o *output) flush() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.armed = false
	if err := o.w.Flush(); err != nil {
		return fmt.Errorf("%w: %w", errOutput, err)
	}
	return nil
}

// errOutput is a failed write to stdout: some of the output is missing.
var errOutput = errors.New("write to stdout")

func (a *app) json(line any) {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(line)
}

// form is the form of output: as given, else json, or the first of forms on a terminal.
func (a *app) form(given string, forms ...string) (string, error) {
	switch {
	case given == "jsonl":
		given = "json"
	case given == "text":
		given = "pretty"
	}
	switch {
	case given != "":
		return given, oneOf("-o", given, forms...)
	case a.env.outTTY, a.flags.Color == "always":
		return forms[0], nil
	}
	return "json", nil
}

// oneOf refuses a value of a flag that is none of words.
func oneOf(flag, value string, words ...string) error {
	if slices.Contains(words, value) {
		return nil
	}
	last := len(words) - 1
	hint := ""
	if form := cmp.Or(other("form", value, ""), strings.ToLower(value)); flag == "-o" && slices.Contains(words, form) {
		hint = "; for that: -o " + form
	}
	return cli.Usagef("%s %s: it must be %s or %s%s", flag, value, strings.Join(words[:last], ", "), words[last], hint)
}

// appendRaw appends the message of a record. If that is empty, and the record has fields of its own, it
// appends the stored line: a blank one would say nothing.
func (a *app) appendRaw(dst, line []byte) []byte {
	msg := bytes.TrimSuffix(line, []byte("\n")) // the whole line if it is not ours
	if off, ok := record.LineMsg(line); ok {
		msg = line[off:]
		if n := record.ValueLen(line[off-1:]); n > 0 {
			msg = msg[:n-2]
		}
		if len(msg) == 0 && hasMore(line) {
			return append(a.safe(dst, bytes.TrimSuffix(line, []byte("\n"))), '\n')
		}
	}
	if a.env.outTTY {
		dst = a.safe(dst, record.AppendUnescaped(nil, msg))
	} else {
		dst = record.AppendUnescaped(dst, msg)
	}
	return append(dst, '\n')
}

// safe appends a text, as a terminal may have it if the output is one.
func (a *app) safe(dst, text []byte) []byte {
	if a.env.outTTY {
		return cli.AppendSafe(dst, text, "\n")
	}
	return append(dst, text...)
}

// hasMore reports whether a record has fields beside those of each record.
func hasMore(line []byte) bool {
	for name := range record.Fields(line) {
		switch string(name) {
		case "ts", "level", "service", "msg":
		default:
			return true
		}
	}
	return false
}

// bytesText writes a size for people.
func bytesText(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	x, i := float64(n)/1024, 0
	for ; x >= 999.95 && i < len(units)-1; i++ {
		x /= 1024
	}
	return strconv.FormatFloat(x, 'f', 1, 64) + " " + units[i:i+1] + "iB"
}
