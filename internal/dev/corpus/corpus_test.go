package corpus_test

import (
	"bytes"
	"encoding/json"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"blobtail/internal/dev/corpus"
	"blobtail/record"
	"blobtail/record/meaning"
)

func write(t *testing.T, o corpus.Options) ([]byte, *corpus.Answers) {
	t.Helper()
	var b bytes.Buffer
	a, err := corpus.Write(&b, o)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), a
}

// Equal options give equal bytes forever: recorded measurements use them.
func TestGolden(t *testing.T) {
	b, _ := write(t, corpus.Options{Seed: corpus.ReferenceSeed, Records: 1000})
	const size, sum = 322476, 0x7460b064
	if got := crc32.ChecksumIEEE(b); len(b) != size || got != sum {
		t.Errorf("got %d bytes, checksum %#x; want %d, %#x", len(b), got, size, uint32(sum))
	}
	if other, _ := write(t, corpus.Options{Seed: 43, Records: 1000}); bytes.Equal(b, other) {
		t.Error("the seed changes nothing")
	}
}

// The answers are those of a count over the lines by the parser.
func TestAnswers(t *testing.T) {
	from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, odd := range []bool{false, true} {
		o := corpus.Options{Seed: 7, Records: 20_000, Services: 3, From: from, Span: 20 * time.Minute, Odd: odd}
		text, a := write(t, o)
		p, per, minutes, forms := meaning.NewReader(), map[string]int{}, map[string][5]int{}, 0
		window := corpus.NewWindow("", from.Add(10*time.Minute), 2*time.Minute)
		var newest []corpus.Record
		i := 0
		lines := slices.Collect(bytes.Lines(text))
		for r := range o.All() {
			line := lines[i]
			if i++; !bytes.Equal(line, r.Line) || !json.Valid(line) {
				t.Fatalf("record %d is %s, and was written as %s", i, r.Line, line)
			}
			if _, err := p.Scan(line); err != nil {
				t.Fatal(err)
			}
			stored, got := p.AppendLine(nil, &meaning.Defaults{})
			if got.Time != r.Time || got.Service != r.Service || got.Level != r.Level || !bytes.Contains(line, []byte(`"`+r.ID+`"`)) {
				t.Fatalf("%s says %+v, the corpus says %+v", line, got, r)
			}
			if r.Time < from.UnixNano() || r.Time >= from.Add(o.Span).UnixNano() {
				t.Fatalf("%s is outside the range", line)
			}
			if second := stored[len(`{"ts":"`):][:19]; !bytes.Contains(line, second) || !bytes.Contains(line, []byte(r.Level.String())) {
				forms++
			}
			per[r.Service]++
			minute := time.Unix(0, r.Time).UTC().Truncate(time.Minute).Format(time.RFC3339)
			n := minutes[minute]
			n[r.Level-record.Debug]++
			minutes[minute] = n
			window.Add(r)
			if r.Service == a.LastService {
				newest = append(newest, r)
			}
		}
		slices.SortStableFunc(newest, func(a, b corpus.Record) int { return int(b.Time - a.Time) })
		var last []string
		for _, r := range newest[:100] {
			last = append(last, r.ID)
		}
		found := map[string]int{}
		for _, token := range regexp.MustCompile(`needle-\d+`).FindAllString(string(text), -1) {
			found[token]++
		}
		for k, n := range a.Needles {
			if n.Count != k%3+1 || found[n.Token] != n.Count {
				t.Errorf("%+v is in %d records", n, found[n.Token])
			}
		}
		matches := len(regexp.MustCompile(`"service":"`+a.RegexService+`".*`+a.Regex).FindAll(text, -1))
		same := func(x, y any) bool {
			a, _ := json.Marshal(x)
			b, _ := json.Marshal(y)
			return bytes.Equal(a, b)
		}
		if of := a.Windows[0]; !same(of.Counts, window.Counts) || of.From != window.From || window.Counts.Of() == 0 {
			t.Errorf("odd: %v: the first window is %+v, want %+v", odd, of, window)
		}
		if !same(a.Per, per) || !same(a.PerMinute, minutes) || !same(a.Last, last) || a.RegexMatches != matches || matches == 0 {
			t.Errorf("odd: %v, %d matches: the answers are %+v", odd, matches, a)
		}
		if odd != (forms > 0) {
			t.Errorf("%d records have an odd form", forms)
		}
	}
}

// The reference corpus is of the kind that recorded figures are of.
func TestReference(t *testing.T) {
	text, a := write(t, corpus.Options{Seed: corpus.ReferenceSeed, Records: 100_000})
	if size := len(text) / 100_000; size < 320 || size > 326 || len(a.Per) != 8 || a.Per["gateway"] < 39_000 || a.Per["gateway"] > 41_000 {
		t.Errorf("%d bytes a record, records by service %v", size, a.Per)
	}
	if i := bytes.IndexByte(text, '$'); i >= 0 {
		t.Errorf("a name without a value: %.20s", text[i:])
	}
}

func TestPost(t *testing.T) {
	text, _ := write(t, corpus.Options{Seed: 1, Records: 2500})
	bodies := corpus.Bodies(text, 1000)
	if len(bodies) != 3 || !bytes.Equal(bytes.Join(bodies, nil), text) || bytes.Count(bodies[2], []byte("\n")) != 500 {
		t.Errorf("%d bodies", len(bodies))
	}
	var got, code atomic.Int64
	code.Store(http.StatusOK)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got.Add(int64(len(body)))
		w.WriteHeader(int(code.Load()))
		_, _ = io.WriteString(w, "said "+r.Header.Get("Content-Type"))
	}))
	defer s.Close()
	header := http.Header{"Content-Type": {"application/x-ndjson"}}
	sent, err := corpus.Post(t.Context(), s.URL, header, 2, bodies)
	n := int64(len(text))
	if err != nil || got.Load() != n || sent.Bytes != n || sent.P50MS <= 0 || sent.P99MS < sent.P50MS || sent.Seconds <= 0 {
		t.Errorf("%+v, %v, and %d bytes came", sent, err, got.Load())
	}
	code.Store(http.StatusServiceUnavailable)
	const refused = "503 Service Unavailable: said application/x-ndjson"
	if _, err := corpus.Post(t.Context(), s.URL, header, 2, bodies); err == nil || !strings.Contains(err.Error(), refused) {
		t.Errorf("refused: %v", err)
	}
}

func TestYardstick(t *testing.T) {
	text, _ := write(t, corpus.Options{Seed: 1, Records: 5000})
	if s, err := corpus.Yardstick(text, 1); err != nil || s < 0.1 || s > 100 {
		t.Errorf("%v s, %v", s, err)
	}
}
