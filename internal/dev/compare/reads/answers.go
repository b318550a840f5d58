package reads

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"blobtail/internal/dev/bench/rig"
	"blobtail/internal/dev/compare/canon"
)

// numbers are counts by their key.
type numbers map[string]int

// one is a record in its canonical form.
type one struct {
	at  int64
	sum uint64
}

func bySum(a, b one) int { return cmp.Or(cmp.Compare(a.sum, b.sum), cmp.Compare(a.at, b.at)) }

// answer is the right answer to a question: numbers, or records.
type answer struct {
	seed    maphash.Seed
	numbers numbers
	records []one // by their sums
}

// check holds the body of an answer against the right one.
func (q *question) check(f *form, body []byte) error {
	if f.counts != nil {
		got, err := f.counts(body)
		if err != nil {
			return fmt.Errorf("%w: %.300s", err, body)
		}
		return differentNumbers(got, q.want.numbers)
	}
	in := canon.Corpus(q.want.seed)
	if f.theirs {
		in = canon.Victoria(q.want.seed)
	}
	got := make([]one, 0, len(q.want.records))
	var last int64
	for line := range bytes.Lines(body) {
		at, sum, err := in.Sum(line)
		if err != nil {
			return err
		}
		if len(got) > 0 && (f.order == oldestFirst && at < last || f.order == newestFirst && at > last) {
			return fmt.Errorf("record %d of %s is out of order: %.300s", len(got)+1, at9(at), line)
		}
		last = at
		got = append(got, one{at, sum})
	}
	return q.want.differentRecords(got, func(strange one) string {
		for line := range bytes.Lines(body) {
			if _, sum, err := in.Sum(line); err == nil && sum == strange.sum {
				return string(line)
			}
		}
		return ""
	})
}

func at9(at int64) string { return time.Unix(0, at).UTC().Format(time.RFC3339Nano) }

// differentRecords tells how records differ from the right ones.
func (a *answer) differentRecords(got []one, line func(one) string) error {
	slices.SortFunc(got, bySum)
	if slices.Equal(got, a.records) {
		return nil
	}
	var lacks, strange []one
	i, j := 0, 0
	for i < len(got) || j < len(a.records) {
		switch {
		case j == len(a.records) || i < len(got) && bySum(got[i], a.records[j]) < 0:
			strange = append(strange, got[i])
			i++
		case i == len(got) || bySum(got[i], a.records[j]) > 0:
			lacks = append(lacks, a.records[j])
			j++
		default:
			i, j = i+1, j+1
		}
	}
	text := fmt.Sprintf("%d records, and %d are right", len(got), len(a.records))
	if len(lacks) > 0 {
		text += fmt.Sprintf("; it lacks %d, such as one of %s", len(lacks), at9(lacks[0].at))
	}
	if len(strange) > 0 {
		text += fmt.Sprintf("; it has %d that it must not have, or not as often, such as %.600s", len(strange), strings.TrimSpace(line(strange[0])))
	}
	return errors.New(text)
}

// differentNumbers tells how numbers differ from the right ones.
func differentNumbers(got, want numbers) error {
	if maps.Equal(got, want) {
		return nil
	}
	keys := maps.Clone(want)
	maps.Copy(keys, got)
	var text []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if got[key] != want[key] {
			text = append(text, fmt.Sprintf("%s has %d, not %d", key, got[key], want[key]))
		}
	}
	if len(text) == 0 {
		return errors.New("it has a key without records")
	}
	return fmt.Errorf("%d of %d numbers are wrong: %s", len(text), len(keys), strings.Join(text[:min(3, len(text))], "; "))
}

// record is a record of the corpus, as its file has it.
type record struct {
	at                                int64
	line, level, service, status, msg []byte
}

// scan calls f for each record of a corpus, which is valid until f returns.
func scan(file string, f func(*record) error) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 1<<20), 1<<20)
	for lines.Scan() {
		r := record{line: lines.Bytes()}
		err := canon.Members(r.line, func(name, value []byte) error {
			switch string(name) {
			case "ts":
				t, err := time.Parse(time.RFC3339Nano, string(value))
				r.at = t.UnixNano()
				return err
			case "level":
				r.level = value
			case "service":
				r.service = value
			case "status":
				r.status = value
			case "msg":
				r.msg = value
			}
			return nil
		})
		if err == nil {
			err = f(&r)
		}
		if err != nil {
			return fmt.Errorf("%w: %.300s", err, r.line)
		}
	}
	return lines.Err()
}

// questionsOf makes the questions to a corpus, and finds the right answers in it.
func questionsOf(c *rig.Corpus) ([]*question, error) {
	a := &asked{service: c.LastService, regex: c.Regex, searched: c.RegexService}
	var err1, err2 error
	a.from2m, a.to2m, err1 = c.Window("2m")
	a.from1h, a.to1h, err2 = c.Window("1h")
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	most := 0
	for _, n := range c.Needles {
		if n.Count > most {
			a.needle, most = n.Token, n.Count
		}
	}
	if len(c.Last) == 0 || a.needle == "" {
		return nil, errors.New("the generator's answers have no token, or no newest records")
	}
	a.request = c.Last[len(c.Last)/2]
	a.literal, _ = regexp.MustCompile(a.regex).LiteralPrefix()
	// A phrase of VictoriaLogs ends with a word. The last one of the literal may go on.
	if end := strings.LastIndexByte(a.literal, ' '); end > 0 {
		a.literal = a.literal[:end]
	}
	a.ask()
	if err := a.answer(c); err != nil {
		return nil, err
	}
	return a.all, a.agree(c)
}

// answer finds the right answers.
func (a *asked) answer(c *rig.Corpus) error {
	matches, err := a.matches()
	if err != nil {
		return err
	}
	keys := map[string]func(*record) string{
		"minutes":  func(r *record) string { return minute(r.at) + " " + string(r.level) },
		"services": func(r *record) string { return string(r.service) },
		"facet": func(r *record) string {
			if !matches["hour"](r) {
				return ""
			}
			return string(r.status)
		},
	}
	seed := maphash.MakeSeed()
	for _, q := range a.all {
		q.want.seed, q.want.numbers = seed, numbers{}
	}
	form := canon.Corpus(seed)
	last := map[*question]*newestOf{}
	err = scan(c.File, func(r *record) error {
		for _, q := range a.all {
			if key := keys[q.id]; key != nil {
				if k := key(r); k != "" {
					q.want.numbers[k]++
				}
				continue
			}
			if !matches[q.id](r) {
				continue
			}
			if q.theirs.order == newestFirst {
				if last[q] == nil {
					last[q] = &newestOf{}
				}
				last[q].add(r)
				continue
			}
			at, sum, err := form.Sum(r.line)
			if err != nil {
				return err
			}
			q.want.records = append(q.want.records, one{at, sum})
		}
		return nil
	})
	for q, n := range last {
		records, err2 := n.records(form)
		q.want.records, err = records, errors.Join(err, err2)
	}
	for _, q := range a.all {
		slices.SortFunc(q.want.records, bySum)
	}
	return err
}

// matches tells for each question for records which ones answer it.
func (a *asked) matches() (map[string]func(*record) bool, error) {
	from2m, to2m, err1 := between(a.from2m, a.to2m)
	from1h, to1h, err2 := between(a.from1h, a.to1h)
	expression := regexp.MustCompile(a.regex)
	holds := func(text string) func(*record) bool {
		return func(r *record) bool { return bytes.Contains(r.line, []byte(text)) }
	}
	of := func(service string, also func(*record) bool) func(*record) bool {
		return func(r *record) bool { return string(r.service) == service && also(r) }
	}
	every := func(*record) bool { return true }
	// The token, the id and the word are never parts of longer words.
	return map[string]func(*record) bool{
		"window": of(a.service, func(r *record) bool {
			return r.at >= from2m && r.at < to2m && (string(r.level) == "error" || string(r.level) == "critical")
		}),
		"hour": of(a.service, func(r *record) bool { return r.at >= from1h && r.at < to1h }),
		"word": holds(a.needle), "text": holds(a.needle), "id": holds(a.request),
		"rare":       of(a.searched, holds(seldom)),
		"expression": of(a.searched, func(r *record) bool { return expression.Match(r.msg) }),
		"newest":     of(a.service, every), "newest-all": every,
	}, errors.Join(err1, err2)
}

// minute is the beginning of a minute, as a text.
func minute(at int64) string { return at9(at / int64(time.Minute) * int64(time.Minute)) }

// newestRecords is the number of records in answers with the newest.
const newestRecords = 100

// newestOf has candidates for the newest records.
type newestOf struct{ lines []timed }

type timed struct {
	at   int64
	line []byte
}

func (n *newestOf) add(r *record) {
	n.lines = append(n.lines, timed{r.at, bytes.Clone(r.line)})
	if len(n.lines) > 100*newestRecords {
		n.trim()
	}
}

// trim keeps one more than the newest.
func (n *newestOf) trim() {
	slices.SortFunc(n.lines, func(x, y timed) int { return cmp.Compare(y.at, x.at) })
	n.lines = n.lines[:min(len(n.lines), newestRecords+1)]
}

func (n *newestOf) records(form canon.Form) (out []one, err error) {
	n.trim()
	if len(n.lines) > newestRecords {
		if n.lines[newestRecords].at == n.lines[newestRecords-1].at {
			return nil, fmt.Errorf("the newest %d records are not distinct from the next one by their time; take another seed", newestRecords)
		}
		n.lines = n.lines[:newestRecords]
	}
	for _, l := range n.lines {
		at, sum, err := form.Sum(l.line)
		if err != nil {
			return nil, err
		}
		out = append(out, one{at, sum})
	}
	return out, nil
}

func between(from, to string) (first, end int64, err error) {
	f, err1 := time.Parse(time.RFC3339Nano, from)
	t, err2 := time.Parse(time.RFC3339Nano, to)
	return f.UnixNano(), t.UnixNano(), errors.Join(err1, err2)
}

// agree holds the answers against the generator's own.
func (a *asked) agree(c *rig.Corpus) error {
	counts := map[string]int{}
	for _, w := range c.Windows {
		for level, n := range w.Counts[a.service] {
			if w.Name == "1h" || level == "error" || level == "critical" {
				counts[w.Name] += n
			}
		}
	}
	minutes := numbers{}
	for minute, levels := range c.PerMinute {
		for i, level := range []string{"debug", "info", "warn", "error", "critical"} {
			if levels[i] > 0 {
				minutes[minute+" "+level] = levels[i]
			}
		}
	}
	want := map[string]int{"window": counts["2m"], "hour": counts["1h"], "id": 1, "newest": min(newestRecords, len(c.Last)), "newest-all": min(newestRecords, c.Records), "expression": c.RegexMatches}
	for _, n := range c.Needles {
		if n.Token == a.needle {
			want["word"], want["text"] = n.Count, n.Count
		}
	}
	var err error
	for _, q := range a.all {
		n, known := want[q.id]
		switch {
		case known && n != len(q.want.records):
			err = errors.Join(err, fmt.Errorf("%s: the corpus has %d records, and the generator says %d", q.title, len(q.want.records), n))
		case q.id == "minutes":
			err = errors.Join(err, differentNumbers(q.want.numbers, minutes))
		case q.id == "services":
			err = errors.Join(err, differentNumbers(q.want.numbers, c.Per))
		case len(q.want.records)+len(q.want.numbers) == 0:
			err = errors.Join(err, fmt.Errorf("%s: the corpus has no record that answers it; take a larger one", q.title))
		}
	}
	return err
}
