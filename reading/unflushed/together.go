package unflushed

import (
	"io"
	"slices"

	"blobtail/reading/unflushed/live"
	"blobtail/record"
	"blobtail/storage/fanout"
)

// A teller is the answer of one ingester while it is read.
type teller struct {
	answer *live.Answer
	next   record.Entry
	end    error // how the answer ended; nil: there is next
	sent   int   // records that came
	wanted int   // those that match the query, as far as it was looked at
}

func (t *teller) pull() {
	if t.next, t.end = t.answer.Next(); t.end == nil {
		t.sent++
	}
}

// together reads answers in one order, and leaves out copies that a sender sent to several
// ingesters.
type together struct {
	all  []*teller
	left []*teller // those with a next record
	now  *teller   // of the last record; its answer goes on at the next call

	copies live.Copies // among several answers
}

func newTogether(answers []*live.Answer) *together {
	t := &together{}
	for _, a := range answers {
		t.all = append(t.all, &teller{answer: a})
	}
	return t
}

// Next returns the next record. Its line is valid until the next call. After the last record it
// returns io.EOF, however the answers ended. Any other error is that of [live.Copies.Again].
func (t *together) Next() (record.Entry, error) {
	for {
		t.advance()
		if len(t.left) == 0 {
			return record.Entry{}, io.EOF
		}
		t.now = slices.MinFunc(t.left, func(x, y *teller) int { return x.next.Compare(&y.next) })
		if len(t.all) == 1 {
			return t.now.next, nil
		}
		if again, err := t.copies.Again(&t.now.next); !again || err != nil {
			return t.now.next, err
		}
	}
}

// advance goes on with the answer of the last record. At first it begins with all answers at the
// same time, because several ingesters may hang.
func (t *together) advance() {
	if t.now == nil {
		var beginning fanout.Crew
		for _, one := range t.all {
			beginning.Go(one.pull)
		}
		beginning.Wait()
		t.left = slices.DeleteFunc(slices.Clone(t.all), func(one *teller) bool { return one.end != nil })
		return
	}
	if t.now.pull(); t.now.end != nil {
		t.left = slices.DeleteFunc(t.left, func(one *teller) bool { return one == t.now })
	}
}
