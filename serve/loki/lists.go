package loki

import (
	"bytes"
	"maps"
	"slices"

	"blobtail/logql"
	"blobtail/logql/stage"
	"blobtail/reading"
)

// serviceLabel is the label of streams that every record has, and its other name.
const (
	serviceLabel = "service_name"
	serviceAlias = "service"
	levelLabel   = "detected_level"
	levelAlias   = "level"
)

// labels answers with the names of labels that choose records by an index, and those of streams.
func (c *call) labels() error {
	if _, err := c.widely(); err != nil {
		return err
	}
	names := append([]string{levelAlias, serviceLabel}, c.api.o.Labels...)
	slices.Sort(names)
	c.begins()
	c.out = append(c.out, `"data":`...)
	c.out = appendTexts(c.out, slices.Compact(names))
	return nil
}

// begins begins an answer that says its status.
func (c *call) begins() { c.out = append(c.out, `{"status":"success",`...) }

// labelValues answers with the values of a label.
func (c *call) labelValues() error {
	rng, err := c.widely()
	if err != nil {
		return err
	}
	e, err := c.parseLog()
	if err != nil {
		return err
	}
	var values []string
	switch {
	case isService(c.name):
		values, err = c.services(e)
	case isLevel(c.name):
		var all []reading.Volume
		all, _, err = c.volumes(e, rng)
		values = levelsOf(all)
	case slices.Contains(c.api.o.Labels, c.name):
		values, err = c.valuesOf(c.name, e, rng)
	}
	if err != nil {
		return err
	}
	c.begins()
	c.out = append(c.out, `"data":`...)
	c.out = appendTexts(c.out, values)
	return nil
}

// valuesOf are the values of a label in the streams that a query chooses, in order.
func (c *call) valuesOf(name string, e *logql.LogExpr, rng reading.Range) (values []string, err error) {
	found := map[string][]stage.Label{}
	err = c.streamsOf(e, rng, found)
	for _, labels := range found {
		for _, l := range labels {
			if l.Name == name {
				values = append(values, l.Value)
			}
		}
	}
	slices.Sort(values)
	return slices.Compact(values), err
}

// series answers with the labels of streams.
func (c *call) series() error {
	rng, err := c.widely()
	if err != nil {
		return err
	}
	selectors := slices.Concat(c.form["match[]"], c.form["match"])
	if len(selectors) == 0 {
		selectors = []string{"{}"}
	}
	found := map[string][]stage.Label{}
	for _, text := range selectors {
		log, err := c.parseSelector(text)
		if err != nil {
			return err
		}
		if err := c.streamsOf(log, rng, found); err != nil {
			return err
		}
	}
	c.begins()
	c.out = append(c.out, `"data":[`...)
	for i, labels := range slices.Sorted(maps.Keys(found)) {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.out = append(c.out, labels...)
		if err := c.some(); err != nil {
			return err
		}
	}
	c.out = append(c.out, ']')
	return nil
}

func (c *call) parseSelector(text string) (*logql.LogExpr, error) {
	if len(text) > maxText {
		return nil, tooLong(len(text))
	}
	e, err := logql.Parse(text)
	if err != nil {
		return nil, err
	}
	log, ok := e.(*logql.LogExpr)
	if !ok || len(log.Stages) > 0 {
		return nil, refused("%q is no selector, such as {service_name=\"web\"}", text)
	}
	return log, nil
}

const (
	// manyServices is how many services are looked at for their streams.
	manyServices = 200
	// streamLines is how many of a service's newest records tell its streams.
	streamLines = 1000
)

// streamsOf finds the labels of the streams that a query chooses, by their JSON. If these are
// services alone, nothing is read. Else the newest records of each service tell.
func (c *call) streamsOf(e *logql.LogExpr, rng reading.Range, found map[string][]stage.Label) error {
	ch, err := c.choose(e, rng)
	if err != nil {
		return err
	}
	add := func(labels []stage.Label) error {
		key := appendLabels(nil, labels)
		if _, ok := found[string(key)]; ok {
			return nil
		}
		found[string(key)] = slices.Clone(labels)
		return c.budget().Take(int64(streamBytes + 2*len(key)))
	}
	if ch.sel.All && ch.ask.Levels == 0 && !ch.ask.Impossible() && len(c.api.o.Labels) == 0 {
		names, err := c.list(ch)
		for _, name := range names {
			if err := add([]stage.Label{{Name: serviceLabel, Value: name}}); err != nil {
				return err
			}
		}
		return err
	}
	w := wish{limit: 1}
	if len(c.api.o.Labels) > 0 {
		w.limit = streamLines
	}
	var entry stage.Entry
	more, out, err := c.store.Each(c.ctx(), w.of(ch.ask), manyServices, func(lines []byte) error {
		for line := range bytes.Lines(lines) {
			if ch.pipe.Entry(line, &entry) {
				if err := add(entry.Stream); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if more {
		c.hints = append(c.hints, "only the first 200 services were looked at")
	}
	return c.take(out, err)
}

// appendLabel appends a label as a member of an object.
func appendLabel(dst []byte, name, value string) []byte {
	dst = append(appendText(dst, name), ':')
	return appendText(dst, value)
}
