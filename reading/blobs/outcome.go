package blobs

import "slices"

// An Outcome says how a read went, with all that took part in it: blobs, ingesters, and each part
// of an answer of several reads. [Outcome.Complete] alone decides whether records are missing. It
// goes by the problems. Callers can add problems to an Outcome and take none away.
//
// It has the fields of a [Summary], but for the problems. The zero value is of a read that has
// not begun.
type Outcome struct {
	summed
	// Notes are facts for people. Nothing is missing because of them.
	Notes []string
	Gaps  []Gap
}

// summed is a Summary that hides its problems in an Outcome: they have the method of that name there.
type summed = Summary

// A Gap is a span of time with more records than were found.
type Gap struct {
	Service  string
	Records  int
	AtMost   bool  // some of them may not match the query
	From, To int64 // both inclusive
}

// Outcome returns the outcome of a read that s alone describes.
func (s *Summary) Outcome() *Outcome { return &Outcome{summed: s.clone()} }

// clone returns a copy that shares no list with s.
func (s *Summary) clone() Summary {
	c := *s
	c.Problems, c.Warnings, c.Absent = slices.Clone(s.Problems), slices.Clone(s.Warnings), slices.Clone(s.Absent)
	return c
}

// Complete reports whether everything was read: nothing is missing that was asked for.
func (s *Summary) Complete() bool { return len(s.Problems) == 0 }

// Lack adds reasons why records are missing. A read that has one is incomplete.
func (s *Summary) Lack(problems ...error) { s.Problems = append(s.Problems, problems...) }

// Problems are the reasons why records are missing.
func (o *Outcome) Problems() []error { return slices.Clone(o.summed.Problems) }

// Summary returns the counts of the outcome, with its problems, warnings and absent services.
func (o *Outcome) Summary() Summary { return o.clone() }

// Add adds the outcome of another part of the same answer. Problems that both have are told twice:
// each of them lacks something.
func (o *Outcome) Add(more *Outcome) {
	problems := slices.Concat(o.summed.Problems, more.summed.Problems)
	o.Join(&more.summed)
	o.summed.Problems = problems
	o.Notes = append(o.Notes, more.Notes...)
	o.Gaps = append(o.Gaps, more.Gaps...)
}
