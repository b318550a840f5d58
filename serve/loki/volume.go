package loki

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/logql"
	"blobtail/logql/stage"
	"blobtail/reading"
	"blobtail/record"
)

// volumes sums up the records that a selector chooses, by service. Listings alone answer, so it
// is an estimate, and filters on other labels than service and level do not count.
func (c *call) volumes(e *logql.LogExpr, rng reading.Range) ([]reading.Volume, *reading.Outcome, error) {
	ch, err := c.choose(e, rng)
	if err != nil {
		return nil, nil, err
	}
	all, out, err := c.store.Volumes(c.ctx(), ch.ask)
	return all, out, c.take(out, err)
}

// indexStats answers how much a query would read.
func (c *call) indexStats() error {
	rng, err := c.between()
	if err != nil {
		return err
	}
	e, err := c.parseLog()
	if err != nil {
		return err
	}
	all, _, err := c.volumes(e, rng)
	if err != nil {
		return err
	}
	var total reading.Volume
	for _, v := range all {
		total.Blobs += v.Blobs
		total.Bytes += v.Bytes
		total.Records += v.Records
	}
	c.out = append(c.out, `{"streams":`...)
	c.out = strconv.AppendInt(c.out, int64(len(all)), 10)
	c.out = append(c.out, `,"chunks":`...)
	c.out = strconv.AppendInt(c.out, int64(total.Blobs), 10)
	c.out = append(c.out, `,"bytes":`...)
	c.out = strconv.AppendInt(c.out, total.Bytes, 10)
	c.out = append(c.out, `,"entries":`...)
	c.out = strconv.AppendInt(c.out, total.Records, 10)
	return nil
}

// A share is the bytes of the records with some labels.
type share struct {
	labels []stage.Label
	bytes  float64
	points []float64 // at each step
}

// targets are the labels by which volumes are summed up: those that the request names, else those
// that the selector does. known says that all of them are of service or level, so that listings
// tell them apart.
func (c *call) targets(e *logql.LogExpr) (names []string, known bool) {
	if text := c.form.Get("targetLabels"); text != "" {
		for name := range strings.SplitSeq(text, ",") {
			names = append(names, strings.TrimSpace(name))
		}
	} else {
		for _, m := range e.Selector {
			names = append(names, m.Name)
		}
	}
	if len(names) == 0 {
		names = []string{serviceLabel}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names, !slices.ContainsFunc(names, func(name string) bool { return !isService(name) && !isLevel(name) })
}

func isService(name string) bool { return name == serviceLabel || name == serviceAlias }
func isLevel(name string) bool   { return name == levelLabel || name == levelAlias }

// shares divides volumes by labels. The bytes of a level are those of its part of the records.
func shares(all []reading.Volume, names []string) (out []*share) {
	byKey := map[string]*share{}
	for i := range all {
		v := &all[i]
		for l, n := range v.Levels {
			if n == 0 {
				continue
			}
			labels := labelsOf(names, v.Service, record.Level(l))
			key := string(appendLabels(nil, labels))
			s := byKey[key]
			if s == nil {
				s = &share{labels: labels}
				byKey[key] = s
				out = append(out, s)
			}
			s.bytes += float64(v.Bytes) * float64(n) / float64(v.Records)
		}
	}
	return out
}

// labelsOf are the labels with some names of the records of a service and level.
func labelsOf(names []string, service string, l record.Level) []stage.Label {
	labels := make([]stage.Label, len(names))
	for i, name := range names {
		labels[i] = stage.Label{Name: name, Value: service}
		if isLevel(name) {
			labels[i].Value = stage.LevelName(l)
		}
	}
	return labels
}

// largest puts the largest shares first, and leaves out those beyond the limit.
func largest(all []*share, limit int) []*share {
	slices.SortFunc(all, func(a, b *share) int {
		return cmp.Or(cmp.Compare(math.Round(b.bytes), math.Round(a.bytes)), slices.CompareFunc(a.labels, b.labels, func(a, b stage.Label) int {
			return strings.Compare(a.Value, b.Value)
		}))
	})
	return all[:min(len(all), limit)]
}

// A measuring is a question for volumes.
type measuring struct {
	e     *logql.LogExpr
	rng   reading.Range
	limit int
	names []string // labels
	known bool     // there are volumes by these labels
}

func (c *call) measuring() (m measuring, err error) {
	if m.rng, err = c.between(); err != nil {
		return m, err
	}
	if m.limit, err = c.limit(); err != nil {
		return m, err
	}
	if m.e, err = c.parseLog(); err != nil {
		return m, err
	}
	m.names, m.known = c.targets(m.e)
	return m, nil
}

// indexVolume answers how many bytes of lines there are by some labels, largest first.
func (c *call) indexVolume() error {
	m, err := c.measuring()
	if err != nil {
		return err
	}
	begun := time.Now()
	all, sum, err := c.volumes(m.e, m.rng)
	if err != nil {
		return err
	}
	var parts []*share
	if m.known {
		parts = largest(shares(all, m.names), m.limit)
	}
	c.begins()
	c.out = append(c.out, `"data":{"resultType":"vector","result":[`...)
	for i, s := range parts {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.out = appendLabels(append(c.out, `{"metric":`...), s.labels)
		c.out = append(c.out, `,"value":`...)
		c.out = append(appendPoint(c.out, m.rng.To, math.Round(s.bytes)), '}')
	}
	c.out = append(c.out, ']')
	c.endData(sum, len(parts), begun)
	return nil
}

// indexVolumeRange answers the same at each step. The counts of indexes tell when the records
// were, and each has the mean length of its service's records.
func (c *call) indexVolumeRange() error {
	m, err := c.measuring()
	if err != nil {
		return err
	}
	step, err := c.step(m.rng)
	if err != nil {
		return err
	}
	first := floorDiv(m.rng.From, int64(step))
	n := floorDiv(m.rng.To-1, int64(step)) - first + 1
	if n > maxPoints {
		return refused("exceeded maximum resolution of 11,000 points per time series. Try increasing the value of the step parameter")
	}
	begun := time.Now()
	all, sum, err := c.volumes(m.e, m.rng)
	if err != nil {
		return err
	}
	var parts []*share
	if m.known {
		parts = shares(all, m.names)
		work, err := c.spread(parts, all, m, step, first, int(n))
		if err != nil {
			return err
		}
		work.Records, work.Examined = 0, 0 // they are the same
		sum.Add(work)
		parts = largest(parts, m.limit)
	}
	c.begins()
	c.out = append(c.out, `"data":{"resultType":"matrix","result":[`...)
	for i, s := range parts {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.out = appendShare(c.out, s, step, first)
	}
	c.out = append(c.out, ']')
	c.endData(sum, len(parts), begun)
	return nil
}

// appendShare appends the points of a share, which begin at multiples of the step.
func appendShare(dst []byte, s *share, step time.Duration, first int64) []byte {
	dst = appendLabels(append(dst, `{"metric":`...), s.labels)
	dst = append(dst, `,"values":[`...)
	some := false
	for i, v := range s.points {
		if v == 0 {
			continue
		}
		if some {
			dst = append(dst, ',')
		}
		some = true
		dst = appendPoint(dst, (first+int64(i))*int64(step), math.Round(v))
	}
	return append(dst, "]}"...)
}

// spread spreads shares over the steps. It returns the work.
func (c *call) spread(parts []*share, all []reading.Volume, m measuring, step time.Duration, first int64, n int) (*reading.Outcome, error) {
	byKey := map[string]*share{}
	for _, s := range parts {
		s.points = make([]float64, n)
		byKey[string(appendLabels(nil, s.labels))] = s
	}
	mean := map[string]float64{}
	for _, v := range all {
		mean[v.Service] = float64(v.Bytes) / float64(max(1, v.Records))
	}
	a := reading.Ask{Range: m.rng, Here: reading.Here{Sure: true}}
	for _, v := range all {
		a.Services = append(a.Services, v.Service)
	}
	ch, err := c.choose(m.e, m.rng)
	if err != nil {
		return nil, err
	}
	a.Levels = ch.ask.Levels
	h, out, err := c.store.Histogram(c.ctx(), a, reading.Slices{By: step, Apart: func([]string) bool { return true }})
	if err := c.take(out, err); err != nil {
		return nil, err
	}
	for i := range h.Buckets {
		b := &h.Buckets[i]
		for l, records := range b.Levels {
			s := byKey[string(appendLabels(nil, labelsOf(m.names, b.Service, record.Level(l))))]
			if at := floorDiv(b.Start, int64(step)) - first; s != nil && at >= 0 && at < int64(n) {
				s.points[at] += float64(records) * mean[b.Service]
			}
		}
	}
	return out, nil
}

// detectedLabels answers which labels choose records by an index, and how many values they have.
func (c *call) detectedLabels() error {
	rng, err := c.widely()
	if err != nil {
		return err
	}
	e, err := c.parseLog()
	if err != nil {
		return err
	}
	all, _, err := c.volumes(e, rng)
	if err != nil {
		return err
	}
	c.out = append(c.out, `{"detectedLabels":[`...)
	if len(all) > 0 {
		c.out = appendCardinality(c.out, serviceLabel, len(all))
		c.out = appendCardinality(append(c.out, ','), levelAlias, len(levelsOf(all)))
	}
	c.out = append(c.out, ']')
	return nil
}

func appendCardinality(dst []byte, name string, n int) []byte {
	dst = appendText(append(dst, `{"label":`...), name)
	dst = append(dst, `,"cardinality":`...)
	return append(strconv.AppendInt(dst, int64(n), 10), '}')
}

// levelsOf are the names of the levels that volumes have, in order.
func levelsOf(all []reading.Volume) (names []string) {
	for l := range record.Level(record.NumLevels) {
		if slices.ContainsFunc(all, func(v reading.Volume) bool { return v.Levels[l] > 0 }) {
			names = append(names, stage.LevelName(l))
		}
	}
	slices.Sort(names)
	return names
}
