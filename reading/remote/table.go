package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/reading"
	"blobtail/reading/form"
)

// Survey implements [reading.Source].
func (c *Client) Survey(ctx context.Context, a reading.Ask, o reading.SurveyOptions) (*reading.Survey, *reading.Outcome, error) {
	params := a.Values()
	if o.Top > 0 {
		params.Set("top", strconv.Itoa(o.Top))
	}
	params.Set("sample", strconv.Itoa(o.Sample))
	switch {
	case !reading.Listable(o.Fields):
		return nil, nil, fmt.Errorf("a field with a comma or with blanks around it cannot be asked for over a server: %q", o.Fields)
	case len(o.Fields) > 0:
		params.Set("fields", strings.Join(o.Fields, ","))
	}
	var f form.Facets
	if err := c.object(ctx, "facets", params, &f); err != nil {
		return nil, nil, failure(a.Services, err)
	}
	of, out := f.Survey(), c.outcome(&f.Outcome)
	out.More = of.Newest
	return of, out, nil
}

// numbers is an answer of Loki's API to a query with numbers.
type numbers struct {
	Data struct {
		ResultType string          `json:"resultType"`
		Result     json.RawMessage `json:"result"`
	} `json:"data"`
	Warnings []string `json:"warnings"`
}

// series is one of them.
type series struct {
	Metric map[string]string `json:"metric"`
	Value  *point            `json:"value"`
	Values []point           `json:"values"`
}

// point is a time in seconds, and a number as a text.
type point reading.Point

// UnmarshalJSON implements [json.Unmarshaler].
func (p *point) UnmarshalJSON(text []byte) error {
	var pair [2]json.RawMessage
	if err := json.Unmarshal(text, &pair); err != nil {
		return err
	}
	seconds, err := strconv.ParseFloat(string(pair[0]), 64)
	if err != nil {
		return err
	}
	var value string
	if err := json.Unmarshal(pair[1], &value); err != nil {
		return err
	}
	p.Time = int64(math.Round(seconds*1000)) * int64(time.Millisecond)
	p.Value, err = strconv.ParseFloat(value, 64)
	return err
}

// Table implements [reading.Source], by Loki's API of the server.
func (c *Client) Table(ctx context.Context, t reading.Table) ([]reading.Row, *reading.Outcome, error) {
	r := request{path: "query", loki: true, params: url.Values{"query": {t.LogQL}, "partial": {"1"}}, kind: form.JSON}
	if grid := t.Grid(); t.Step == 0 {
		r.params.Set("time", strconv.FormatInt(grid.End, 10))
	} else {
		r.path = "query_range"
		r.params.Set("start", strconv.FormatInt(grid.Start, 10))
		r.params.Set("end", strconv.FormatInt(grid.End, 10))
		r.params.Set("step", strconv.FormatFloat(t.Step.Seconds(), 'f', -1, 64))
	}
	var answer numbers
	if err := c.answer(ctx, r, &answer); err != nil {
		return nil, nil, err
	}
	rows, err := answer.rows()
	if err != nil {
		return nil, nil, fmt.Errorf("the answer of the server %s cannot be read: %w", c.base, err)
	}
	out, sum := &reading.Outcome{}, regexp.MustCompile(`^[0-9]+ (of [0-9]+ blobs|parts) could not be read(, the first)?: `)
	for _, text := range answer.Warnings {
		if problem, lacks := strings.CutPrefix(text, "incomplete: "); lacks {
			out.Lack(errors.New(strings.TrimPrefix(problem, sum.FindString(problem))))
		} else {
			out.Warnings = append(out.Warnings, errors.New(text))
		}
	}
	out.Records = int64(len(rows))
	return rows, out, nil
}

// rows are the series of an answer, of a number its point.
func (n *numbers) rows() (rows []reading.Row, err error) {
	var all []series
	switch n.Data.ResultType {
	case "scalar":
		all = []series{{Value: new(point)}}
		err = json.Unmarshal(n.Data.Result, all[0].Value)
	case "matrix", "vector":
		err = json.Unmarshal(n.Data.Result, &all)
	default:
		return nil, fmt.Errorf("a result of the type %.60q", n.Data.ResultType)
	}
	for i := range all {
		var row reading.Row
		for _, name := range slices.Sorted(maps.Keys(all[i].Metric)) {
			row.Labels = append(row.Labels, reading.Label{Name: name, Value: all[i].Metric[name]})
		}
		if p := all[i].Value; p != nil {
			row.Points = append(row.Points, reading.Point(*p))
		}
		for _, p := range all[i].Values {
			row.Points = append(row.Points, reading.Point(p))
		}
		rows = append(rows, row)
	}
	return rows, err
}
