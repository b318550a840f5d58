package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"blobtail/internal/dev/bench/rig"
)

// absent is a word that no record has. The scan of the corpus shows that.
const absent = "quagmire"

// queries are the reads of a corpus, and the questions that they answer.
type queries struct {
	window, hour, words, text, id, absentWord, absentText, newest, expression, everything *question

	from2m, to2m, from1h, to1h string
	needle, request            string // a token in three records, and an id of one record
	service, regex, searched   string
}

// queriesOf makes the queries of a corpus and scans the corpus for the answers.
func (b *bench) queriesOf(c *rig.Corpus) (*queries, error) {
	b.say("find the answers in %d records", c.Records)
	q := &queries{service: c.LastService, regex: c.Regex, searched: c.RegexService}
	var err, err2 error
	q.from2m, q.to2m, err = c.Window("2m")
	q.from1h, q.to1h, err2 = c.Window("1h")
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	for _, n := range c.Needles {
		if n.Count == 3 {
			q.needle = n.Token
			break
		}
	}
	if len(c.Last) == 0 || q.needle == "" {
		return nil, errors.New("the generator's answers have no token in three records, or no newest records")
	}
	q.request = c.Last[len(c.Last)/2]
	q.ask()
	if err := b.parser.scan(c.File, q.all()); err != nil {
		return nil, err
	}
	return q, q.agree(c)
}

// ask makes the questions.
func (q *queries) ask() {
	service := []byte(q.service)
	within := func(r *rec, from, to string) bool {
		ts := sortable(string(r.ts))
		return bytes.Equal(r.service, service) && ts >= sortable(strings.TrimSuffix(from, "Z")) && ts < sortable(strings.TrimSuffix(to, "Z"))
	}
	holds := func(text string) *question {
		t := []byte(text)
		return &question{match: func(r *rec) bool { return bytes.Contains(r.line, t) }}
	}
	q.window = &question{match: func(r *rec) bool {
		return (string(r.level) == "error" || string(r.level) == "critical") && within(r, q.from2m, q.to2m)
	}}
	q.hour = &question{match: func(r *rec) bool { return within(r, q.from1h, q.to1h) }}
	// The token and the id are never a part of a longer word.
	q.words, q.text, q.id = holds(q.needle), holds(q.needle), holds(q.request)
	q.absentWord, q.absentText = holds(absent), holds(absent)
	q.newest = &question{match: func(r *rec) bool { return bytes.Equal(r.service, service) }, newest: 100}
	expression, literal, searched := regexp.MustCompile(q.regex), []byte(literalOf(q.regex)), []byte(q.searched)
	q.expression = &question{match: func(r *rec) bool {
		return bytes.Equal(r.service, searched) && bytes.Contains(r.msg, literal) && expression.Match(r.msg)
	}}
	q.everything = &question{match: func(*rec) bool { return true }}
}

func (q *queries) all() []*question {
	return []*question{q.window, q.hour, q.words, q.text, q.id, q.absentWord, q.absentText, q.newest, q.expression, q.everything}
}

// literalOf returns the text with which all matches of an expression begin.
func literalOf(expression string) string {
	prefix, _ := regexp.MustCompile(expression).LiteralPrefix()
	return prefix
}

// agree holds the scan against the generator's own answers.
func (q *queries) agree(c *rig.Corpus) error {
	counts := map[string]int{}
	for _, w := range c.Windows {
		for level, n := range w.Counts[q.service] {
			if w.Name == "1h" || level == "error" || level == "critical" {
				counts[w.Name] += n
			}
		}
	}
	for _, a := range []struct {
		name string
		of   *question
		want int
	}{
		{"the window of two minutes", q.window, counts["2m"]}, {"the window of an hour", q.hour, counts["1h"]},
		{q.needle, q.words, 3}, {q.request, q.id, 1}, {absent, q.absentWord, 0}, {"the newest", q.newest, len(c.Last)},
		{q.regex, q.expression, c.RegexMatches}, {"everything", q.everything, c.Records},
	} {
		if a.of.answer.n != a.want {
			return fmt.Errorf("%s: the corpus has %d records, and the generator says %d", a.name, a.of.answer.n, a.want)
		}
	}
	return nil
}

// The reads of the table, i to vi.

func (q *queries) i() read {
	return read{id: "i", name: "i: 2 min of one service, error and critical, times --version", versionToo: true, of: q.window, reach: 1.7, aim: 1.3,
		args: []string{q.service, "--from", q.from2m, "--to", q.to2m, "--level", "error,critical"}}
}

func (q *queries) ii() read {
	return read{id: "ii", name: "ii: 1 h of one service", of: q.hour, reach: 60, aim: 45, args: []string{q.service, "--from", q.from1h, "--to", q.to1h}}
}

func (q *queries) iv() read {
	return read{id: "iv", name: "iv: -n 100", of: q.newest, reach: 8, aim: 6, args: []string{q.service, "-n", "100"}}
}

// tail reads the same records as iv by way of the tables of the newest records.
func (q *queries) tail() read {
	return read{of: q.newest, args: []string{"tail", q.service, "-n", "100"}}
}

// iii searches a token over everything by -w or -F.
func (q *queries) iii(flag string) read {
	r := read{id: "iii-w", name: "iii: -w of an id in 3 records", of: q.words, reach: 25, aim: 12, args: []string{"*", "-w", q.needle}}
	if flag == "-F" {
		r = read{id: "iii-F", name: "iii': the same by -F", of: q.text, reach: 70, aim: 40, memory: 70, args: []string{"*", "-F", q.needle}}
	}
	return r
}

// local are the reads of the dir store.
func (b *bench) local(q *queries) []read {
	return []read{q.i(), q.ii(), q.iii("-w"), q.iii("-F"),
		{id: "iii-F-id", name: "iii': a 32-digit id by -F", of: q.id, reach: 25, aim: 15, args: []string{"*", "-F", q.request}},
		{id: "absent-w", name: "an absent word, -w", of: q.absentWord, reach: 20, aim: 12, args: []string{"*", "-w", absent}},
		{id: "absent-F", name: "an absent word, -F", of: q.absentText, reach: 20, aim: 12, args: []string{"*", "-F", absent}},
		q.iv(), b.minutes(),
		{id: "vi", name: "vi: an expression with literals, one service", of: q.expression, reach: 250, aim: 150, memory: 70, args: []string{q.searched, "-g", q.regex}},
		{id: "everything", name: "all records of all services", of: q.everything, args: []string{"*"}},
	}
}

// read measures the reads of the dir store, and --version alone.
func (b *bench) read(ctx context.Context) (err error) {
	if b.queries, err = b.queriesOf(b.reference); err != nil {
		return err
	}
	if err := b.versionRow(ctx); err != nil {
		return err
	}
	for _, r := range b.local(b.queries) {
		err := b.row(ctx, r, func(s *side) (sample, error) { return b.once(ctx, s, place{store: "dir:" + s.store}, r) })
		if err != nil {
			return err
		}
	}
	return nil
}

// versionRow measures the start of a process.
func (b *bench) versionRow(ctx context.Context) error {
	r := read{id: "version", name: "logquery --version", args: []string{"--version"}, note: "the cost of a start; i is a multiple of it"}
	return b.row(ctx, r, func(s *side) (m sample, err error) {
		out, u, _, err := b.runner.Run(ctx, b.env, s.logquery, "--version")
		if err == nil && (u.Code != 0 || strings.TrimSpace(string(out)) != s.version) {
			err = &wrongError{fmt.Errorf("it printed %q and exited with %d", out, u.Code)}
		}
		return sample{Usage: u, figure: u.WallMS}, err
	})
}
