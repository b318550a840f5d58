package main

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"blobtail/internal/dev/bench/answers"
	"blobtail/internal/dev/bench/result"
	"blobtail/internal/dev/bench/rig"
	"blobtail/internal/dev/corpus"
)

// fault is an error that ends a run.
type fault struct{ error }

// must ends the run with an error, if there is one.
func must[T any](v T, err error) T {
	check(err)
	return v
}

// check ends the run with an error, if there is one. [run] returns it, after all servers have ended.
func check(err error) {
	if err != nil {
		panic(fault{err})
	}
}

// driver is one run.
type driver struct {
	options
	dir      string   // for stores and corpora
	env      []string // of all commands: no settings of blobtail or Azure
	runner   *rig.Runner
	victoria string // path of VictoriaLogs
	sides    []*side
	corpus   *rig.Corpus // the reference corpus
	index    *answers.Index
	variants map[string]*answers.Variant // for rows of the table
	more     map[string]also             // further figures of rows of the table, by their IDs
	rounded  atomic.Int64                // values of VictoriaLogs that are compared after rounding
	result   result.Result
	begun    time.Time
	busy     rig.Busy // at the start
	since    rig.Busy // at the row before
	others   float64  // cores that other processes used before the last row
	excerpt  []byte   // the first part of the corpus, for the yardstick beside reads
	yards    []float64
	emptied  int64 // the most bytes of an emptied log of ours
}

// side is one of those that are measured in turn: this version first, and VictoriaLogs or an older
// version.
type side struct {
	name   string
	bin    string // directory of the commands; VictoriaLogs has none
	theirs bool
	store  string // the directory with the reference corpus

	server  *rig.Server  // that answers questions
	refused atomic.Int64 // requests that were asked again
}

func (s *side) command(name string) string { return filepath.Join(s.bin, name) }

// add adds a figure of a round to a row.
func (s *side) add(row *result.Row, figure float64) {
	if s.theirs {
		row.Theirs = append(row.Theirs, result.Round(figure))
	} else {
		row.Ours = append(row.Ours, result.Round(figure))
	}
}

// newDriver makes the reference corpus and its answers.
func newDriver(ctx context.Context, o options, work string) *driver {
	d := &driver{options: o, dir: work, runner: &rig.Runner{Self: must(os.Executable())}, begun: time.Now(), busy: rig.BusyNow(), more: map[string]also{}}
	d.env = append(slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "BLOBTAIL_") || strings.HasPrefix(s, "AZURE_")
	}), "TZ=UTC")
	d.result = result.Result{Date: d.begun.UTC().Format(time.RFC3339), Quick: o.quick || len(o.rows) > 0, Commit: rig.Commit(ctx), Machine: rig.Machine()}
	d.sides = []*side{{name: "blobtail", bin: o.bin}}
	d.result.Ours = d.version(ctx, d.sides[0])
	if o.against != "" {
		d.sides = append(d.sides, &side{name: "the other version", bin: o.against, theirs: true})
		d.result.Theirs = d.version(ctx, d.sides[1])
	}
	d.say("make the reference corpus of %d records, and read the answers in it", o.size.records)
	d.corpus = must(rig.Generate(rig.Chunk(0, o.size.records), filepath.Join(work, "reference.ndjson")))
	d.index = must(answers.New(d.corpus, maphash.MakeSeed()))
	d.result.Corpora = []result.Corpus{{Name: "reference", Records: o.size.records, Bytes: d.corpus.Bytes,
		Made: fmt.Sprintf("`internal/dev/corpus`, %d records of seed %d: 8 services, 6 hours.", o.size.records, corpus.ReferenceSeed)}}
	d.since = rig.BusyNow()
	return d
}

// version asks a version of blobtail for its name.
func (d *driver) version(ctx context.Context, s *side) result.Side {
	out, _, _, err := d.runner.Run(ctx, d.env, s.command("logquery"), "--version")
	check(err)
	return result.Side{Name: "blobtail", Version: strings.TrimSpace(string(out)), Durability: "is synced to disk",
		Commands: []string{"ingest --store dir:DIR", "logquery --store dir:DIR serve", "retention compact --store dir:DIR"}}
}

// temp makes a directory for a store.
func (d *driver) temp() string { return must(os.MkdirTemp(d.dir, "store-")) }

func (d *driver) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%4.0f s  %s\n", time.Since(d.begun).Seconds(), fmt.Sprintf(format, args...))
}

// add adds rows to the result, if -rows has them, and prints them.
func (d *driver) add(rows ...result.Row) {
	if now := rig.BusyNow(); now.At.Sub(d.since.At) > 100*time.Millisecond { // else the row is derived from the one before
		d.others, d.since = now.Others(d.since), now
	}
	for _, r := range rows {
		if !d.rows.Choose(r.ID) || len(r.Ours)+len(r.Theirs) == 0 {
			continue
		}
		if d.size.records != corpus.ReferenceRecords || d.excerpt == nil {
			r.Reach = 0 // it is for the table, and the reference corpus
		}
		line := fmt.Sprintf("%-30s %v %s", r.ID, result.SpreadOf(r.Ours), r.Unit)
		if len(r.Theirs) > 0 {
			line += fmt.Sprintf("; theirs %v; ratio %.2f, by rounds %v", result.SpreadOf(r.Theirs), r.Ratio(), r.Pairs())
		}
		if r.Reach != 0 {
			line += fmt.Sprintf("; to reach %v: %s", r.Reach, map[bool]string{true: "met", false: "NOT MET"}[r.Met()])
		}
		if d.excerpt != nil { // the table
			d.also(r.ID, d.sides[0], map[string]float64{"other_cores": d.others})
			r.Also = map[string]result.Spread{}
			for name, v := range d.more[r.ID] {
				r.Also[name] = result.SpreadOf(v)
			}
			for _, name := range []string{"requests", "chain", "bytes", "undelayed_ms"} {
				if s, ok := r.Also[name]; ok {
					line += fmt.Sprintf("; %s %v", name, s.Median)
				}
			}
		}
		if d.others > 0.2 {
			line += fmt.Sprintf("; others used %v cores", d.others)
		}
		d.result.Rows = append(d.result.Rows, r)
		d.say("%s", line)
	}
}

// also are further figures of the runs of a row, by name.
type also map[string][]float64

// also adds further figures of a run. Those of the other version begin with "against ".
func (d *driver) also(id string, s *side, figures map[string]float64) {
	if d.more[id] == nil {
		d.more[id] = also{}
	}
	for name, v := range figures {
		if s.theirs {
			name = "against " + name
		}
		d.more[id][name] = append(d.more[id][name], v)
	}
}

// leastRounds is the number of rounds that a row has however long they take.
const leastRounds = 3

// inTurn calls a function for each side in a round: ours and theirs, and in each second round theirs
// and ours.
func inTurn(round int, sides []*side, f func(s *side)) {
	order := slices.Clone(sides)
	if round%2 == 1 {
		slices.Reverse(order)
	}
	for _, s := range order {
		f(s)
	}
}

// eachRound has a function called in turn in each round. If it is late when a round begins, and the row
// has enough with it, the round is the last one.
func eachRound(rounds int, late func() bool, sides []*side, f func(round int, last bool, s *side)) {
	for round, last := 0, false; round < rounds && !last; round++ {
		last = round == rounds-1 || round+1 >= leastRounds && late()
		inTurn(round, sides, func(s *side) { f(round, last, s) })
	}
}

// late reports whether the loads have taken more than their part of the time.
func (d *driver) late() bool { return time.Since(d.begun) > d.size.budget*2/5 }

// finish writes the result, and the page and the picture of it.
func (d *driver) finish(compared bool) error {
	r := &d.result
	r.Seconds, r.Yard = result.Round(time.Since(d.begun).Seconds()), result.SpreadOf(d.yards)
	if n := d.rounded.Load(); n > 0 {
		d.note("VictoriaLogs returned %s decimal fractions with other digits, such as 1.3820000000000001 for 1.382. They count as equal.", result.Thousands(int(n)))
	}
	if d.emptied > 0 && compared {
		d.note("The log of an ingester, emptied, kept up to %.0f MB of files for the next records. They are no part of raw / stored.", float64(d.emptied)/1e6)
	}
	if others := rig.BusyNow().Others(d.busy); others > 0.05 {
		d.note("Other processes used %.2f cores meanwhile.", others)
	}
	if d.streams != "" {
		d.note("Streams of VictoriaLogs are by %s.", d.streams)
	}
	if len(r.Rows) == 0 {
		return fmt.Errorf("no row has an ID like %s", &d.rows)
	}
	if d.out != "" {
		if err := r.Write(d.out); err != nil {
			return err
		}
	}
	switch {
	case d.docs != "" && compared && !r.Quick && d.streams == "" && len(r.Corpora) > 1:
		return publish(*r, d.docs)
	case d.docs != "" && !compared && len(d.rows) == 0 && d.size.records == corpus.ReferenceRecords:
		return keep(*r, d.docs)
	case compared:
		fmt.Print(result.Tables(*r))
	}
	return nil
}

func (d *driver) note(format string, args ...any) {
	n := fmt.Sprintf(format, args...)
	d.say("note: %s", n)
	d.result.Notes = append(d.result.Notes, n)
}

// keep writes a result of the table, and draws its growth.
func keep(r result.Result, docs string) error {
	if err := r.Write(filepath.Join(docs, "bench", r.Date[:len(time.DateOnly)]+"-"+r.Commit+".json")); err != nil || len(r.Growth) == 0 {
		return err
	}
	picture, err := result.DrawGrowth(r)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(docs, "performance.svg"), picture, 0o644)
}

// publish writes a comparison beside the page, and its tables and plot into it.
func publish(r result.Result, docs string) error {
	name := filepath.Join(docs, "comparison.md")
	old, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	page, err := result.Place(string(old), r)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	plot, err := result.Draw(r)
	if err != nil {
		return err
	}
	return errors.Join(r.Write(filepath.Join(docs, "compare", r.Date[:len(time.DateOnly)]+".json")),
		os.WriteFile(filepath.Join(docs, "compare.svg"), plot, 0o644), os.WriteFile(name, []byte(page), 0o644))
}

// shell writes a command as a shell reads it.
func shell(args []string) string {
	var words []string
	for _, a := range args {
		if strings.ContainsAny(a, "*?[]{}() |&;<>'\"$`\\") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}

// perMillion is a figure of some records as one of a million.
func perMillion(v float64, records int) float64 { return v / math.Max(1, float64(records)) * 1e6 }
