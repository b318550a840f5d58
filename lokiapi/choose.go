package lokiapi

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"blobtail/logql"
	"blobtail/logql/stage"
	"blobtail/newest"
	"blobtail/query"
	"blobtail/record"
)

// A chosen is a query for lines: the services and the filter that its selector and its stages
// mean, and the pipeline that decides about each line.
type chosen struct {
	pipe  *stage.Pipeline
	sel   stage.Selection
	query query.Query
}

// choose compiles a query. Its services are found when it is read.
func (c *call) choose(e *logql.LogExpr, rng query.Range) (*chosen, error) {
	pipe, err := c.view().Compile(e)
	if err != nil {
		return nil, c.refusedQuery(err)
	}
	ch := &chosen{pipe: pipe, sel: pipe.Selection(), query: query.Query{Range: rng, MaxRaw: c.api.o.MaxBytes}}
	var possible bool
	if ch.query.Filter.Levels, possible = levelSet(&ch.sel.Levels); !possible {
		return ch, nil
	}
	ch.query.Filter.Texts = ch.sel.Texts
	if !ch.sel.All {
		ch.query.Filter.Accept = pipe.Keep
		ch.query.Filter.Unjudged = func() (int64, error) { return pipe.Unjudged(false) } // the others have __error__
	}
	ch.query.Services = c.pick(&ch.sel)
	ch.query.Choose = ch.sel.Service
	return ch, nil
}

// levelSet returns a set of levels as a filter has it; false: no level is wanted.
func levelSet(levels *[record.NumLevels]bool) (set query.LevelSet, any bool) {
	n := 0
	for l, wanted := range levels {
		if wanted {
			set |= 1 << l
			n++
		}
	}
	if n == len(levels) {
		set = 0
	}
	return set, n > 0
}

// services are those that the client may read and that a selector chooses, for a list.
func (c *call) services(e *logql.LogExpr) ([]string, error) {
	ch, err := c.choose(e, query.Always())
	if err != nil {
		return nil, err
	}
	return c.list(ch)
}

// list returns the services of a query for people to choose from. It may be some seconds old,
// and no read rests on it. What it may lack is noted.
func (c *call) list(ch *chosen) (names []string, err error) {
	if names = ch.query.Services; len(names) == 0 {
		return nil, nil
	}
	if ch.sel.Names == nil {
		if names, err = c.client.Names(c.ctx()); err != nil {
			return nil, err
		}
		names = slices.DeleteFunc(names, func(s string) bool { return !ch.sel.Service(s) })
	}
	return names, c.doubt()
}

// pick returns the names of the services of a selection that the client may read, or the globs
// among whose matches the selection chooses.
func (c *call) pick(sel *stage.Selection) []string {
	if sel.Names == nil {
		return []string{"*", "_*"}
	}
	return slices.DeleteFunc(slices.Clone(sel.Names), func(s string) bool {
		return !record.ValidStored(s) || !c.client.May(s) || !sel.Service(s)
	})
}

// doubt notes why services may be missing in a list.
func (c *call) doubt() error {
	problems, err := c.client.Doubts(c.ctx())
	c.told.Lack(problems...)
	return err
}

// reads is a way to read the lines of a query.
type reads func(blobs *query.Reader, ctx context.Context, q query.Query, emit func(lines []byte) error) (query.Summary, error)

// byPlan reads the lines of a query over a listing of all of its range.
func byPlan(blobs *query.Reader, ctx context.Context, q query.Query, emit func(lines []byte) error) (query.Summary, error) {
	p, err := blobs.Plan(ctx, q)
	if err != nil {
		return query.Summary{}, err
	}
	return p.Read(ctx, emit)
}

// read reads the lines of a query.
func (c *call) read(ch *chosen, how reads, emit func(lines []byte) error) (query.Summary, error) {
	return c.ask(ch.query, func(blobs *query.Reader, q query.Query) (query.Summary, error) {
		sum, err := how(blobs, c.ctx(), q, emit)
		if errors.Is(err, errEnough) {
			err = nil
		}
		return sum, err
	})
}

// ask runs a query, and notes what the answer lacks. A service that is not there has no lines.
func (c *call) ask(q query.Query, run func(blobs *query.Reader, q query.Query) (query.Summary, error)) (query.Summary, error) {
	q.Sure = true
	result, err := c.client.Query(c.ctx(), q, newest.Auto, run)
	if err != nil {
		return query.Summary{}, err
	}
	c.take(result)
	return result.Summary(), nil
}

// take notes the problems and hints of a read.
func (c *call) take(result *query.Outcome) {
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
}

// gapText says which records are not in an answer.
func gapText(g query.Gap) string {
	few := strconv.Itoa(g.Records)
	if g.AtMost {
		few = "at most " + few
	}
	from, to := time.Unix(0, g.From).UTC(), time.Unix(0, g.To).UTC()
	return few + " records of " + g.Service + " from " + from.Format(time.RFC3339Nano) + " to " + to.Format(time.RFC3339Nano) + " are left out: no ingester could be asked for them"
}
