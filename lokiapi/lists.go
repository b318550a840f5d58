package lokiapi

import (
	"slices"

	"blobtail/logql"
	"blobtail/logql/stage"
	"blobtail/record"
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
	if _, err := c.widely(); err != nil {
		return err
	}
	e, err := c.parseLog()
	if err != nil {
		return err
	}
	var values []string
	switch c.name {
	case serviceLabel, serviceAlias:
		if values, err = c.services(e); err != nil {
			return err
		}
	case levelLabel, levelAlias:
		values = levelNames()
	}
	c.begins()
	c.out = append(c.out, `"data":`...)
	c.out = appendTexts(c.out, values)
	return nil
}

// series answers with the labels of streams.
func (c *call) series() error {
	if _, err := c.widely(); err != nil {
		return err
	}
	selectors := slices.Concat(c.form["match[]"], c.form["match"])
	if len(selectors) == 0 {
		selectors = []string{"{}"}
	}
	var names []string
	for _, text := range selectors {
		e, err := logql.Parse(text)
		if err != nil {
			return err
		}
		log, ok := e.(*logql.LogExpr)
		if !ok || len(log.Stages) > 0 {
			return refused("%q is no selector, such as {service_name=\"web\"}", text)
		}
		some, err := c.services(log)
		if err != nil {
			return err
		}
		names = append(names, some...)
	}
	slices.Sort(names)
	c.begins()
	c.out = append(c.out, `"data":[`...)
	for i, name := range slices.Compact(names) {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.out = appendLabel(append(c.out, '{'), serviceLabel, name)
		c.out = append(c.out, '}')
	}
	c.out = append(c.out, ']')
	return nil
}

// levelNames are the values of the label of levels, in their order.
func levelNames() []string {
	names := make([]string, record.NumLevels)
	for l := range names {
		names[l] = stage.LevelName(record.Level(l))
	}
	slices.Sort(names)
	return names
}

// appendLabel appends a label as a member of an object.
func appendLabel(dst []byte, name, value string) []byte {
	dst = append(appendText(dst, name), ':')
	return appendText(dst, value)
}
