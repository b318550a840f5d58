package main

import (
	"fmt"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/when"
	"blobtail/reading"
)

// rangeFlags select a range of times.
type rangeFlags struct {
	From  string `help:"Oldest time (included)." placeholder:"T"`
	To    string `help:"Newest time (not included)." aliases:"until" placeholder:"T"`
	Since string `short:"s" help:"The last so long, up to now or --to; or the same as --from." placeholder:"D"`
	Day   string `help:"One day of the zone, such as 2026-11-20, yesterday or monday." placeholder:"D"`
}

func (a *app) times(f rangeFlags) (reading.Range, error) {
	rng := reading.Always()
	switch {
	case f.From != "" && f.Since != "":
		return rng, cli.Usagef("--from and --since say the same; leave one out")
	case f.Day != "" && (f.From != "" || f.To != "" || f.Since != ""):
		return rng, cli.Usagef("--day is a range already; leave out --from, --to and --since")
	case f.Day != "":
		from, to, err := when.Day(f.Day, a.now)
		if err != nil {
			return rng, badTime("--day", f.Day, err)
		}
		rng.From, rng.To = from.UnixNano(), to.UnixNano()
		return rng, nil
	}
	until := a.now
	for _, end := range []struct {
		flag, text string
		ns         *int64
	}{{"--from", f.From, &rng.From}, {"--to", f.To, &rng.To}} {
		if end.text == "" {
			continue
		}
		t, err := when.Time(end.text, a.now)
		if err != nil {
			return rng, badTime(end.flag, end.text, err)
		}
		*end.ns = t.UnixNano()
		until = t // only --to counts: --since excludes --from
	}
	if f.Since != "" {
		t, err := when.Since(f.Since, until, a.now)
		if err != nil {
			return rng, badTime("--since", f.Since, err)
		}
		rng.From = t.UnixNano()
	}
	if rng.From != reading.Oldest && rng.To != reading.Newest && rng.From >= rng.To {
		hint := ""
		if _, _, err := when.Day(f.From, a.now); err == nil && rng.From == rng.To {
			hint = "; for the whole day: --day " + cli.ShellWords(f.From)
		} else if f.From != "" && rng.From > rng.To {
			hint = "; the other way round: " + cli.ShellWords("--from", f.To, "--to", f.From)
		}
		return rng, cli.Usagef("the range is empty: --from %s is not before --to %s%s", a.showTime(rng.From), a.showTime(rng.To), hint)
	}
	return rng, nil
}

// badTime is a time that cannot be read, with the form of ours for that of another program.
func badTime(flag, text string, err error) error {
	if form := other("time", text, ""); form != "" {
		return cli.Usagef("%s: %w; write %s %s", flag, err, flag, form)
	}
	return cli.Usagef("%s: %w", flag, err)
}

// at is a time in the user's zone.
func (a *app) at(ns int64) time.Time { return time.Unix(0, ns).In(a.now.Location()) }

// showTime writes a time that package when reads.
func (a *app) showTime(ns int64) string {
	return a.at(ns).Format("2006-01-02 15:04:05.999999999 -07:00")
}

// zoneName names the zone of a time. The local zone has no name but its letters at the
// time, if any.
func zoneName(t time.Time) string {
	name := t.Location().String()
	if name == "Local" {
		name, _ = t.Zone()
	}
	if name == "" || name == "Local" || name[0] == '+' || name[0] == '-' {
		return t.Format("-07:00")
	}
	return name
}

// echo prints the store and the range of a read on stderr.
func (a *app) echo(rng reading.Range) {
	from, to := "the oldest", "the newest"
	if rng.From != reading.Oldest {
		from = a.showTime(rng.From)
	}
	if rng.To != reading.Newest {
		to = a.showTime(rng.To)
	}
	if !a.Quiet {
		fmt.Fprintf(a.env.stderr, "%s from %s to %s (%s)\n", cli.Safe(a.source.String()), from, to, zoneName(a.now))
	}
}
