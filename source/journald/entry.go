package journald

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"

	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/source/body"
	"blobtail/source/httpsource"
)

const (
	// maxField is the longest value of a field that is kept whole. A core dump has fields of
	// hundreds of megabytes.
	maxField = 256 << 10
	// maxEntry is how many bytes the fields of an entry may have together.
	maxEntry = 768 << 10
	// longestName is the longest name of a field, as in journald.
	longestName = 64
	// maxFields is the number of fields of an entry that are kept.
	maxFields = record.MaxFields - 8
	// partEntries is the number of entries at which a part ends. Its cursors end most of them
	// earlier, one in partOneIn.
	partEntries, partOneIn = 4096, 512
	// idBytes is how much of a malformed entry, which has no cursor, identifies its part.
	idBytes = 4 << 10
	// cutMore is how much of a value is left out in addition if it is cut: masks do not
	// recognise the half of a secret.
	cutMore = 4 << 10
)

// A decoder reads the entries of a stream.
type decoder struct {
	r       *bufio.Reader
	to      httpsource.StreamSink
	part    []byte // the entries of the part
	entries int
	ends    bool // the part ends with the entry before
	names   body.Names

	// The entry that is being read.
	from    int // its beginning in part
	fields  []field
	omitted int // bytes of values that were not kept
}

// A field is a place in the decoder's part. Values may be anything.
type field struct {
	name       string
	value, end int
	cut        bool // there was more
}

func newDecoder(r *bufio.Reader, to httpsource.StreamSink) *decoder {
	return &decoder{r: r, to: to, names: body.Names{}, ends: true}
}

// run reads entries until the stream ends or the sink stops.
func (d *decoder) run() error {
	for {
		err := d.read()
		bad, malformed := errors.AsType[*malformedError](err)
		switch {
		case err == io.EOF && len(d.fields) == 0:
			return nil
		case err == io.EOF:
			d.pass() // the last entry of a file may lack its empty line
			return nil
		case malformed:
			err := d.skip()
			raw := d.part[d.from:]
			if !d.begin(raw[:min(len(raw), idBytes)], 0) || !d.to.Reject(raw, body.Rejection{Reason: bad.Error(), Syntax: true}, 0) || err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		if len(d.fields) > 0 && !d.pass() {
			return nil
		}
	}
}

// skip reads on behind a malformed field, up to the next empty line: there the next entry begins,
// unless that line is in a value of this one.
func (d *decoder) skip() error {
	for begins := true; ; {
		line, err := d.r.ReadSlice('\n')
		d.append(d.from, line)
		switch {
		case err == nil && begins && len(line) == 1:
			return nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
		begins = err == nil
	}
}

// A malformedError says that an entry is not in the export format.
type malformedError struct{ reason string }

func (e *malformedError) Error() string { return "not the journal export format: " + e.reason }

// read reads an entry up to its empty line.
func (d *decoder) read() error {
	if d.ends || len(d.part) >= httpsource.StreamPart {
		d.ends = true
		// The sink has the lines of the part, but may still need the bytes of its rejects.
		d.part = make([]byte, 0, min(cap(d.part), httpsource.StreamPart+maxEntry))
	}
	d.from, d.fields, d.omitted = len(d.part), d.fields[:0], 0
	for {
		done, err := d.readField()
		if done || err != nil {
			return err
		}
	}
}

// readField reads a field, NAME=value or NAME and a value with its length. done says that it
// was the end of the entry.
func (d *decoder) readField() (done bool, err error) {
	at := len(d.part)
	line, err := d.r.ReadSlice('\n')
	d.part = append(d.part, line...)
	long := errors.Is(err, bufio.ErrBufferFull)
	if err != nil && !long {
		if err == io.EOF && len(line) > 0 {
			return false, &malformedError{"it ends within a field"}
		}
		return false, err
	}
	text := bytes.TrimSuffix(d.part[at:], []byte("\n"))
	if len(text) == 0 {
		return true, nil
	}
	name, _, isText := bytes.Cut(text, []byte("="))
	if len(name) == 0 || len(name) > longestName || !isName(name) {
		return false, &malformedError{fmt.Sprintf("no field has the name %.64q", name)}
	}
	f := field{name: d.names.Of(name), value: at + len(name) + 1, end: at + len(text)}
	before := d.omitted
	switch {
	case isText && long:
		f.end, err = d.readLong(f.value)
	case long:
		return false, &malformedError{"a name without an end"}
	case !isText:
		f.value, f.end, err = d.readBinary()
	}
	if err != nil {
		return false, err
	}
	if f.cut = d.omitted > before; f.cut {
		d.omitted += min(cutMore, f.end-f.value)
		f.end -= min(cutMore, f.end-f.value)
	}
	if len(d.fields) == maxFields || f.end-d.from > maxEntry {
		d.omitted += f.end - f.value
		d.part = d.part[:at]
		return false, nil
	}
	d.fields = append(d.fields, f)
	if d.part[len(d.part)-1] != '\n' {
		d.part = append(d.part, '\n')
	}
	return false, nil
}

// isName reports whether a name is one of journald's.
func isName(name []byte) bool {
	for _, c := range name {
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}

// readLong reads the rest of a line that is longer than the buffer, and keeps as much of its
// value as is allowed.
func (d *decoder) readLong(value int) (end int, err error) {
	for {
		line, err := d.r.ReadSlice('\n')
		d.append(value, bytes.TrimSuffix(line, []byte("\n")))
		switch {
		case err == nil:
			return len(d.part), nil
		case err == io.EOF:
			return 0, &malformedError{"it ends within a field"}
		case !errors.Is(err, bufio.ErrBufferFull):
			return 0, err
		}
	}
}

// append keeps the bytes of a value that begins at value, as far as it and its entry have
// room.
func (d *decoder) append(value int, text []byte) {
	room := max(min(maxField-(len(d.part)-value), maxEntry-(len(d.part)-d.from)), 0)
	kept := text[:min(room, len(text))]
	d.part = append(d.part, kept...)
	d.omitted += len(text) - len(kept)
}

// readBinary reads a value with its length before it, and the line feed behind it.
func (d *decoder) readBinary() (value, end int, err error) {
	var size [8]byte
	if _, err := io.ReadFull(d.r, size[:]); err != nil {
		return 0, 0, ended(err)
	}
	value = len(d.part)
	for left := binary.LittleEndian.Uint64(size[:]); left > 0; {
		text, err := d.r.Peek(int(min(left, uint64(d.r.Size()))))
		if len(text) == 0 {
			return 0, 0, ended(err)
		}
		d.append(value, text)
		left -= uint64(len(text))
		_, _ = d.r.Discard(len(text)) // they are in the buffer
	}
	end = len(d.part)
	if c, err := d.r.ReadByte(); err != nil {
		return 0, 0, ended(err)
	} else if c != '\n' {
		return 0, 0, &malformedError{"no line feed behind a value with a length"}
	}
	return value, end, nil
}

// ended is the error of a stream that ends within a field.
func ended(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return &malformedError{"it ends within a field"}
	}
	return err
}

// begin begins a part with the entry that was read, if it is time for one.
func (d *decoder) begin(cursor []byte, ns int64) bool {
	if !d.ends {
		return true
	}
	d.ends, d.entries = false, 0
	return d.to.Part(cursor, ns)
}

// pass passes the entry that was read to the sink.
func (d *decoder) pass() bool {
	raw := d.part[d.from:]
	e := d.find()
	if !d.begin(e.cursor, e.head.Time) {
		return false
	}
	e.head.Why = d.to.Why()
	e.head.Why.Named("__REALTIME_TIMESTAMP", "PRIORITY", "MESSAGE", "the unit or the identifier")
	b := d.to.Begin(e.head)
	for i := range d.fields {
		f := &d.fields[i]
		if i != e.message && i != e.priority && !strings.HasPrefix(f.name, "__") {
			b.Text(f.name, d.part[f.value:f.end])
		}
	}
	if d.omitted > 0 {
		b.Int("omitted_bytes", int64(d.omitted))
	}
	d.entries++
	d.ends = d.entries >= partEntries || len(e.cursor) > 0 && xxh3.Hash(e.cursor)%partOneIn == 0
	return d.to.Record(raw, 1, 0)
}

// An entry is the head of a record and the cursor, from the fields of a journal entry.
type entry struct {
	head              meaning.Head
	cursor            []byte
	message, priority int // their fields, -1 for none
}

// find finds the fields that have a meaning.
func (d *decoder) find() entry {
	e := entry{head: meaning.Head{Renames: true}, message: -1, priority: -1}
	var unit, user, identifier, command, transport []byte
	for i := range d.fields {
		f := &d.fields[i]
		value := d.part[f.value:f.end]
		switch f.name {
		case "__CURSOR":
			e.cursor = value
		case "__REALTIME_TIMESTAMP":
			if us, err := strconv.ParseInt(string(value), 10, 64); err == nil && us > 0 && us < 1<<63/1000 {
				e.head.Time = us * 1000
			}
		case "MESSAGE":
			if e.message < 0 {
				e.message, e.head.Msg = i, value
			}
		case "PRIORITY":
			if e.priority < 0 {
				e.priority, e.head.Level, e.head.Assumed = i, value, true // a service prints all under info
			}
		case "_SYSTEMD_UNIT":
			unit = value
		case "_SYSTEMD_USER_UNIT":
			user = value
		case "SYSLOG_IDENTIFIER":
			identifier = value
		case "_COMM":
			command = value
		case "_TRANSPORT":
			transport = value
		}
	}
	if len(e.cursor) == 0 {
		e.cursor = d.part[d.from:]
	}
	e.head.Service = serviceOf(unit, user, identifier, command, transport)
	return e
}

// serviceOf returns the service of an entry: the unit, if that is a service of the system or
// of a user; else the identifier, because a scope has a name of its own for each session or
// container.
func serviceOf(unit, user, identifier, command, transport []byte) []byte {
	for _, u := range [][]byte{user, unit} {
		if name, ok := bytes.CutSuffix(u, []byte(".service")); ok && !bytes.HasPrefix(u, []byte("user@")) {
			return name
		}
	}
	for _, name := range [][]byte{identifier, command} {
		if len(name) > 0 {
			return name
		}
	}
	if string(transport) == "kernel" {
		return []byte("kernel")
	}
	return unit
}
