package metric_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/record"
)

// The second evaluator defines queries with numbers over a list of records, as plainly as it can:
// it goes through all records for each point. It shares no code with the packages stage and
// metric.

// A field is a member of a record. Its value is a string, a float64, a bool, nil, a list or
// another list of fields.
type field struct {
	name  string
	value any
}

// An item is a record.
type item struct {
	time                int64
	level, service, msg string
	fields              []field
	line                string // as it is stored
}

func quoted(s string) string { return `"` + string(record.AppendEscaped(nil, []byte(s))) + `"` }

// compact is the JSON of fields, as it is stored.
func compact(value any) string {
	switch v := value.(type) {
	case string:
		return quoted(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []field:
		var all []string
		for _, f := range v {
			all = append(all, quoted(f.name)+":"+compact(f.value))
		}
		return "{" + strings.Join(all, ",") + "}"
	case []any:
		var all []string
		for _, one := range v {
			all = append(all, compact(one))
		}
		return "[" + strings.Join(all, ",") + "]"
	case bool:
		return strconv.FormatBool(v)
	}
	return "null"
}

// store writes the line of a record.
func (r *item) store() {
	rest := strings.TrimPrefix(compact(r.fields), "{")
	if len(r.fields) > 0 {
		rest = "," + rest
	}
	r.line = fmt.Sprintf(`{"ts":"%s","level":%s,"service":%s,"msg":%s%s`,
		record.AppendTime(nil, r.time), quoted(r.level), quoted(r.service), quoted(r.msg), rest)
}

// detected is the level as clients see it.
func (r *item) detected() string {
	switch r.level {
	case "trace", "debug", "info", "warn", "error", "critical":
		return r.level
	}
	return "unknown"
}

var notName = regexp.MustCompile(`[^a-zA-Z0-9_]`)

// flatten calls put for each field that is neither null nor an object, under its flattened name.
func flatten(prefix string, fields []field, put func(name string, value any)) {
	for _, f := range fields {
		name := notName.ReplaceAllString(f.name, "_")
		if prefix != "" {
			name = prefix + "_" + name
		} else if name[0] >= '0' && name[0] <= '9' {
			name = "_" + name
		}
		switch v := f.value.(type) {
		case []field:
			flatten(name, v, put)
		case nil:
		default:
			put(name, v)
		}
	}
}

// textOf is the value of a label for a value of a field.
func textOf(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return compact(v)
}

// A work is a record in a pipeline.
type work struct {
	*item
	lines  bool // the view of lines
	text   string
	made   map[string]string // by stages
	gone   map[string]bool   // by drop, and with "*" all that keep did not name
	spared map[string]bool   // by keep
	failed string            // __error__
}

func (r *item) begin(lines bool) *work {
	w := &work{item: r, lines: lines, text: r.msg, made: map[string]string{}, gone: map[string]bool{}, spared: map[string]bool{}}
	switch {
	case lines:
		w.text = r.line
	case r.msg == "" && len(r.fields) > 0:
		w.text = compact(r.fields)
	}
	return w
}

// get looks a label up: those of stages, of the stream, the level, the fields.
func (w *work) get(name string) (string, bool) {
	if name == "__error__" {
		return w.failed, w.failed != ""
	}
	if v, ok := w.made[name]; ok {
		return v, true
	}
	if w.gone[name] || w.gone["*"] && !w.spared[name] {
		return "", false
	}
	switch name {
	case "service_name", "service":
		return w.service, true
	case "level", "detected_level":
		return w.detected(), true
	}
	found, is := "", false
	flatten("", w.fields, func(n string, v any) {
		if n == name && !is {
			found, is = textOf(v), true
		}
	})
	return found, is
}

// set makes a label, if there is none of a stage yet.
func (w *work) set(name, value string) {
	if name == "service_name" {
		name += "_extracted"
	}
	if _, ok := w.made[name]; !ok {
		w.made[name] = value
	}
}

// series are the labels of the series of the record. Named are fields that the query names.
func (w *work) series(named []string, without string) map[string]string {
	all := maps.Clone(w.made)
	names := append(slices.Collect(maps.Keys(w.spared)), named...)
	for _, name := range append(names, "service_name") {
		if v, ok := w.get(name); ok {
			all[name] = v
		}
	}
	delete(all, without)
	maps.DeleteFunc(all, func(_, v string) bool { return v == "" })
	return all
}

// decode is a JSON object in the order of its members; false if text is none.
func decode(text string) ([]field, bool) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	v, err := decodeValue(d)
	fields, ok := v.([]field)
	return fields, err == nil && ok && !d.More()
}

func decodeValue(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		fields := []field{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := decodeValue(d)
			if err != nil {
				return nil, err
			}
			fields = append(fields, field{name.(string), v})
		}
		_, err = d.Token()
		return fields, err
	case json.Delim('['):
		all := []any{}
		for d.More() {
			v, err := decodeValue(d)
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
		_, err = d.Token()
		return all, err
	}
	if n, ok := t.(json.Number); ok {
		return strconv.ParseFloat(n.String(), 64)
	}
	return t, nil
}

// of draws one of some values.
func of[T any](rng *rand.Rand, all ...T) T { return all[rng.IntN(len(all))] }

// drawItems makes records of some services, with times that are often borders of windows.
func drawItems(rng *rand.Rand, start int64) []*item {
	n := 1 + rng.IntN(10)*rng.IntN(11)
	unit := of(rng, int64(time.Second), int64(5*time.Second), int64(time.Second)/3)
	var all []*item
	for range n {
		r := &item{
			time:    start + rng.Int64N(240)*unit,
			level:   of(rng, "info", "info", "warn", "error", "debug", "critical", "odd"),
			service: of(rng, "web", "web", "api", "db"),
		}
		if rng.IntN(4) == 0 {
			r.time += rng.Int64N(unit)
		}
		r.fields = drawFields(rng)
		r.msg = drawMsg(rng)
		r.store()
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b *item) int { return int(min(max(a.time-b.time, -1), 1)) })
	return all
}

// drawValues are values of the fields with such names.
func drawValue(rng *rand.Rand, name string) any {
	switch name {
	case "status":
		return of[any](rng, 200.0, 200.0, 404.0, 500.0, "oops", nil)
	case "took":
		return of[any](rng, "125ms", "1.5s", "2m", "250ms", "late", "")
	case "size":
		return of[any](rng, "5KB", "3MiB", "17", "1.5 kB", "big")
	case "v":
		return of[any](rng, 1.0, 2.0, 2.5, -3.0, 0.0, 1000000.0, "NaN", "+Inf", "-1e3", true)
	case "tags":
		return []any{"a", 1.0}
	}
	return of[any](rng, "u1", "u2", "u3", "", "ü 4", `q"5`)
}

func drawFields(rng *rand.Rand) []field {
	all := []field{}
	for _, name := range []string{"status", "took", "size", "v", "user", "tags"} {
		if rng.IntN(4) > 0 {
			all = append(all, field{name, drawValue(rng, name)})
		}
	}
	if rng.IntN(3) == 0 {
		all = append(all, field{"http", []field{{"code", drawValue(rng, "status")}, {"user-agent", drawValue(rng, "user")}}})
	}
	return all
}

func drawMsg(rng *rand.Rand) string {
	switch rng.IntN(6) {
	case 0:
		return compact(append(drawFields(rng), field{"path", of[any](rng, "/a", "/b")}, field{"n", of[any](rng, 1.0, 2.0)}))
	case 1, 2:
		return "path=" + of(rng, "/a", "/b") + " n=" + of(rng, "1", "2", "x") + ` note="two words" took=` + of(rng, "1s", "20ms")
	case 3:
		return ""
	}
	return of(rng, "GET", "PUT") + " /basket/" + of(rng, "1", "2", "error") + " ü"
}
