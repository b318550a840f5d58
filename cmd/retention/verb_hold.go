package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"blobtail/catalog"
	"blobtail/catalog/hold"
	"blobtail/catalog/horizon"
	"blobtail/internal/cli"
	"blobtail/internal/units"
	"blobtail/record"
	"blobtail/retention"
)

type holdCmd struct {
	Name    string   `arg:"" help:"Name of the hold, such as case-42."`
	Service []string `sep:"none" help:"Name or glob of services, also to come; _* are the system's own." required:"" placeholder:"GLOB"`
	From    string   `help:"First day (UTC) that is held (the oldest that is not hidden)." placeholder:"D"`
	To      string   `help:"Last day (UTC) that is held (all to come)." placeholder:"D"`
	Reason  string   `help:"Why, for those who read retention holds." required:"" placeholder:"TEXT"`
}

func (c *holdCmd) run(ctx context.Context, a *app) (int, error) {
	h := hold.Hold{Name: c.Name, From: hold.Oldest, To: hold.Newest, Reason: c.Reason}
	if !hold.ValidName(c.Name) {
		return 0, cli.Usagef("%q: the name of a hold has lower-case letters, digits, dots, _ and -, at most 63, such as case-42", c.Name)
	}
	if err := fold(&c.Service); err != nil {
		return 0, err
	}
	h.Services = c.Service
	if len(strings.Join(c.Service, ",")) > hold.MostServices {
		return 0, cli.Usagef("--service: more than %d bytes; take globs, or another hold for some", hold.MostServices)
	}
	for _, d := range []struct {
		flag, text string
		day        *horizon.Day
	}{{"--from", c.From, &h.From}, {"--to", c.To, &h.To}} {
		var err error
		if d.text == "" {
			continue
		}
		if *d.day, err = parseDay(d.text, time.Now()); err != nil {
			return 0, cli.Usagef("%s: %w", d.flag, err)
		}
	}
	if strings.TrimSpace(c.Reason) == "" {
		return 0, cli.Usagef("--reason: want a text for those who read retention holds")
	}
	if h.From > h.To {
		return 0, cli.Usagef("--from %s is behind --to %s", h.From, h.To)
	}
	o, err := a.open(ctx, nil, "", false)
	if err != nil {
		return 0, err
	}
	if err := retention.New(a.store.Blobs, a.store.Tables, o).Hold(ctx, h); err != nil {
		return 0, err
	}
	was := h
	if err := hold.Read(ctx, a.store.Blobs, &was); err != nil {
		return 0, err
	}
	if was.Reason != h.Reason {
		a.Complain("the hold was there before, and its reason stays: %s", cli.SafeLine(was.Reason))
	}
	stored, err := catalog.Services(ctx, a.store.Blobs)
	for _, glob := range c.Service {
		if err == nil && !slices.ContainsFunc(stored, func(name string) bool { return record.MatchService(glob, name) }) {
			a.Complain("%s matches no service that is stored so far", glob)
		}
	}
	a.Complain("in force: %s; retention release %s ends it", heldDays(&h), h.Name)
	a.Complain("a hold keeps blobs from this job alone: lifecycle rules of the account and people with rights are not bound by it")
	return cli.OK, err
}

// heldDays are the services and days of a hold.
func heldDays(h *hold.Hold) string {
	from, to := "the oldest day", "all days to come"
	if h.From != hold.Oldest {
		from = h.From.String()
	}
	if h.To != hold.Newest {
		to = h.To.String()
	}
	return fmt.Sprintf("%s, %s to %s", strings.Join(h.Services, " "), from, to)
}

type holdsCmd struct{}

func (*holdsCmd) run(ctx context.Context, a *app) (int, error) {
	o, err := a.open(ctx, nil, "", true)
	if err != nil {
		return 0, err
	}
	all, err := retention.New(a.store.Blobs, a.store.Tables, o).Holds(ctx)
	if err != nil {
		return 0, err
	}
	if len(all) == 0 {
		a.Complain("there is no hold")
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	for i := range all {
		h := &all[i]
		fmt.Fprintf(w, "%s\t%s\tsince %s\t%s\n", h.Name, heldDays(h), h.Made.UTC().Format(time.DateOnly), cli.SafeLine(h.Reason))
	}
	return cli.OK, w.Flush()
}

type releaseCmd struct {
	Name string `arg:"" help:"Name of the hold."`
}

func (c *releaseCmd) run(ctx context.Context, a *app) (int, error) {
	if !hold.ValidName(c.Name) {
		return 0, cli.Usagef("%q is no name of a hold: see retention holds", c.Name)
	}
	o, err := a.open(ctx, nil, "", false)
	if err != nil {
		return 0, err
	}
	if err := retention.New(a.store.Blobs, a.store.Tables, o).Release(ctx, c.Name); err != nil {
		return 0, err
	}
	a.Complain("released: what is past its age goes by the next runs of apply")
	return cli.OK, nil
}

// held tells which days are past their age and stay.
func (a *app) held(p *retention.Plan) {
	for _, h := range p.Held {
		n := units.Count(h.Days, "day")
		a.Complain("%s: %s from %s to %s would go, and %s held: %s", h.Service, n, h.First, h.Last, units.Word(h.Days, "is", "are"), h.Hold)
	}
}
