package answers

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"

	"blobtail/internal/dev/bench/rig"
)

// Index has of a corpus the parts that answers need, and texts to search for, which a seed draws.
type Index struct {
	Form     // of the corpus
	corpus   *rig.Corpus
	random   *rand.Rand
	services []string            // the first is that of the generator's answers
	all      map[string][]Record // by service, in order of time
	errors   map[string][]Record // those of the levels error and critical
	levels   map[cell]int        // numbers of records by level
	status   map[cell]int        // and by status
	found    map[finding][]Record
	plants   []planted
	requests []string // ids of requests; the first is one of the newest records'
	tokens   []string // ids in messages
	literals map[string][]*regexp.Regexp
}

// cell is a value in a minute of a service.
type cell struct {
	service, value string
	minute         int64 // since 1970
}

// finding is a text that was found in records, of a service if the question is of one.
type finding struct{ service, text string }

// planted is a needle in the message of a record.
type planted struct {
	record         Record
	needle, before string // before is the text before it in its message
}

// samples is about the number of records that may give their ids.
const samples = 100_000

// seldom are words that few messages of the generator have, and never as a part of a longer word.
const seldom = "mailbox deadlock declined insufficient undecodable unexpected permission delivery goroutine recovered unavailable " +
	"upstream stopped damaged promoting volume killed resident"

// New reads a corpus. Its records get sums by the seed.
func New(c *rig.Corpus, seed maphash.Seed) (*Index, error) {
	x := &Index{Form: Ours(seed), corpus: c, random: rand.New(rand.NewPCG(c.Seed, 0)), services: []string{c.LastService},
		all: map[string][]Record{}, errors: map[string][]Record{}, levels: map[cell]int{}, status: map[cell]int{},
		found: map[finding][]Record{}, literals: map[string][]*regexp.Regexp{}}
	for _, s := range c.Services {
		if s != c.LastService {
			x.services = append(x.services, s)
		}
	}
	if len(c.Last) == 0 || c.LastService != c.RegexService || len(c.Needles) < 3 {
		return nil, errors.New("the generator's answers have no newest records, few needles, or two services")
	}
	x.requests = []string{c.Last[len(c.Last)/2]}
	for _, text := range append(expressions(), c.Regex) {
		e, err := regexp.Compile(text)
		if err != nil {
			return nil, err
		}
		literal := literalOf(e)
		x.literals[literal] = append(x.literals[literal], e)
	}
	if err := x.read(); err != nil {
		return nil, err
	}
	for _, of := range []map[string][]Record{x.all, x.errors} {
		for _, records := range of {
			slices.SortFunc(records, byTime)
		}
	}
	for _, texts := range [][]string{x.requests[1:], x.tokens} {
		x.random.Shuffle(len(texts), func(i, j int) { texts[i], texts[j] = texts[j], texts[i] })
	}
	return x, nil
}

func byTime(a, b Record) int { return cmp.Compare(a.At, b.At) }

// record is a record of the corpus, as its file has it.
type record struct{ level, service, status, request, msg []byte }

// read reads the corpus. A needle, an id or a word is in a message if it stands between borders of
// words: needles and ids are never parts of longer ones. Drawn ids are in one record alone.
func (x *Index) read() error {
	words := map[string]string{}
	for word := range strings.FieldsSeq(seldom) {
		words[word] = word
	}
	names := map[string]string{} // so that each is one string
	name := func(b []byte) string {
		if _, ok := names[string(b)]; !ok {
			names[string(b)] = string(b)
		}
		return names[string(b)]
	}
	step := max(1, x.corpus.Records/samples)
	n := 0
	for line, err := range rig.Lines(x.corpus.File) {
		if err != nil {
			return err
		}
		it, err := x.Record(line)
		if err != nil {
			return err
		}
		var r record
		of := map[string]*[]byte{"level": &r.level, "service": &r.service, "status": &r.status, "request_id": &r.request, "msg": &r.msg}
		_ = rig.Members(line, func(name, value []byte, _ bool) error { // Record has read them
			if to := of[string(name)]; to != nil {
				*to = value
			}
			return nil
		})
		service, level, minute := name(r.service), name(r.level), it.At/int64(time.Minute)
		x.all[service] = append(x.all[service], it)
		if level == "error" || level == "critical" {
			x.errors[service] = append(x.errors[service], it)
		}
		x.levels[cell{service, level, minute}]++
		x.status[cell{service, name(r.status), minute}]++
		x.search(it, service, &r, words, n%step == 0)
		n++
	}
	return nil
}

// search searches a record for all texts, and draws its ids if it is a sample.
func (x *Index) search(it Record, service string, r *record, words map[string]string, sample bool) {
	if string(r.request) == x.requests[0] {
		x.add(finding{text: x.requests[0]}, it)
	} else if sample {
		x.requests = append(x.requests, string(r.request))
		x.add(finding{text: string(r.request)}, it)
	}
	for run := range bytes.FieldsFuncSeq(r.msg, func(c rune) bool { return !joins(c) }) {
		if text, ok := words[string(run)]; ok {
			x.add(finding{service, text}, it)
		} else if sample && isID(run) {
			x.tokens = append(x.tokens, string(run))
			x.add(finding{text: string(run)}, it)
		} else if bytes.HasPrefix(run, []byte("needle-")) {
			before, _, _ := bytes.Cut(r.msg, run)
			x.add(finding{text: string(run)}, it)
			x.plants = append(x.plants, planted{it, string(run), string(before)})
		}
	}
	for literal, of := range x.literals {
		if bytes.Contains(r.msg, []byte(literal)) {
			for _, e := range of {
				if e.Match(r.msg) {
					x.add(finding{service, e.String()}, it)
				}
			}
		}
	}
}

// add adds a record to those with a text, once.
func (x *Index) add(f finding, it Record) {
	if have := x.found[f]; len(have) == 0 || have[len(have)-1] != it {
		x.found[f] = append(have, it)
	}
}

func joins(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c >= 0x80
}

// isID tells ids: 12 hexadecimal digits, with letters among them.
func isID(run []byte) bool {
	digits := len(bytes.Trim(run, "abcdef"))
	return len(run) == 12 && len(bytes.TrimLeft(run, "0123456789abcdef")) == 0 && digits > 0 && len(bytes.Trim(run, "0123456789")) > 0
}

// expressions search for kinds of errors of the generator. All matches of one begin with a literal of
// whole words.
func expressions() (texts []string) {
	for _, tens := range "0123" {
		for _, ones := range []string{"[0-9]", "[0-4]", "[5-9]", "[13579]", "[02468]", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"} {
			if text := fmt.Sprintf("timeout after [0-9.]+ms shard-%c%s", tens, ones); text != "timeout after [0-9.]+ms shard-1[0-9]" {
				texts = append(texts, text) // that one is the generator's
			}
		}
	}
	const users = "alice bob carol dave erin frank grace heidi ivan judy mallory niaj olivia peggy rupert sybil trent victor walter zoe"
	for user := range strings.FieldsSeq(users) {
		texts = append(texts, "mail delivery failed to="+user+"[0-9]+@", "permission denied for user "+user+" on resource /[a-z]+/v[0-9]")
	}
	for i := range 10 {
		texts = append(texts, fmt.Sprintf("connect: connection refused [(]service=node-%d?%d ", i%4, i))
	}
	return texts
}

// literalOf is the literal with which all matches begin, in whole words. A phrase of VictoriaLogs ends
// with a word. The last one of the prefix may go on.
func literalOf(e *regexp.Regexp) string {
	literal, _ := e.LiteralPrefix()
	return literal[:max(0, strings.LastIndexByte(literal, ' '))]
}

// within returns those of the records that a time has.
func within(records []Record, from, to time.Time) []Record {
	find := func(t time.Time) int {
		i, _ := slices.BinarySearchFunc(records, t.UnixNano(), func(r Record, at int64) int { return cmp.Compare(r.At, at) })
		return i
	}
	return records[find(from):find(to)]
}

// newestRecords is the number of records in answers with the newest.
const newestRecords = 100

// newest returns the newest records of services before a moment; none, if it does not know which
// ones they are because two have the same time.
func (x *Index) newest(before time.Time, services ...string) []Record {
	var all []Record
	for _, service := range services {
		records := within(x.all[service], x.corpus.From, before)
		all = append(all, records[max(0, len(records)-newestRecords-1):]...)
	}
	slices.SortFunc(all, byTime)
	if n := len(all) - newestRecords; n > 0 {
		if all[n].At == all[n-1].At {
			return nil
		}
		all = all[n:]
	}
	return all
}

// MinutesOf are the generator's counts by minute and level, of corpora that follow one another.
func MinutesOf(parts ...*rig.Corpus) Answer {
	got := Numbers{}
	for _, c := range parts {
		for minute, levels := range c.PerMinute {
			for i, level := range []string{"debug", "info", "warn", "error", "critical"} {
				if levels[i] > 0 {
					got[minute+" "+level] = levels[i]
				}
			}
		}
	}
	return Answer{count: func() Numbers { return got }}
}

// minute is the key of a cell by level.
func minute(c cell) string { return stamp(c.minute*int64(time.Minute)) + " " + c.value }
