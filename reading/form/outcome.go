package form

import (
	"slices"

	"blobtail/reading"
	"blobtail/record"
)

// OutcomeOf tells how a read went.
func OutcomeOf(o *reading.Outcome) Outcome {
	out := Outcome{
		Complete: o.Complete(), Problems: texts(o.Problems()), Warnings: texts(o.Warnings), Notes: append([]string{}, o.Notes...), Gaps: []Gap{},
		Cost: Cost{
			Requests: o.Requests, Bytes: o.Fetched, BlobsListed: o.BlobsListed, BlobsOpened: o.BlobsOpened, BlocksRead: o.BlocksRead,
			BlocksSkipped: o.BlocksSkipped, SkippedByIDs: o.RuledOutByIDs, SkippedByWords: o.RuledOutByWords,
			Copies: o.Copies, Decoded: o.Decoded,
		},
	}
	for _, none := range o.Absent {
		out.Absent = append(out.Absent, none.Name)
		out.Warnings = append(out.Warnings, none.Error())
	}
	for _, g := range o.Gaps {
		out.Gaps = append(out.Gaps, GapOf(g))
	}
	return out
}

// EndOf is the end of a stream of a read.
func EndOf(o *reading.Outcome) *End {
	return &End{
		Outcome: OutcomeOf(o), More: o.More, Records: o.Records, Bytes: o.Bytes, Unflushed: o.Unflushed, Examined: o.Examined, Higher: o.Higher,
	}
}

// GapOf tells of a gap.
func GapOf(g reading.Gap) Gap {
	return Gap{Service: g.Service, Records: g.Records, AtMost: g.AtMost, From: Stamp(g.From), To: Stamp(g.To)}
}

// texts are the texts of errors, each once: several reads may have met the same trouble.
func texts(errs []error) []string {
	out := make([]string, 0, len(errs))
	for _, err := range errs {
		if text := err.Error(); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// Stamp writes a time in ns such that texts sort like times.
func Stamp(ns int64) string { return string(record.AppendTime(nil, ns)) }
