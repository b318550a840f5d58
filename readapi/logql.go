package readapi

import (
	"net/http"
	"slices"

	"blobtail/internal/budget"
	"blobtail/internal/door"
	"blobtail/logql"
	"blobtail/logql/stage"
	"blobtail/query"
	"blobtail/record"
)

// instead are the parameters that logql takes the place of.
func instead() []string {
	return []string{"service", "level", "text", "words", "expr", "where", "not", "fold"}
}

// logql reads a query in LogQL: which records are wanted, of which services. The records come
// as they are stored, whatever stages make of their lines.
func (c *call) logql(text string, q *query.Query) error {
	for _, name := range instead() {
		if len(c.params[name]) > 0 {
			return badRequest("logql selects services and records by itself; leave out %s, or logql", name)
		}
	}
	tree, err := logql.Parse(text)
	if err != nil {
		return badRequest("logql: %w", err)
	}
	e, ok := tree.(*logql.LogExpr)
	if !ok {
		return badRequest("logql: a query of numbers is for Loki's API, /loki/api/v1/query_range; here it selects records, as {service=\"web\"} |= \"text\"")
	}
	pipe, err := stage.View{Budget: budget.Of(c.r.Context())}.Compile(e)
	if err != nil {
		return badRequest("logql: %w", logql.Locate(text, err))
	}
	sel := pipe.Selection()
	c.wanted = sel.Service
	q.Filter.Texts = sel.Texts
	if !sel.All {
		q.Filter.Accept = pipe.Keep
		q.Filter.Unjudged = func() (int64, error) { return pipe.Unjudged(true) }
	}
	q.Choose = sel.Service
	if q.Services = slices.Clone(sel.Names); sel.Names == nil {
		q.Services = []string{"*", "_*"}
	}
	q.Services = slices.DeleteFunc(q.Services, func(s string) bool {
		return record.ValidStored(s) && (!c.client.May(s) || !sel.Service(s))
	})
	if len(q.Services) == 0 {
		return noneChosen(sel.Names)
	}
	n := 0
	for l, wanted := range sel.Levels {
		if wanted {
			q.Filter.Levels |= 1 << l
			n++
		}
	}
	switch n {
	case 0: // no record can match
		q.Range = query.Range{From: query.Newest - 1, To: query.Newest}
	case record.NumLevels:
		q.Filter.Levels = 0
	}
	return nil
}

// noneChosen is the error of a selector that chooses no service among some names and globs.
func noneChosen(names []string) error {
	if len(names) > 0 && record.ValidStored(names[0]) {
		return &query.NoServiceError{Name: names[0]}
	}
	return &door.Refusal{Status: http.StatusNotFound, Title: "No such service", Reason: "logql: no service matches the selector; " + Prefix + "services lists them"}
}
