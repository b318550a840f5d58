package loki

import (
	"time"

	"blobtail/logql"
	"blobtail/logql/metric"
	"blobtail/reading"
)

// instantQuery answers a query at one time, with numbers.
func (c *call) instantQuery() error {
	e, err := c.parse()
	if err != nil {
		return err
	}
	m, ok := e.(logql.Metric)
	if !ok {
		return refused("log queries are not supported as an instant query type, please change your query to a range query type")
	}
	at, err := c.instant("time", c.now.UnixNano())
	if err != nil {
		return err
	}
	if _, err := c.count("limit", defaultLimit); err != nil {
		return err
	}
	begun := time.Now()
	res, sum, err := c.evaluate(m, metric.At(at))
	if err != nil {
		return err
	}
	c.begins()
	c.out = append(c.out, `"data":{"resultType":"`...)
	if res.Scalar {
		c.out = append(c.out, `scalar","result":`...)
		c.out = c.appendScalar(c.out, res)
	} else {
		c.out = append(c.out, `vector","result":[`...)
		if err := c.vector(res.Series); err != nil {
			return err
		}
		c.out = append(c.out, ']')
	}
	c.endData(sum, len(res.Series), begun)
	return nil
}

// matrix answers a query with numbers at each step.
func (c *call) matrix(e logql.Metric, rng reading.Range, step time.Duration) error {
	begun := time.Now()
	res, sum, err := c.evaluate(e, metric.Align(rng.From, rng.To, int64(step)))
	if err != nil {
		return err
	}
	c.begins()
	c.out = append(c.out, `"data":{"resultType":"matrix","result":[`...)
	for i := range res.Series {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		if err := c.points(&res.Series[i]); err != nil {
			return err
		}
	}
	c.out = append(c.out, ']')
	c.endData(sum, len(res.Series), begun)
	return nil
}

// endData ends the data of an answer with the statistics of the query.
func (c *call) endData(sum *reading.Outcome, entries int, begun time.Time) {
	c.out = append(c.out, ',')
	c.out = c.appendStats(c.out, sum, entries, begun)
	c.out = append(c.out, '}')
}

// appendScalar appends the one point of a number.
func (c *call) appendScalar(dst []byte, res *metric.Result) []byte {
	for i := range res.Series {
		for ns, v := range res.Series[i].Points() {
			return appendPoint(dst, ns, v)
		}
	}
	return append(dst, "[]"...)
}

// vector appends the one point of each series.
func (c *call) vector(all []metric.Series) error {
	first := true
	for i := range all {
		for ns, v := range all[i].Points() {
			if !first {
				c.out = append(c.out, ',')
			}
			first = false
			c.out = appendMetric(append(c.out, `{"metric":`...), all[i].Labels)
			c.out = appendPoint(append(c.out, `,"value":`...), ns, v)
			c.out = append(c.out, '}')
			if err := c.some(); err != nil {
				return err
			}
		}
	}
	return nil
}

// points appends the points of a series.
func (c *call) points(s *metric.Series) error {
	c.out = appendMetric(append(c.out, `{"metric":`...), s.Labels)
	c.out = append(c.out, `,"values":[`...)
	first := true
	for ns, v := range s.Points() {
		if !first {
			c.out = append(c.out, ',')
		}
		first = false
		c.out = appendPoint(c.out, ns, v)
	}
	c.out = append(c.out, "]}"...)
	return c.some()
}

func appendMetric(dst []byte, labels []metric.Label) []byte {
	dst = append(dst, '{')
	for i, l := range labels {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendLabel(dst, l.Name, l.Value)
	}
	return append(dst, '}')
}

func appendPoint(dst []byte, ns int64, v float64) []byte {
	dst = appendSeconds(append(dst, '['), ns)
	dst = appendValue(append(dst, ','), v)
	return append(dst, ']')
}

// evaluate runs a query with numbers.
func (c *call) evaluate(e logql.Metric, grid metric.Grid) (*metric.Result, *reading.Outcome, error) {
	res, out, err := c.store.Numbers(c.ctx(), reading.Numbers{
		Expr: e, Text: c.form.Get("query"), Grid: grid, View: c.view(),
		Most: metric.Limits{Series: maxSeries, Points: maxPoints}, Scan: c.api.o.Scan,
	})
	return res, out, c.take(out, err)
}
