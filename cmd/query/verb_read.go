package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/units"
	"blobtail/reading"
	"blobtail/record/forms"
)

// defaultOnTerminal is how many records a terminal gets unless asked for more.
const defaultOnTerminal = 1000

// filterFlags select records.
type filterFlags struct {
	levelFlags `kong:"-"`
	textFlags  `kong:"-"`
	fieldFlags `kong:"-"`
	matchFlags `kong:"-"`
	Filters    kong.Plugins `embed:""`
}

// choose sets the flags of the parser.
func (f *filterFlags) choose(parts cli.Parts) {
	f.Filters = parts(&f.levelFlags, &f.textFlags, &f.fieldFlags, &f.matchFlags)
}

// levelFlags select records by their levels.
type levelFlags struct {
	Level    string `short:"l" help:"Only these levels: error,critical or warn+." placeholder:"LEVELS"`
	NotLevel string `help:"Not these levels." placeholder:"LEVELS"`
}

// textFlags select records by their texts.
type textFlags struct {
	Fixed   []string `short:"F" sep:"none" help:"Only records with this text; all of them if repeated." placeholder:"TEXT"`
	Words   []string `short:"w" sep:"none" help:"The same, but the text is not a part of longer words." placeholder:"WORDS"`
	Regexp  []string `short:"g" sep:"none" help:"Only records that match (RE2); all of them if repeated." placeholder:"REGEX"`
	Without []string `sep:"none" help:"Only records without this text; without all of them if repeated." placeholder:"TEXT"`
	Search  string   `help:"Only records that the page's line finds, such as 'status>=500 (timeout OR refused) -health'." placeholder:"LINE"`
}

// fieldFlags select records by their fields.
type fieldFlags struct {
	Where string `help:"Only records for which this is true, such as 'status >= 500 and path startsWith \"/api\"'." placeholder:"EXPR"`
	Parse string `help:"Make fields of messages, for --where, --fields and top: combined, logfmt, json and others, a pattern such as '<ip> - <user> <_>', or none." placeholder:"FORM"`
}

// matchFlags say how texts are compared.
type matchFlags struct {
	Invert bool `short:"v" help:"Only records that -F, -w and -g do not match."`
	Ignore bool `short:"i" name:"ignore-case" help:"Upper and lower case are the same for -F, -w, -g and --without."`
}

// ask makes the question of the flags that several verbs have.
func (a *app) ask(services []string, times rangeFlags, filter filterFlags) (ask reading.Ask, err error) {
	ask = reading.Ask{Texts: filter.Fixed, Words: filter.Words, Exprs: filter.Regexp, Without: filter.Without, Where: filter.Where, Parse: cmp.Or(filter.Parse, forms.Text(a.config.Forms)), Not: filter.Invert, Fold: filter.Ignore}
	if ask.Services, err = servicesOf(services); err != nil {
		return ask, err
	}
	if ask.Range, err = a.times(times); err != nil {
		return ask, err
	}
	for _, of := range []struct {
		flag, text string
		set        *reading.LevelSet
	}{{"--level", filter.Level, &ask.Levels}, {"--not-level", filter.NotLevel, &ask.NotLevels}} {
		if of.text == "" {
			continue
		}
		if *of.set, err = reading.ParseLevels(of.text); err != nil {
			hint := ""
			list := strings.Join(strings.FieldsFunc(of.text, func(r rune) bool { return strings.ContainsRune(" ,;|/", r) }), ",")
			if _, err := reading.ParseLevels(list); err == nil {
				hint = "; write " + of.flag + " " + list
			}
			if strings.IndexByte(of.text, '=') > 0 && !strings.ContainsAny(of.text[:1], "<>!=") {
				hint = "; services are arguments: logquery " + cli.ShellWords(serviceIn(of.text))
			}
			return ask, cli.Usagef("%s: %w%s", of.flag, err, hint)
		}
	}
	if filter.Search != "" {
		if err := ask.Search(filter.Search); err != nil {
			return ask, cli.Usagef("--search: %w", errors.Unwrap(err))
		}
	}
	_, err = ask.Matcher(a.made) // a mistake is found before a store is opened
	return ask, byFlag(filter.Where, err)
}

type readCmd struct {
	Services     []string `arg:"" optional:"" name:"service" help:"Services, or globs such as 'web-*' and '*'."`
	rangeFlags   `kong:"-"`
	Times        kong.Plugins `embed:"" group:"Time"`
	filterFlags  `group:"Filters"`
	contextFlags `kong:"-"`
	Near         kong.Plugins `embed:"" group:"Filters"`
	logqlFlags   `kong:"-"`
	Query        kong.Plugins `embed:"" group:"LogQL"`
	limitFlags   `kong:"-"`
	Limits       kong.Plugins `embed:""`
	outputFlags  `kong:"-"`
	Form         kong.Plugins `embed:"" group:"Output"`
	sightFlags   `kong:"-"`
	Sights       kong.Plugins `embed:""`
	MaxBytes     config.Size  `help:"Most bytes to read from a remote store without a range." default:"10GiB" placeholder:"SIZE"`
}

// choose sets the flags of the parser.
func (c *readCmd) choose(parts cli.Parts) {
	c.filterFlags.choose(parts)
	c.Times, c.Near, c.Query = parts(&c.rangeFlags), parts(&c.contextFlags), parts(&c.logqlFlags)
	c.Limits, c.Form, c.Sights = parts(&c.limitFlags), parts(&c.outputFlags), parts(&c.sightFlags)
}

// limitFlags limit the records of a read.
type limitFlags struct {
	Number  *number `short:"n" aliases:"tail,lines,limit" help:"The newest N, oldest first; 0 for all. 1000 on a terminal." placeholder:"N"`
	First   *number `help:"The oldest N; 0 for all." placeholder:"N"`
	Reverse bool    `short:"r" help:"Newest first."`
}

// sightFlags say what a read prints in place of records, or beside them, and whether it asks ingesters.
type sightFlags struct {
	Count   bool   `help:"Print only how many records there are."`
	Stats   bool   `help:"Say on stderr what the read took."`
	Explain bool   `help:"Print what would be read, and read only indexes."`
	Live    string `help:"auto, off or only: records that are in no blob yet (auto)." placeholder:"WHEN"`
}

// limits returns the limits of newest and of oldest records; 0 is all.
func (c *readCmd) limits(a *app) (newest, oldest int, err error) {
	if c.Number != nil {
		newest = int(*c.Number)
	}
	if c.First != nil {
		oldest = int(*c.First)
	}
	switch {
	case newest < 0:
		return 0, 0, cli.Usagef("-n %d: it must be positive, as in -n %d, or 0 for all", newest, -newest)
	case oldest < 0:
		return 0, 0, cli.Usagef("--first %d: it must be positive, or 0 for all", oldest)
	case newest > 0 && oldest > 0:
		return 0, 0, cli.Usagef("-n and --first contradict each other; leave one out")
	case a.env.outTTY && c.Number == nil && c.First == nil && !c.Count:
		newest = defaultOnTerminal
	}
	return newest, oldest, nil
}

// near returns how many records are printed around each match of a question.
func (c *readCmd) near(ask *reading.Ask) (surroundings, error) {
	s, err := c.surroundings()
	switch {
	case err != nil || !s.any():
	case !ask.ReadsLines() && ask.Levels == 0 && ask.NotLevels == 0:
		err = cli.Usagef("-A, -B and -C show what is around matches; add --level, -F, -w, -g or --where")
	case c.Count:
		err = cli.Usagef("--count counts matches; leave out -A, -B and -C")
	case c.Reverse:
		err = cli.Usagef("-A, -B and -C are in order of time; leave out -r")
	}
	return s, err
}

func (c *readCmd) run(ctx context.Context, a *app) (int, error) {
	ask, err := c.ask(a)
	if err != nil {
		return 0, err
	}
	if c.isTable() {
		return c.table(ctx, a, ask)
	}
	ask.Reverse = c.Reverse
	if ask.Limit, ask.First, err = c.limits(a); err != nil {
		return 0, err
	}
	out, err := a.printer(c.outputFlags, &ask)
	if err != nil {
		return 0, err
	}
	out.labelled(&ask, c.Output == "raw")
	near, err := c.near(&ask)
	if err != nil {
		return 0, err
	}
	ask.Here.Ahead = a.config.Store.Remote() && !a.config.Store.Logs() && !c.Explain && !c.Count && !near.any()
	w := whole{ask: ask, live: c.Live, stats: c.Stats, explains: c.Explain, most: &c.MaxBytes}
	w.read = func(from reading.Source, ask reading.Ask) (*reading.Outcome, error) {
		switch {
		case c.Explain:
			return a.explain(ctx, from, ask, c.Count)
		case c.Count:
			return a.count(ctx, from, ask)
		}
		var result *reading.Outcome
		var err error
		if near.any() {
			result = &reading.Outcome{}
			err = (&around{near, a, from, result}).read(ctx, ask, out)
		} else {
			result, err = a.records(ctx, from, ask, out.emit)
		}
		if result.More && c.Number == nil && c.First == nil {
			result.Warnings = append(result.Warnings, fmt.Errorf("these are the newest %d, there is more; -n 0 for all", ask.Limit))
		}
		if ended := out.end(); err == nil {
			err = ended
		}
		if bad := out.problem(); bad != nil {
			result.Lack(bad)
		}
		return result, err
	}
	return w.run(ctx, a)
}

// count prints the number of records.
func (a *app) count(ctx context.Context, from reading.Source, ask reading.Ask) (*reading.Outcome, error) {
	out, err := from.Count(ctx, ask)
	// Of nothing too: scripts expect a number.
	switch none, ok := errors.AsType[*reading.NoServiceError](err); {
	case err == nil:
		a.absent(ctx, out.Absent) // a server's answer has them
		fmt.Fprintln(a.out, out.Records)
	case ok && !a.mistaken(ctx, none.Name):
		fmt.Fprintln(a.out, 0)
	}
	return out, err
}

// absent reports names that are no service, beside others that are, each once. Nothing is missing
// because of them, but the user may have meant another name.
func (a *app) absent(ctx context.Context, names []*reading.NoServiceError) {
	names = slices.DeleteFunc(slices.Clone(names), func(none *reading.NoServiceError) (known bool) {
		known, a.names.told = slices.Contains(a.names.told, none.Name), append(a.names.told, none.Name)
		return known
	})
	for _, none := range names {
		if len(names) > 1 && verbOf(a.model, none.Name) != nil {
			names = []*reading.NoServiceError{none} // the others are arguments of the verb
			break
		}
	}
	told := map[string]bool{}
	for i, none := range names {
		if i > 0 && other("verb", a.env.args[0], "") != "" && !slices.Contains(a.services(ctx), a.env.args[0]) {
			return // all of them were told
		}
		say, text := a.Note, a.noService(ctx, none)
		if a.mistaken(ctx, none.Name) {
			say = a.Complain
		}
		if _, hint, _ := strings.Cut(text, "; "); !told[hint] {
			told[hint] = true
			say("%s", text)
		}
	}
}

// verdict returns the exit code of a read, and reports its warnings and problems.
func (a *app) verdict(ctx context.Context, out *reading.Outcome) int {
	for _, err := range out.Warnings {
		a.noteOf(err.Error())
	}
	a.absent(ctx, out.Absent)
	problems := out.Problems()
	for i, err := range problems {
		if gone, ok := errors.AsType[*reading.NoAnswerError](err); ok && gone.Status == 0 && !gone.TLS {
			problems[i] = fmt.Errorf("%w; is one running there? logquery ingesters lists them", err)
		}
	}
	n := a.Problems(problems)
	switch {
	case !out.Complete():
		a.Complain("INCOMPLETE: %s could not be read", units.Count(max(n, 1), "part"))
		return lacking(problems...)
	case out.Records == 0:
		if out.Examined > 0 {
			a.Note("0 of %s", units.Count(out.Examined, "record"))
		}
		return cli.Nothing
	}
	return cli.OK
}
