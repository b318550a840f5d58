package body

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"testing/iotest"
	"time"

	"blobtail/record/meaning"
	"blobtail/record/trace"
)

// A ledger is a sink that records its share of the bytes of a body.
type ledger struct {
	t        *testing.T
	parser   *meaning.Reader
	body     []byte
	seen     []bool
	reach    int
	accepted int
	rejected int
}

func (l *ledger) Scan(src []byte) (int, error) { return l.parser.Scan(src) }

func (l *ledger) Object(raw []byte, end int) bool {
	if !json.Valid(raw) && json.Valid(bytes.ToValidUTF8(raw, nil)) {
		l.t.Errorf("no JSON: %q", raw)
	}
	l.accepted++
	return l.note(raw, end)
}

func (l *ledger) Begin(h meaning.Head) *meaning.Parts {
	return l.parser.Begin(nil, h, &meaning.Defaults{})
}

func (l *ledger) Fallback(string) {}

func (l *ledger) Why() *meaning.Why { return nil }

func (l *ledger) Mapped([]byte, string) bool { return false }

func (l *ledger) Takes([]byte) bool { return true }

func (l *ledger) Scanned() (ns int64, own bool) { return 0, false }

func (l *ledger) Last() (ns int64, own, any bool) { return 0, false, l.accepted > 0 }

func (l *ledger) Record(raw []byte, places, end int) bool {
	if lines := bytes.FieldsFunc(raw, func(r rune) bool { return r == '\n' }); len(raw) == 0 || places < 1 || places > len(lines) {
		l.t.Errorf("%d places: %q", places, raw)
	}
	l.accepted++
	return l.note(raw, end)
}

func (l *ledger) Reject(raw []byte, why Rejection, end int) bool {
	if why.Reason == "" {
		l.t.Errorf("no reason for %q", raw)
	}
	l.rejected++
	return l.note(raw, end)
}

func (l *ledger) Arrived() int64             { return 0 }
func (l *ledger) Arrival() *meaning.Defaults { return &meaning.Defaults{} }

// note finds the offset of raw in the body, searching the rest of its array.
func (l *ledger) note(raw []byte, end int) bool {
	from := cap(l.body) - cap(raw)
	if from < l.reach || end < from+len(raw) || end > len(l.body) {
		l.t.Fatalf("record at %d..%d with end %d, the last one reached to %d", from, from+len(raw), end, l.reach)
	}
	for i := from; i < from+len(raw); i++ {
		l.seen[i] = true
	}
	l.reach = from + len(raw)
	return true
}

type shape struct {
	name      string
	decode    decoder
	structure string // bytes that belong to no record
}

func shapes() []shape {
	return []shape{
		{"lines", decodeLines, " \t\r\n"},
		{"json", decodeJSON, " \t\r\n[],"},
		{"sniffed", decodeSniffed, " \t\r\n[],"},
		{"mixed", decodeMixed, " \t\r\n"},
	}
}

// For any input, every byte of a body that is not white space or the frame of an
// array is in exactly one record or reject, in order.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{
		"{\"a\":1}\n{\"b\":2}\r\n\n{\"c\":", `[{"a":1},2,"x",[3],{"b":2}] tail`, "[error] x\r\n[1,2] y\n", "{\"a\":[1,\n{\"b\":2}\n{\"c\":3}",
		"\xef\xbb\xbf{} {}\n{}x", "{\n \"a\": {\n \"b\": [\n 1 ] } }\n{\"a\":1,\"a\":2}{}", `[{"a":"\ud800\xff"},{"a":`, "\x00\n\xff\n",
		`{"logs":["a",{"b":1}]}`, `{"owner":"a","logEvents":[{"b":1},{}]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		checkCRI(t, body)
		body = slices.Clip(body)
		if hasCRI(body) { // the heads are in no record
			return
		}
		if hasExport(body) { // so are the other members
			for _, sh := range shapes() {
				reading(sh.decode, string(body))
			}
			return
		}
		for _, sh := range shapes() {
			l := &ledger{t: t, parser: meaning.NewReader(), body: body, seen: make([]bool, len(body))}
			sh.decode(body, bom(body), l)
			for i := bom(body); i < len(body); i++ {
				if !l.seen[i] && !bytes.ContainsRune([]byte(sh.structure), rune(body[i])) {
					t.Fatalf("%s: byte %d of %q is lost", sh.name, i, body)
				}
			}
		}
	})
}

// hasCRI reports whether a body may have lines of a container runtime.
func hasCRI(body []byte) bool {
	return bytes.Contains(body, []byte(" stdout ")) || bytes.Contains(body, []byte(" stderr "))
}

// hasExport reports whether a body may have an export.
func hasExport(body []byte) bool {
	return slices.ContainsFunc([]string{"logEvents", "vents", "ecords", "items", "value", "entries", "logs"}, func(key string) bool {
		return bytes.Contains(body, []byte(key+`"`))
	})
}

// A criLedger gathers the texts of the records of a container runtime.
type criLedger struct {
	ledger
	text []byte
	end  int
}

func (l *criLedger) Begin(h meaning.Head) *meaning.Parts {
	l.text = append(l.text, h.Msg...)
	return l.ledger.Begin(h)
}

func (l *criLedger) Object(raw []byte, end int) bool {
	_, rest, _ := bytes.Cut(raw, []byte(`"stream":"std`))
	rest = bytes.TrimLeft(rest, "outer")
	rest = bytes.TrimPrefix(bytes.TrimPrefix(rest, []byte(`"`)), []byte(","))
	l.text = append(append(l.text, '{'), rest...)
	return l.passed(end)
}

func (l *criLedger) Record(_ []byte, _, end int) bool { return l.passed(end) }

func (l *criLedger) Reject(raw []byte, _ Rejection, _ int) bool {
	l.t.Fatalf("rejected: %q", raw)
	return false
}

func (l *criLedger) passed(end int) bool {
	if end < l.end || end > len(l.body) {
		l.t.Fatalf("the end %d of %d is behind %d", end, len(l.body), l.end)
	}
	l.end = end
	return true
}

// checkCRI puts the heads of a container runtime in front of the lines of a text. No byte of it is
// lost or in two records, and the ends of the records rise.
func checkCRI(t *testing.T, text []byte) {
	t.Helper()
	if hasCRI(text) || len(text) == 0 {
		return
	}
	var body, want []byte
	for i, line := range bytes.Split(text, []byte("\n")) {
		head := fmt.Sprintf("2026-11-20T10:00:%02dZ %s ", i%60, [...]string{"stdout", "stderr"}[int(text[i%len(text)])&1])
		if n := len(line) / 2; i%5 == 1 {
			body = append(append(append(append(body, head...), "P "...), line[:n]...), '\n')
			line = line[n:]
		}
		body = append(append(append(append(body, head...), "F "...), line...), '\n')
	}
	for _, b := range text {
		if b > ' ' {
			want = append(want, b)
		}
	}
	l := &criLedger{ledger: ledger{t: t, parser: meaning.NewReader(), body: body}}
	decodeMixed(body, 0, l)
	var got []byte
	for _, b := range l.text {
		if b > ' ' {
			got = append(got, b)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !bytes.Equal(got, want) {
		t.Fatalf("%q: %d bytes, want %d", body, len(got), len(want))
	}
}

// A joinLedger is a ledger that counts the lines of each record.
type joinLedger struct {
	ledger
	all    [][]byte
	places int
}

func (l *joinLedger) Object(raw []byte, end int) bool {
	l.all, l.places = append(l.all, raw), l.places+1
	return l.ledger.Object(raw, end)
}

func (l *joinLedger) Record(raw []byte, places, end int) bool {
	if lines := linesOf(raw); len(lines) != places || len(lines) > trace.MaxLines || len(lines) > 1 && len(raw) > trace.MaxBytes {
		l.t.Fatalf("%d lines at %d places, %d bytes", len(lines), places, len(raw))
	}
	l.all, l.places = append(l.all, raw), l.places+places
	return l.ledger.Record(raw, places, end)
}

func (l *joinLedger) Reject(raw []byte, why Rejection, end int) bool {
	l.all, l.places = append(l.all, raw), l.places+1
	return l.ledger.Reject(raw, why, end)
}

// linesOf are the lines of a text that are not empty, without the blanks around them.
func linesOf(text []byte) (lines [][]byte) {
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		if line = bytes.Trim(line, " \t\r"); len(line) > 0 {
			lines = append(lines, line)
		}
	}
	return lines
}

// checkJoin fails if the records of a body of lines are not its lines in order, each in one
// record. It returns the records.
func checkJoin(t *testing.T, body []byte) [][]byte {
	t.Helper()
	body = slices.Clip(body)
	l := &joinLedger{ledger: ledger{t: t, parser: meaning.NewReader(), body: body, seen: make([]bool, len(body))}}
	decodeMixed(body, 0, l)
	var got [][]byte
	for _, raw := range l.all {
		got = append(got, linesOf(raw)...)
	}
	want := linesOf(body)
	if bytes.ContainsRune(body, '{') { // objects may share a line
		got, want = [][]byte{bytes.Join(got, nil)}, [][]byte{bytes.Join(want, nil)}
		for i := range got {
			got[i], want[i] = bytes.ReplaceAll(got[i], []byte(" "), nil), bytes.ReplaceAll(want[i], []byte(" "), nil)
			got[i], want[i] = bytes.ReplaceAll(got[i], []byte("\t"), nil), bytes.ReplaceAll(want[i], []byte("\t"), nil)
			got[i], want[i] = bytes.ReplaceAll(got[i], []byte("\r"), nil), bytes.ReplaceAll(want[i], []byte("\r"), nil)
		}
	}
	if !slices.EqualFunc(got, want, bytes.Equal) {
		t.Fatalf("%q\n got %q\nwant %q", body, got, want)
	}
	return l.all
}

// FuzzJoin joins the lines of any text: no byte is lost, no line is in two records, and a record
// stays within its bounds.
func FuzzJoin(f *testing.F) {
	file, err := os.ReadFile("testdata/traces.txt")
	if err != nil {
		f.Fatal(err)
	}
	for part := range bytes.SplitSeq(file, []byte("\n-- ")) {
		_, text, _ := bytes.Cut(part, []byte("\n"))
		f.Add(text)
		f.Add(bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n\r\n")))
	}
	f.Add([]byte("Nov 20, 2026 11:00:00 AM c.X m\nSEVERE: a\n{\n  b\n}\n=\n#\n# A\n(\n\"\n\x1b[m\n\x1b[31m \n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		checkCRI(t, body)
		if !hasCRI(body) {
			checkJoin(t, body)
		}
		meaning.NewReader().Seek(body, &meaning.Defaults{}, len(body)%2 == 0)
	})
}

// Lines of traces and other lines follow one another in any order, and the body comes in any
// pieces. The records have all lines in their order, and are the same each time.
func TestJoinKeepsAll(t *testing.T) {
	file, err := os.ReadFile("testdata/traces.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := append(bytes.Split(file, []byte("\n")), bytes.Split([]byte("INFO a\nERROR b\n{\n}\n  c\n\n\r\n2026-11-20 10:00:00 WARN d\n{\"e\":1}\n[\n]\ntext\n"), []byte("\n"))...)
	until := time.Now().Add(500 * time.Millisecond)
	for seed := uint64(0); time.Now().Before(until); seed++ {
		r := rand.New(rand.NewPCG(seed, 36))
		var text []byte
		for at := r.IntN(len(lines)); len(text) < 2000; at++ {
			if r.IntN(3) == 0 {
				at = r.IntN(len(lines))
			}
			text = append(append(text, lines[at%len(lines)]...), '\n')
		}
		whole := checkJoin(t, text)
		var wire bytes.Buffer
		z := gzip.NewWriter(&wire)
		for rest := text; len(rest) > 0; {
			n := 1 + r.IntN(len(rest))
			_, werr := z.Write(rest[:n])
			if err := errors.Join(werr, z.Flush()); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		in, err := NewReader(Gzip, iotest.HalfReader(&wire))
		if err != nil {
			t.Fatal(err)
		}
		read, err := io.ReadAll(iotest.OneByteReader(in))
		if err != nil {
			t.Fatal(err)
		}
		if again := checkJoin(t, read); !slices.EqualFunc(whole, again, bytes.Equal) {
			t.Fatalf("in pieces %q, want %q", again, whole)
		}
	}
}

// FuzzDecompress feeds damaged bodies to the decompressors.
func FuzzDecompress(f *testing.F) {
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\xaa\xae\x05\x00\x43\xbf\xa6\xa3\x02\x00\x00\x00"))
	f.Add([]byte("\x28\xb5\x2f\xfd\x04\x00\x11\x00\x00\x7b\x7d\xd4\xbc\x23\xb1"))
	f.Add([]byte("\x02\x04\x7b\x7d"))
	f.Add([]byte(snappyStream + "\x01\x06\x00\x00\x00\x00\x00\x00{}"))
	f.Add([]byte("\x78\x9c\xab\xae\x05\x00\x01\x75\x00\xf9"))
	d := NewDecompressor(1)
	grow := func(buf []byte, n int) ([]byte, error) { return append(make([]byte, 0, n), buf...), nil }
	f.Fuzz(func(t *testing.T, wire []byte) {
		for _, enc := range []Encoding{Gzip, Zstd, Deflate, Snappy} {
			out, err := d.Decompress(t.Context(), enc, wire, grow)
			if limit := min(MaxDecoded, 1<<20+MaxRatio*len(wire)); err == nil && len(out) > limit {
				t.Errorf("%s: %d bytes of %d", enc, len(out), len(wire))
			}
			var e *Error
			if err != nil && (!errors.As(err, &e) || e.Reason == "") {
				t.Errorf("%s: %v", enc, err)
			}
		}
	})
}
