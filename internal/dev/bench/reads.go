package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"blobtail/internal/dev/bench/report"
	"blobtail/internal/dev/bench/rig"
)

// read is a row that runs logquery.
type read struct {
	id, name   string
	args       []string
	of         *question         // of the corpus; or
	minutes    map[string][5]int // the expected histogram
	reach, aim float64
	// versionToo has a run of --version before each run. The figure is the quotient of the
	// two wall times.
	versionToo bool
	// memory adds a row for the peak RSS, to be at most so many MB.
	memory float64
	note   string
}

// records returns how many records the answer has or counts.
func (r read) records() (n int) {
	if r.of != nil {
		return r.of.answer.n
	}
	for _, levels := range r.minutes {
		for _, k := range levels {
			n += k
		}
	}
	return n
}

// place is a store to read from.
type place struct {
	store string
	env   []string
}

// wrongError is an answer that differs from the expected one.
type wrongError struct{ why error }

func (e *wrongError) Error() string { return e.why.Error() }

// answered runs a read once and checks its answer.
func (b *bench) answered(ctx context.Context, s *side, at place, r read) (rig.Usage, error) {
	args := append([]string{s.logquery, "--store", at.store, "--quiet"}, r.args...)
	out, u, errs, err := b.runner.Run(ctx, append(b.env[:len(b.env):len(b.env)], at.env...), args...)
	if err != nil {
		return u, err
	}
	want := 0
	if r.records() == 0 {
		want = 1
	}
	switch {
	case u.Code != want:
		err = fmt.Errorf("exit code %d, not %d: %.500s", u.Code, want, errs)
	case r.of != nil:
		err = b.parser.check(out, r.of.answer)
	default:
		err = checkMinutes(out, r.minutes)
	}
	if err != nil {
		return u, &wrongError{fmt.Errorf("%q: %w", args, err)}
	}
	return u, nil
}

// checkMinutes holds a histogram by minute against the generator's.
func checkMinutes(out []byte, want map[string][5]int) error {
	got := map[string][5]int{}
	for line := range bytes.Lines(out) {
		var h struct {
			TS     string         `json:"ts"`
			Total  int            `json:"total"`
			Levels map[string]int `json:"levels"`
		}
		if err := json.Unmarshal(line, &h); err != nil {
			return err
		}
		minute, _, _ := bytes.Cut([]byte(h.TS), []byte("."))
		var levels [5]int
		for i, name := range []string{"debug", "info", "warn", "error", "critical"} {
			levels[i] = h.Levels[name]
			h.Total -= levels[i]
		}
		if h.Total != 0 {
			return fmt.Errorf("the levels of %s do not make its total", h.TS)
		}
		if levels != [5]int{} {
			got[string(minute)+"Z"] = levels
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d minutes, not %d", len(got), len(want))
	}
	for minute, levels := range want {
		if got[minute] != levels {
			return fmt.Errorf("%s has %v, not %v", minute, got[minute], levels)
		}
	}
	return nil
}

// minutes is the read that counts everything.
func (b *bench) minutes() read {
	return read{id: "v", name: "v: per minute and level, everything", args: []string{"hist", "*", "--by", "1m"}, minutes: b.reference.PerMinute, reach: 14, aim: 9}
}

// sample is a measured run of a read.
type sample struct {
	rig.Usage
	figure float64
	remote *exchange
}

// once runs a read once, after a run of --version if the read asks for that.
func (b *bench) once(ctx context.Context, s *side, at place, r read) (m sample, err error) {
	var version rig.Usage
	if r.versionToo {
		if _, version, _, err = b.runner.Run(ctx, b.env, s.logquery, "--version"); err != nil {
			return m, err
		}
	}
	m.Usage, err = b.answered(ctx, s, at, r)
	m.figure = m.WallMS
	if r.versionToo {
		m.figure = m.WallMS / version.WallMS
	}
	return m, err
}

// row measures a read and adds its row. Each side has a run that does not count.
func (b *bench) row(ctx context.Context, r read, once func(s *side) (sample, error)) error {
	if !b.o.rows.Choose(r.id) {
		return nil
	}
	yard, err := b.yard(ctx)
	if err != nil {
		return err
	}
	row := report.Row{ID: r.id, Name: r.name, Command: command(r.args), Unit: "ms", Reach: r.reach, Aim: r.aim, Records: r.records(), Note: r.note}
	if r.versionToo {
		row.Unit = "x"
	}
	samples := map[*side][]sample{}
	err = b.inTurn(b.o.runs+1, func(run int, s *side) error {
		m, err := once(s)
		if answer := (*wrongError)(nil); errors.As(err, &answer) {
			row.Wrong = answer.Error()
			return nil
		}
		if run > 0 {
			samples[s] = append(samples[s], m)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", r.id, err)
	}
	b.perSide(&row, func(s *side) (report.Measured, []float64) { return measured(samples[s], yard), figures(samples[s]) })
	b.add(row)
	if r.memory > 0 {
		b.add(memoryRow(row, r.memory))
	}
	return nil
}

func figures(samples []sample) (v []float64) {
	for _, s := range samples {
		v = append(v, s.figure)
	}
	return v
}

// measured sums up samples.
func measured(samples []sample, yard float64) report.Measured {
	list := func(value func(sample) float64) (v []float64) {
		for _, s := range samples {
			v = append(v, value(s))
		}
		return v
	}
	m := report.Measured{
		Runs:   len(samples),
		Figure: report.SpreadOf(figures(samples)),
		WallMS: spread(list(func(s sample) float64 { return s.WallMS })),
		CPUs:   spread(list(func(s sample) float64 { return s.CPUs })),
		RSSMB:  spread(list(func(s sample) float64 { return s.RSSMB })),
		YardS:  report.Round(yard),
	}
	m.CPUY = report.Round(m.CPUs.Median / yard)
	if len(samples) > 0 && samples[0].remote != nil {
		m.Remote = &report.Remote{
			DelayMS:     int(samples[0].remote.delay.Milliseconds()),
			Requests:    report.SpreadOf(list(func(s sample) float64 { return float64(s.remote.requests) })),
			Bytes:       report.SpreadOf(list(func(s sample) float64 { return float64(s.remote.bytes) })),
			Chain:       report.SpreadOf(list(func(s sample) float64 { return float64(s.remote.chain) })),
			UndelayedMS: report.SpreadOf(list(func(s sample) float64 { return s.remote.undelayedMS })),
		}
	}
	return m
}

// memoryRow is the row of a read's peak RSS.
func memoryRow(of report.Row, reach float64) report.Row {
	only := func(m report.Measured) report.Measured { return report.Measured{Runs: m.Runs, Figure: *m.RSSMB} }
	r := report.Row{ID: of.ID + "-memory", Name: "memory of " + of.Name, Command: of.Command, Unit: "MB", Reach: reach, Aim: 50, Records: of.Records, Measured: only(of.Measured)}
	if of.Against != nil {
		other := only(*of.Against)
		r.Against = &other
	}
	return r
}

// command writes a command as a shell would read it.
func command(args []string) string {
	text := "logquery"
	for _, a := range args {
		if bytes.ContainsAny([]byte(a), "*?[]() |'\"$") {
			a = "'" + a + "'"
		}
		text += " " + a
	}
	return text
}
