package loki

import (
	"bytes"
	"hash/maphash"
	"maps"
	"slices"
	"strconv"
	"strings"

	"blobtail/internal/units"
	"blobtail/logql/stage"
)

// The numbers of records and fields that a search for fields takes, unless the request says.
const (
	defaultDetect = 100
	defaultFields = 1000
)

// A detected field is one of some records.
type detected struct {
	kind    string
	path    []string // in a message that is JSON
	own     bool     // records have it themselves, so no parser is needed
	parsers map[string]bool
	values  map[uint64]bool // their hashes: some are long, and only their number counts
}

// detectedBytes is the memory of a detected field or value beside its text.
const detectedBytes = 200

// see notes the field in one more record.
func (d *detected) see(f *stage.Field, seed maphash.Seed) {
	d.values[maphash.String(seed, f.Value)] = true
	switch {
	case d.kind == f.Type:
	case d.kind == "":
		d.kind = f.Type
	case numeric(d.kind) && numeric(f.Type):
		d.kind = "float"
	default:
		d.kind = "string"
	}
	if f.After == "" {
		d.own = true
		return
	}
	d.parsers[f.After] = true
	if d.path == nil {
		d.path = f.Path
	}
}

func numeric(kind string) bool { return kind == "int" || kind == "float" }

// detect finds the fields of the newest records of a query.
func (c *call) detect(visit func(fields []stage.Field) error) (limit int, err error) {
	rng, err := c.between()
	if err != nil {
		return 0, err
	}
	e, err := c.parseLog()
	if err != nil {
		return 0, err
	}
	lines, err := c.count("limit", defaultDetect)
	if err != nil {
		return 0, err
	}
	if lines, err = c.count("line_limit", lines); err != nil {
		return 0, err
	}
	if limit, err = c.count("limit", defaultFields); err != nil {
		return 0, err
	}
	ch, err := c.choose(e, rng)
	if err != nil {
		return 0, err
	}
	w := wish{limit: min(lines, maxEntries)}
	_, err = c.read(w.of(ch.ask), func(lines []byte) error {
		for line := range bytes.Lines(lines) {
			if err := visit(c.view().Fields(line)); err != nil {
				return err
			}
		}
		return nil
	})
	return limit, err
}

// detectedFields answers which fields there are, and how a query gets at them.
func (c *call) detectedFields() error {
	found, seed := map[string]*detected{}, maphash.MakeSeed()
	limit, err := c.detect(func(fields []stage.Field) error {
		for i := range fields {
			f := &fields[i]
			d := found[f.Name]
			if d == nil {
				d = &detected{parsers: map[string]bool{}, values: map[uint64]bool{}}
				found[f.Name] = d
			}
			before := len(d.values)
			d.see(f, seed)
			n := 32 * (len(d.values) - before)
			if before == 0 {
				n += detectedBytes + 2*len(f.Name)
			}
			if err := c.budget().Take(int64(n)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.out = append(c.out, `{"fields":[`...)
	for i, name := range slices.Sorted(maps.Keys(found)) {
		if i >= limit {
			break
		}
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.out = found[name].append(c.out, name)
	}
	c.endDetect(limit)
	return nil
}

// endDetect ends a list with its limit.
func (c *call) endDetect(limit int) {
	c.out = append(c.out, `],"limit":`...)
	c.out = strconv.AppendInt(c.out, int64(limit), 10)
}

// append appends the field. Drilldown looks for null, and then writes no parser.
func (d *detected) append(dst []byte, name string) []byte {
	dst = appendLabel(append(dst, '{'), "label", name)
	dst = appendLabel(append(dst, ','), "type", d.kind)
	dst = append(dst, `,"cardinality":`...)
	dst = strconv.AppendInt(dst, int64(len(d.values)), 10)
	if d.own {
		return append(dst, `,"parsers":null}`...)
	}
	dst = appendTexts(append(dst, `,"parsers":`...), slices.Sorted(maps.Keys(d.parsers)))
	if len(d.path) > 0 {
		dst = appendTexts(append(dst, `,"jsonPath":`...), d.path)
	}
	return append(dst, '}')
}

// detectedValues answers with the values of a field.
func (c *call) detectedValues() error {
	found, full := map[string]bool{}, false
	limit, err := c.detect(func(fields []stage.Field) error {
		for i := range fields {
			value := fields[i].Value
			if found[value] || fields[i].Name != c.name && !(isLevel(fields[i].Name) && isLevel(c.name)) {
				continue
			}
			if full = full || !c.budget().Try(int64(detectedBytes+len(value))); !full {
				found[strings.Clone(value)] = true
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if full {
		c.hint("the answer ends after %s: more would take more memory than one query may hold (%s), or than other queries leave free", units.Count(len(found), "value"), sizeText(c.budget().Spare()))
	}
	values := slices.Sorted(maps.Keys(found))
	c.out = append(c.out, `{"values":[`...)
	for i, value := range values[:min(len(values), limit)] {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.out = appendText(c.out, value)
		if err := c.some(); err != nil {
			return err
		}
	}
	c.endDetect(limit)
	return nil
}
