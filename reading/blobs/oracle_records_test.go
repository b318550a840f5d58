package blobs_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/blobwriter"
	"blobtail/internal/dev/corpus"
	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/storage"
	"blobtail/storage/dir"
	"blobtail/storage/mem"
)

// loghub has real logs, which are no part of the repository.
const loghub = "../../../shared/data/loghub"

// seen is a stored record as encoding/json decodes it.
type seen struct {
	line   string
	level  string
	texts  []string
	fields map[string]any
}

// see decodes a stored line. A field that is a text stands without its quotes in key=value
// if it can.
func see(t testing.TB, line string) *seen {
	t.Helper()
	s := &seen{line: line}
	var raw map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal([]byte(line), &raw), json.Unmarshal([]byte(line), &s.fields)); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	s.level = s.fields["level"].(string)
	_, tail, _ := strings.Cut(line, `,"msg":"`)
	s.texts = append(s.texts, strings.TrimSuffix(tail, "\n"))
	for key, value := range s.fields {
		shown := string(raw[key])
		if text, ok := value.(string); ok {
			s.texts = append(s.texts, text)
			if inside := shown[1 : len(shown)-1]; inside != "" && !strings.ContainsAny(inside, " =\"\\") {
				shown = inside
			}
		}
		if !slices.Contains([]string{"ts", "level", "service", "msg"}, key) {
			s.texts = append(s.texts, key+"="+shown)
		}
	}
	slices.Sort(s.texts)
	return s
}

// wildText is a text of JSON, with its quotes: every kind of character, escaped or not.
func wildText(rng *rand.Rand, most int) string {
	alphabet := []string{"a", "b", "k", "S", "K", "=", "=", `\"`, `\\`, " ", `\n`, `\t`, `\u0001`, `\u202e`, "\u202e", "é", `\u00e9`, "日", "ſ", "\u212a", `\u212A`,
		"_", "7", "}", ",", ":", "{", "/", `\/`, "n", "u0", "error", `\u0041`, `\u0022`, `\u005c`, `\ud83d\ude00`, "😀", "\xff", "\xc3", `\ufffd`, "\ufffd", `\u0000`, "e\u0301", `\r\n`, "<", "&"}
	var b strings.Builder
	b.WriteByte('"')
	for range rng.IntN(most) {
		b.WriteString(alphabet[rng.IntN(len(alphabet))])
	}
	b.WriteByte('"')
	return b.String()
}

// wildValue is any value of JSON.
func wildValue(rng *rand.Rand, depth int) string {
	numbers := []string{"0", "-0", "1e5", "1E+2", "0.10", "12345678901234567890", "123456789012345678901234567890.5", "-7", "502", "502.0", "1.5e-7", fmt.Sprint(rng.IntN(600))}
	switch n := rng.IntN(12); {
	case n < 5:
		return wildText(rng, 7)
	case n < 8:
		return numbers[rng.IntN(len(numbers))]
	case n == 8:
		return []string{"null", "true", "false"}[rng.IntN(3)]
	case n == 9 || depth == 0:
		return "[" + wildText(rng, 4) + ", 1 ]"
	}
	// An inner key may come twice.
	return `{ "status":` + wildValue(rng, depth-1) + `,"a":` + wildValue(rng, depth-1) + `,` + wildText(rng, 3) + `:1, "b":` + wildValue(rng, depth-1) + `,"status": 404}`
}

// wildBody makes records as an awkward sender writes them, one on a line.
func wildBody(rng *rand.Rand, n int) []byte {
	var out []byte
	for i := range n {
		level := []string{`"error"`, `"INFO"`, `"warn"`, wildText(rng, 4), "3", "null"}[rng.IntN(6)]
		out = fmt.Appendf(out, `{"time":%d.%03d,"level":%s,"msg":%s`, 1795187045+i/3, rng.IntN(1000), level, wildText(rng, 14))
		names := []string{"status", "path", "http", "http.status", "none", "ok", "count", "duration", "type", "len", "n", "größe", "big"}
		rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for _, name := range names[:rng.IntN(5)] {
			out = fmt.Appendf(out, `,%q: %s`, name, wildValue(rng, 2))
		}
		if rng.IntN(2) == 0 {
			out = fmt.Appendf(out, `,"id":"%02x","order":"o-%08d"`, sha256.Sum256([]byte{byte(rng.IntN(50))}), rng.IntN(100)*1_234_567)
		}
		for k := range rng.IntN(3) {
			out = fmt.Appendf(out, `,"%d%s : %s`, k, wildText(rng, 4)[1:], wildValue(rng, 1))
		}
		out = append(out, "}\n"...)
	}
	return out
}

// realBody is some lines of a log of loghub, or of package corpus where there is none.
func realBody(t testing.TB, rng *rand.Rand, n int) []byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(loghub, "*.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		var b bytes.Buffer
		if _, err := corpus.Write(&b, corpus.Options{Seed: rng.Uint64(), Records: n, Span: 3 * time.Hour, Odd: true}); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	text, err := os.ReadFile(files[rng.IntN(len(files))])
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	from := rng.IntN(max(1, len(lines)-n))
	return bytes.Join(lines[from:min(from+n, len(lines))], nil)
}

// storedRecs makes records of NDJSON.
func storedRecs(t testing.TB, service string, body []byte) (all []rec) {
	t.Helper()
	p := meaning.NewReader()
	for line := range bytes.Lines(body) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if _, err := p.Scan(line); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		out, stamp := p.AppendLine(nil, &meaning.Defaults{Service: service, Time: 1795187045250000000})
		all = append(all, rec{service: service, time: stamp.Time, origin: origin(1), index: uint32(len(all)), line: string(out)})
	}
	return all
}

// drawRecords stores real and generated records, and returns them as they are known: of
// each service, in a store in memory with blocks of a few lines, or in a directory with
// blobs of the writer.
func drawRecords(t *testing.T, rng *rand.Rand, small bool) (storage.BlobStore, map[string][]*seen) {
	t.Helper()
	const size = 120
	b := newBuilder(t, 1+rng.IntN(8000))
	b.store = mem.New(mem.Options{})
	if !small {
		d, err := dir.Open(t.TempDir(), dir.Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		b.store = d
	}
	services := map[string][]*seen{}
	for service, body := range map[string][]byte{"real": realBody(t, rng, size), "wild": wildBody(rng, size)} {
		hours := map[int64][]rec{}
		for _, r := range storedRecs(t, service, body) {
			hours[r.time/3600e9] = append(hours[r.time/3600e9], r)
			services[service] = append(services[service], see(t, r.line))
		}
		for _, recs := range hours {
			if small {
				b.add(time.Hour, recs)
				continue
			}
			w := blobwriter.New(b.store, blobwriter.Options{}, nil)
			if err := w.Write(t.Context(), newBatch(w, b.batch(), recs)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b.store, services
}

// written is a batch for the writer.
type written struct {
	id   [16]byte
	recs []rec
	pin  []byte
}

func newBatch(w *blobwriter.Writer, id [16]byte, recs []rec) *written {
	slices.SortFunc(recs, compareRecs)
	b := &written{id: id, recs: recs}
	binary.BigEndian.PutUint64(b.id[:], uint64(cmp.Or(recs[0].time, 1)))
	b.pin = w.Plan(b.Service(), b.Period())
	return b
}

func (b *written) ID() [16]byte      { return b.id }
func (b *written) Service() string   { return b.recs[0].service }
func (b *written) Period() time.Time { return time.Unix(0, b.recs[0].time).UTC().Truncate(time.Hour) }
func (b *written) Attempts() int     { return 0 }
func (b *written) Pin() []byte       { return b.pin }
func (b *written) Walk(pin []byte)   { b.pin = pin }

func (b *written) Each(_ context.Context, f func(line []byte, t int64, o record.Origin, index uint32) error) error {
	for _, r := range b.recs {
		if err := f([]byte(r.line), r.time, r.origin, r.index); err != nil {
			return err
		}
	}
	return nil
}
