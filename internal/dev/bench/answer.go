package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"

	"blobtail/internal/dev/bench/rig"
)

// rec is a record of the corpus, as it was sent or as it is stored: the two differ in the
// order of fields and in the digits of the time.
type rec struct {
	line, ts, level, service, msg []byte // ts without zeros at its end, so that equal times are equal
	sum                           uint64 // of all its fields
}

// parser parses records of the generator. Sums of the same parser are comparable.
type parser struct{ seed maphash.Seed }

func newParser() parser { return parser{maphash.MakeSeed()} }

// parse parses a line without its newline.
func (p parser) parse(line []byte) (r rec, err error) {
	r.line = line
	rest, ok := bytes.CutPrefix(line, []byte(`{"ts":"`))
	r.ts, rest, ok = cut(rest, ok, `Z","level":"`)
	r.level, rest, ok = cut(rest, ok, `","service":"`)
	r.service, rest, ok = cut(rest, ok, `",`)
	at := bytes.Index(rest, []byte(`"msg":"`))
	if !ok || at < 0 {
		return r, fmt.Errorf("this is no record of the generator: %.300s", line)
	}
	head, tail := rest[:at], rest[at+len(`"msg":"`):]
	end := closing(tail)
	if end < 0 {
		return r, fmt.Errorf("this message has no end: %.300s", line)
	}
	r.msg, tail = tail[:end], tail[end+1:]
	// As sent, the message is last. As stored, it is the first after service.
	others := bytes.Trim(head, ",")
	if len(others) == 0 {
		others = bytes.Trim(tail, ",}")
	}
	if bytes.IndexByte(r.ts, '.') >= 0 {
		r.ts = bytes.TrimRight(bytes.TrimRight(r.ts, "0"), ".")
	}
	for _, part := range [][]byte{r.ts, r.level, r.service, r.msg, others} {
		r.sum = r.sum*1099511628211 + maphash.Bytes(p.seed, part)
	}
	return r, nil
}

func cut(s []byte, ok bool, sep string) (before, after []byte, found bool) {
	if !ok {
		return nil, nil, false
	}
	return bytes.Cut(s, []byte(sep))
}

// closing returns the index of the quote that ends a JSON string.
func closing(s []byte) int {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// digest stands for a set of records: their number, and the sum of their sums.
type digest struct {
	n   int
	sum uint64
}

// question asks for records of a corpus.
type question struct {
	match  func(*rec) bool
	newest int // only so many of the newest, if not 0

	answer digest
	kept   []timed
}

type timed struct {
	ts  string
	sum uint64
}

// scan reads a whole corpus and answers the questions.
func (p parser) scan(file string, questions []*question) (err error) {
	for line, err := range rig.Lines(file) {
		if err != nil {
			return err
		}
		r, err := p.parse(line)
		if err != nil {
			return err
		}
		for _, q := range questions {
			if q.match(&r) {
				q.add(&r)
			}
		}
	}
	for _, q := range questions {
		err = errors.Join(err, q.finish())
	}
	return err
}

func (q *question) add(r *rec) {
	if q.newest == 0 {
		q.answer.n++
		q.answer.sum += r.sum
		return
	}
	q.kept = append(q.kept, timed{string(r.ts), r.sum})
	if len(q.kept) > 200*q.newest {
		q.trim()
	}
}

// trim keeps the newest records, and one more for [question.finish].
func (q *question) trim() {
	slices.SortFunc(q.kept, func(a, b timed) int { return cmp.Compare(sortable(b.ts), sortable(a.ts)) })
	q.kept = q.kept[:min(len(q.kept), q.newest+1)]
}

func (q *question) finish() error {
	if q.newest == 0 {
		return nil
	}
	q.trim()
	if len(q.kept) > q.newest {
		if q.kept[q.newest].ts == q.kept[q.newest-1].ts {
			return fmt.Errorf("the newest %d records are not distinct from the next one by their time %s; take another seed", q.newest, q.kept[q.newest].ts)
		}
		q.kept = q.kept[:q.newest]
	}
	for _, k := range q.kept {
		q.answer.n++
		q.answer.sum += k.sum
	}
	return nil
}

// sortable makes times comparable as text: one without a fraction is before one with it.
func sortable(ts string) string {
	if len(ts) == len("2026-11-10T12:00:00") {
		return ts + "."
	}
	return ts
}

// check holds the output of a read against an answer: the same records, in order of time.
func (p parser) check(out []byte, want digest) error {
	var got digest
	var last string
	for line := range bytes.Lines(out) {
		r, err := p.parse(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			return err
		}
		if now := sortable(string(r.ts)); now < last {
			return fmt.Errorf("a record of %s comes after one of %s", now, last)
		} else {
			last = now
		}
		got.n++
		got.sum += r.sum
	}
	switch {
	case got.n != want.n:
		return fmt.Errorf("%d records, not %d", got.n, want.n)
	case got != want:
		return fmt.Errorf("%d records, as many as expected, but others", got.n)
	}
	return nil
}
