package loki

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"blobtail/logql"
	"blobtail/logql/stage"
	"blobtail/reading"
	"blobtail/record"
)

// A chosen is a query for lines: the question that its selector and its stages mean, and the
// pipeline that decides about each line.
type chosen struct {
	pipe *stage.Pipeline
	sel  stage.Selection
	ask  reading.Ask
}

// choose compiles a query. Its services are found when it is read. A service that is not there has
// no lines.
func (c *call) choose(e *logql.LogExpr, rng reading.Range) (*chosen, error) {
	pipe, err := c.view().Compile(e)
	if err != nil {
		return nil, c.refusedQuery(err)
	}
	ch := &chosen{pipe: pipe, sel: pipe.Selection(), ask: reading.Ask{Range: rng, Here: reading.Here{Sure: true}}}
	ch.ask.Select(pipe, false) // the others have __error__
	return ch, nil
}

// services are those that the client may read and that a selector chooses, for a list.
func (c *call) services(e *logql.LogExpr) ([]string, error) {
	ch, err := c.choose(e, reading.Always())
	if err != nil {
		return nil, err
	}
	return c.list(ch)
}

// list returns the services of a query for people to choose from. It may be some seconds old,
// and no read rests on it. Reasons why it may lack services are noted.
func (c *call) list(ch *chosen) (names []string, err error) {
	if len(ch.ask.Services) == 0 || ch.ask.Impossible() {
		return nil, nil
	}
	if ch.sel.Names == nil {
		if names, err = c.store.Names(c.ctx()); err != nil {
			return nil, err
		}
	} else {
		names = slices.DeleteFunc(slices.Clone(ch.sel.Names), func(s string) bool { return !record.ValidStored(s) || !c.store.May(s) })
	}
	names = slices.DeleteFunc(names, func(s string) bool { return !ch.sel.Service(s) })
	return names, c.doubt()
}

// doubt notes why services may be missing in a list.
func (c *call) doubt() error {
	problems, err := c.store.Doubts(c.ctx())
	c.told.Lack(problems...)
	return err
}

// read reads the lines of a query.
func (c *call) read(a reading.Ask, emit func(lines []byte) error) (*reading.Outcome, error) {
	out, err := c.store.Records(c.ctx(), a, emit)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return out, c.take(out, err)
}

// take notes the problems and hints of a read that has an answer.
func (c *call) take(result *reading.Outcome, err error) error {
	if mistake, ok := errors.AsType[*reading.AskError](err); ok {
		return c.refusedQuery(mistake.Err)
	}
	if err != nil {
		return err
	}
	c.told.Add(result)
	for _, err := range result.Warnings {
		if text := err.Error(); !slices.Contains(c.hints, text) {
			c.hints = append(c.hints, text)
		}
	}
	c.hints = append(c.hints, result.Notes...)
	for _, g := range result.Gaps {
		c.hints = append(c.hints, gapText(g))
	}
	return nil
}

// gapText says which records are not in an answer.
func gapText(g reading.Gap) string {
	few := strconv.Itoa(g.Records)
	if g.AtMost {
		few = "at most " + few
	}
	from, to := time.Unix(0, g.From).UTC(), time.Unix(0, g.To).UTC()
	return few + " records of " + g.Service + " from " + from.Format(time.RFC3339Nano) + " to " + to.Format(time.RFC3339Nano) + " are left out: no ingester could be asked for them"
}
