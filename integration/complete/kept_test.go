package complete_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/blobfmt"
	"blobtail/internal/dev/testkit"
	"blobtail/internal/where"
	"blobtail/reading/blobs"
	"blobtail/reading/blobs/indexcache"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/mem"
)

// A reader that keeps what it has read, found and counted in blobs answers many questions for ids and
// texts, in many ranges, while blobs come and are replaced. Each answer has all records, each once.
func TestKept(t *testing.T) {
	s := simulation
	s.Test, s.Seeds = "TestKept", 40
	var total keptCounts
	first, done := testkit.Worlds(t, s, func(seed uint64) *keptWorld {
		return &keptWorld{rng: rand.New(rand.NewPCG(seed, 43)), store: mem.New(mem.Options{})}
	}, func(w *keptWorld) { testkit.Add(&total, &w.counts) })
	t.Logf("%d seeds from %d: %d blobs of %d records, %d replaced, %d questions for %d records", done, first, total.Blobs, total.Records, total.Replaced, total.Asked, total.Found)
	if done >= 20 && os.Getenv(mutatedEnv) == "" && total.Found < total.Asked/4 {
		t.Errorf("%d questions find %d records", total.Asked, total.Found)
	}
}

type keptCounts struct{ Blobs, Records, Replaced, Asked, Found int }

// A keptWorld is a store that one reader asks again and again.
type keptWorld struct {
	rng    *rand.Rand
	store  *mem.Store
	reader *blobs.Reader
	blobs  []keptBlob
	all    []keptRecord
	asked  []keptQuestion
	counts keptCounts

	violations, troubles []string
	story                strings.Builder
}

type keptBlob struct {
	key   string
	batch blobfmt.BatchID
	lines []keptRecord
}

type keptRecord struct {
	time           int64
	level, msg, id string
	line           string
	origin         record.Origin
}

// A keptQuestion is a filter, and the records that it means.
type keptQuestion struct {
	text  string
	where string
	f     blobs.Filter
	is    func(*keptRecord) bool
}

// Found implements [testkit.World].
func (w *keptWorld) Found() (violations, troubles []string) { return w.violations, w.troubles }

// Story implements [testkit.World].
func (w *keptWorld) Story() string { return w.story.String() }

// Run implements [testkit.World].
func (w *keptWorld) Run() {
	w.reader = blobs.New(w.store, blobs.Options{
		Workers: 2, Indexes: indexcache.New(0), Entries: 1 << 20, Distant: w.rng.IntN(2) == 0, Findings: []int64{10_000, 1 << 20, 64 << 20}[w.rng.IntN(3)],
	})
	for range 2 + w.rng.IntN(3) {
		w.add()
	}
	for range 40 {
		switch w.rng.IntN(20) {
		case 0:
			w.add()
		case 1:
			w.replace(w.rng.IntN(len(w.blobs)))
		}
		w.ask()
	}
}

// id draws an id in one of the forms that programs write.
func (w *keptWorld) id() string {
	b := make([]byte, 24)
	binary.LittleEndian.PutUint64(b, w.rng.Uint64())
	binary.LittleEndian.PutUint64(b[8:], w.rng.Uint64())
	binary.LittleEndian.PutUint64(b[16:], w.rng.Uint64())
	b[0], b[11] = b[0]|0xa0, b[11]|0xa0 // no text is a number
	digits := hex.EncodeToString(b)
	switch w.rng.IntN(8) {
	case 0:
		return digits
	case 1:
		return strings.ToUpper(digits[:32])
	case 2:
		return digits[:7+w.rng.IntN(34)]
	case 3:
		return digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:32]
	case 4:
		return "order_" + digits[:9] + ".é" + digits[20:27] + "é"
	case 5:
		return "Req/" + digits[:6] + ":" + strings.ToUpper(digits[20:31])
	case 6:
		return "line\n" + digits[:11] // its escape stands before the id
	}
	return digits[:32]
}

// record makes a record of an hour.
func (w *keptWorld) record(hour, n, of int) keptRecord {
	at := time.Date(2026, 11, 20, 8+hour, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Hour / time.Duration(of)).UnixNano()
	r := keptRecord{time: at, level: []string{"info", "info", "warn", "error"}[w.rng.IntN(4)], id: w.id()}
	if len(w.all) > 0 && w.rng.IntN(30) == 0 { // as one that goes through several programs
		r.id = w.all[w.rng.IntN(len(w.all))].id
	}
	r.msg = fmt.Sprintf("%s of %s done, %s", []string{"refund", "payment", "shipment"}[w.rng.IntN(3)], r.id, strings.Repeat("and so on ", w.rng.IntN(6)))
	line := record.AppendTime([]byte(`{"ts":"`), r.time)
	line = fmt.Appendf(line, `","level":"%s","service":"web","msg":"`, r.level)
	line = append(record.AppendEscaped(line, []byte(r.msg)), `","id":"`...)
	r.line = string(append(record.AppendEscaped(line, []byte(r.id)), `"}`+"\n"...))
	w.counts.Records++
	binary.BigEndian.PutUint64(r.origin[8:], uint64(w.counts.Records))
	return r
}

// add stores a blob.
func (w *keptWorld) add() {
	n := len(w.blobs)
	b := keptBlob{key: blobfmt.Name{Service: "web", Period: time.Date(2026, 11, 20, 8+n%5, 0, 0, 0, time.UTC), Number: 1 + n}.String()}
	b.batch[0] = byte(1 + n)
	w.blobs = append(w.blobs, b)
	w.fill(n)
	w.counts.Blobs++
	w.put(&w.blobs[n])
}

// fill makes the records of a blob.
func (w *keptWorld) fill(n int) {
	b, of := &w.blobs[n], []int{5, 100, 100, 800}[w.rng.IntN(4)]
	b.lines = nil
	for i := range of {
		b.lines = append(b.lines, w.record(n%5, i, of))
	}
	w.all = append(w.all, b.lines...)
}

// put stores a blob in blocks of a random size.
func (w *keptWorld) put(b *keptBlob) {
	size := []int{500, 2000, 8000, 64 << 10}[w.rng.IntN(4)]
	enc, err := blobfmt.NewEncoder(blobfmt.EncoderOptions{BlockSize: size, FilterPercent: 10_000}) // blobs are small, and yet have filters
	for i := range b.lines {
		if r := &b.lines[i]; err == nil {
			err = enc.Add([]byte(r.line), r.time, r.origin, 0)
		}
	}
	var body []byte
	var meta blobfmt.Meta
	if err == nil {
		body, meta, err = enc.Finish(b.batch)
	}
	if err == nil {
		err = w.store.Create(context.Background(), b.key, bytes.Clone(body), storage.Attrs{Metadata: meta.Map()})
	}
	w.trouble(err)
	fmt.Fprintf(&w.story, "%s: %d records, blocks of %d bytes, ids %q\n", b.key, len(b.lines), size, meta.IDs)
}

// replace stores the same records again, as another program may: in other blocks. Or another batch gets
// the name.
func (w *keptWorld) replace(n int) {
	b := &w.blobs[n]
	if w.counts.Replaced++; w.rng.IntN(2) == 0 {
		w.all = slices.DeleteFunc(w.all, func(r keptRecord) bool {
			return slices.ContainsFunc(b.lines, func(of keptRecord) bool { return of.origin == r.origin })
		})
		b.batch[1]++
		w.fill(n)
	}
	w.trouble(w.store.Delete(context.Background(), storage.Blob{Key: b.key}))
	w.put(b)
}

func (w *keptWorld) trouble(err error) {
	if err != nil && os.Getenv(mutatedEnv) == "" {
		w.troubles = append(w.troubles, err.Error())
	}
}

// question draws a question for an id that a record has, or that none has.
func (w *keptWorld) question() (q keptQuestion) {
	q.text = w.all[w.rng.IntN(len(w.all))].id
	if w.rng.IntN(4) == 0 {
		q.text = w.id()
	}
	if parts := strings.FieldsFunc(q.text, func(r rune) bool { return strings.ContainsRune("-/:.\n", r) }); w.rng.IntN(3) == 0 {
		q.text = parts[len(parts)-1]
	}
	if len(q.text) > 40 && w.rng.IntN(2) == 0 { // a part of a long one
		q.text = q.text[3:37]
	}
	if w.rng.IntN(12) == 0 {
		q.text = []string{"refund", "payment"}[w.rng.IntN(2)]
	}
	in := func(is func(text string) bool) func(*keptRecord) bool {
		return func(r *keptRecord) bool { return is(r.msg) || is(r.id) }
	}
	low := strings.ToLower(q.text)
	switch w.rng.IntN(6) {
	case 0:
		q.f.Texts, q.is = []string{q.text}, in(func(s string) bool { return strings.Contains(s, q.text) })
	case 1:
		q.f.Texts, q.f.Fold, q.is = []string{otherCase(q.text)}, true, in(func(s string) bool { return strings.Contains(strings.ToLower(s), low) })
	case 2:
		e := regexp.MustCompile(`(^|\W)` + regexp.QuoteMeta(q.text) + `(\W|$)`)
		q.f.Words, q.is = []string{q.text}, in(e.MatchString)
	case 3:
		e := regexp.MustCompile("(?i)" + regexp.QuoteMeta(q.text) + "|shipment of a[0-9]")
		q.f.Exprs, q.is = []string{e.String()}, in(e.MatchString)
	case 4:
		q.f.Texts, q.f.Invert, q.is = []string{q.text}, true, func(r *keptRecord) bool { return !strings.Contains(r.msg, q.text) && !strings.Contains(r.id, q.text) }
	case 5:
		q.where, q.is = fmt.Sprintf("id == %q", q.text), func(r *keptRecord) bool { return r.id == q.text }
	}
	if is := q.is; w.rng.IntN(3) == 0 {
		q.f.Levels, q.is = 1<<record.Error, func(r *keptRecord) bool { return r.level == "error" && is(r) }
	}
	return q
}

// otherCase exchanges upper and lower case of ASCII letters.
func otherCase(text string) string {
	return strings.Map(func(r rune) rune {
		if r|0x20 >= 'a' && r|0x20 <= 'z' {
			return r ^ 0x20
		}
		return r
	}, text)
}

// ask asks a question, often one that was asked before, in another range.
func (w *keptWorld) ask() {
	var q keptQuestion
	if n := len(w.asked); n > 0 && w.rng.IntN(2) == 0 {
		q = w.asked[max(0, n-1-w.rng.IntN(4))]
	} else {
		q = w.question()
		w.asked = append(w.asked, q)
	}
	rng := blobs.Always()
	if w.rng.IntN(2) == 0 {
		rng.From = w.all[w.rng.IntN(len(w.all))].time
	}
	if w.rng.IntN(2) == 0 {
		rng.To = max(rng.From+1, w.all[w.rng.IntN(len(w.all))].time+1)
	}
	if q.where != "" {
		e, err := where.Parse(nil, q.where, false)
		w.trouble(err)
		q.f.Where = e
	}
	want := map[string]int{}
	records := 0
	for i := range w.all {
		if r := &w.all[i]; rng.From <= r.time && r.time < rng.To && q.is(r) {
			want[r.line]++
			records++
		}
	}
	w.counts.Asked++
	w.counts.Found += records
	what := fmt.Sprintf("%q, %+v, where %q, range %+v", q.text, q.f, q.where, rng)
	fmt.Fprintf(&w.story, "asked for %s: %d records\n", what, records)
	plan, err := w.reader.Plan(context.Background(), blobs.Query{Services: []string{"web"}, Range: rng, Filter: q.f})
	w.trouble(err)
	if err != nil {
		return
	}
	sum, err := plan.Read(context.Background(), func(lines []byte) error {
		for line := range bytes.Lines(lines) {
			want[string(line)]--
		}
		return nil
	})
	w.judge(what, &sum, err, want)
	if n, sum, err := plan.Count(context.Background()); err == nil && sum.Complete() && n != int64(records) {
		w.violations = append(w.violations, fmt.Sprintf("a complete answer counts %d of %d records of %s", n, records, what))
	}
}

// judge compares an answer with what is wanted: lines with the number of their records.
func (w *keptWorld) judge(what string, sum *blobs.Summary, err error, want map[string]int) {
	if err != nil || !sum.Complete() || len(sum.Warnings) > 0 {
		w.trouble(fmt.Errorf("no fault, and yet: %w, %v, %v", err, sum.Problems, sum.Warnings))
		return
	}
	for line, n := range want {
		switch {
		case n > 0:
			w.violations = append(w.violations, fmt.Sprintf("a complete answer lacks a record of %s: %s", what, line))
		case n < 0:
			w.violations = append(w.violations, fmt.Sprintf("a complete answer has a record that is none of %s: %s", what, line))
		}
	}
}
