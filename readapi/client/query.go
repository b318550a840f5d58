package client

import (
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Query selects records. Its fields are the parameters of the API, which are named and mean
// the same as the flags of logquery.
type Query struct {
	Services []string  // names and globs
	From, To time.Time // the oldest time, and the first one that is too new; zero: open
	Levels   string    // as "error,critical" or "warn+"; "": all
	Texts    []string
	Words    []string
	Exprs    []string
	Where    string
	Invert   bool
	Fold     bool
	Live     string // auto, off or only; "": auto

	// Limit wants the newest so many records, and First the oldest. 0 is all.
	Limit, First int
	Reverse      bool     // newest first
	Fields       []string // only these fields of the records; none: whole lines
}

// times are the parameters that all routes of services have.
func (q *Query) times() url.Values {
	p := url.Values{"service": q.Services}
	set(p, map[string]string{"live": q.Live, "from": stamp(q.From), "to": stamp(q.To)})
	return p
}

// set sets the parameters with a value: others have none.
func set(p url.Values, values map[string]string) {
	for name, value := range values {
		if value != "" {
			p.Set(name, value)
		}
	}
}

// filter are the parameters that all routes of records have.
func (q *Query) filter() url.Values {
	p := q.times()
	many := func(name string, values []string) {
		for _, value := range values {
			if value != "" { // it matches everything
				p.Add(name, value)
			}
		}
	}
	many("text", q.Texts)
	many("words", q.Words)
	many("expr", q.Exprs)
	set(p, map[string]string{"level": q.Levels, "where": q.Where})
	if q.Invert {
		p.Set("not", "1")
	}
	if q.Fold {
		p.Set("fold", "1")
	}
	return p
}

// records are the parameters of a stream of records.
func (q *Query) records() url.Values {
	p := q.filter()
	p.Set("form", "events")
	if q.First > 0 {
		p.Set("first", strconv.Itoa(q.First))
	} else {
		p.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Reverse {
		p.Set("order", "desc")
	}
	if len(q.Fields) > 0 {
		p.Set("fields", strings.Join(q.Fields, ","))
	}
	return p
}

// stamp is a time as a parameter.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
