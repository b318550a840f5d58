package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/goccy/go-yaml"
)

// A fluentBit does what Fluent Bit does with the lines of containers by a configuration, after its
// source: plugins in_tail, filter_multiline, filter_grep, filter_modify, filter_kubernetes, filter_nest and
// out_http, and src/multiline.
type fluentBit struct {
	t        *testing.T
	env      map[string]string
	pods     map[string]podMeta // by namespace/name
	Service  yaml.MapSlice
	Pipeline struct{ Inputs, Filters, Outputs []yaml.MapSlice }
}

// podMeta is what the API server knows of a pod.
type podMeta struct {
	labels   map[string]string
	excluded bool // fluentbit.io/exclude: "true"
}

// An event is a record of Fluent Bit. A key may be there twice.
type event struct {
	time   time.Time
	fields []member
}

type member struct {
	key   string
	value json.RawMessage
}

// pluginKeys are the keys that each plugin has in Fluent Bit 3.1 to 4.x, of those that are used.
// Another key ends its start.
func pluginKeys() map[string]string {
	return map[string]string{
		"tail":       "tag path exclude_path multiline.parser db db.locking read_from_head refresh_interval rotate_wait buffer_chunk_size buffer_max_size skip_long_lines storage.type",
		"multiline":  "match multiline.key_content multiline.parser emitter_storage.type emitter_mem_buf_limit",
		"grep":       "match exclude",
		"modify":     "match rename copy set add remove remove_wildcard",
		"kubernetes": "match kube_tag_prefix merge_log keep_log labels annotations k8s-logging.exclude k8s-logging.parser buffer_size kube_meta_cache_ttl",
		"nest":       "match operation nested_under add_prefix",
		"http":       "match host port uri format json_date_key json_date_format compress header tls tls.verify tls.verify_hostname tls.ca_file retry_limit storage.total_limit_size",
		"":           "flush grace log_level http_server http_listen http_port health_check storage.path storage.sync storage.checksum storage.max_chunks_up storage.backlog.mem_limit",
	}
}

// newFluentBit reads a configuration. Each plugin and key has to be known.
func newFluentBit(t *testing.T, text string, env map[string]string, pods map[string]podMeta) *fluentBit {
	t.Helper()
	f := &fluentBit{t: t, env: env, pods: pods}
	if err := yaml.Unmarshal([]byte(text), f); err != nil {
		t.Fatal(yaml.FormatError(err, false, true))
	}
	for _, p := range slices.Concat([]yaml.MapSlice{f.Service}, f.Pipeline.Inputs, f.Pipeline.Filters, f.Pipeline.Outputs) {
		known := strings.Fields(pluginKeys()[f.get(p, "name")])
		for _, item := range p {
			if key := fmt.Sprint(item.Key); key != "name" && !slices.Contains(known, key) {
				t.Errorf("%s has no %s", f.get(p, "name"), key)
			}
		}
	}
	return f
}

// get is the value of a key, with variables.
func (f *fluentBit) get(p yaml.MapSlice, key string) string {
	for _, item := range p {
		if item.Key == key {
			return f.expand(fmt.Sprint(item.Value))
		}
	}
	return ""
}

func (f *fluentBit) expand(s string) string {
	for name, v := range f.env {
		s = strings.ReplaceAll(s, "${"+name+"}", v)
	}
	return s
}

// list is a value that may be a list.
func (f *fluentBit) list(v any) (all []string) {
	if many, is := v.([]any); is {
		for _, one := range many {
			all = append(all, f.expand(fmt.Sprint(one)))
		}
		return all
	}
	return []string{f.expand(fmt.Sprint(v))}
}

// run reads a file of a container, and returns its records. ok is false for a file that is left out.
func (f *fluentBit) run(file string, text string) (events []event, ok bool) {
	f.t.Helper()
	in := f.Pipeline.Inputs[0]
	matched, err := path.Match(f.get(in, "path"), file)
	excluded, err2 := path.Match(f.get(in, "exclude_path"), file)
	if err != nil || err2 != nil {
		f.t.Fatal(err, err2)
	}
	if !matched || excluded {
		return nil, false
	}
	tag := strings.Replace(f.get(in, "tag"), "*", strings.ReplaceAll(strings.TrimPrefix(file, "/"), "/", "."), 1)
	events = f.tail(in, text)
	for i, p := range f.Pipeline.Filters {
		if m, _ := path.Match(f.get(p, "match"), tag); !m {
			continue
		}
		switch name := f.get(p, "name"); name {
		case "multiline":
			if i != 0 {
				f.t.Error("multiline has to be the first filter")
			}
			events = f.multiline(p, events)
		case "grep":
			key, pattern, _ := strings.Cut(f.get(p, "exclude"), " ")
			// ^ and $ are those of a line there.
			exclude := regexp.MustCompile("(?m:" + pattern + ")")
			events = slices.DeleteFunc(events, func(e event) bool { return e.at(key) >= 0 && exclude.MatchString(e.text(key)) })
		case "modify":
			for j := range events {
				f.modify(p, &events[j])
			}
		case "kubernetes":
			events = f.kubernetes(p, tag, events)
		case "nest":
			for j := range events {
				f.lift(p, &events[j])
			}
		default:
			f.t.Fatalf("no filter %s", name)
		}
	}
	return events, true
}

// tail reads lines of CRI, and puts those in parts together.
func (f *fluentBit) tail(p yaml.MapSlice, text string) (events []event) {
	if parsers := f.get(p, "multiline.parser"); !strings.Contains(parsers, "cri") {
		f.t.Fatalf("multiline.parser is %s", parsers)
	}
	line := regexp.MustCompile(`^(.+?) (stdout|stderr) (F|P) (.*)$`)
	open := map[string]*event{}
	for _, s := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		m := line.FindStringSubmatch(s)
		at, err := time.Parse(time.RFC3339Nano, m[1])
		if err != nil {
			f.t.Fatal(err)
		}
		e := open[m[2]]
		if e == nil {
			e = &event{time: at, fields: []member{{"time", encoded(m[1])}, {"stream", encoded(m[2])}, {"_p", encoded(m[3])}, {"log", encoded("")}}}
			open[m[2]] = e
		}
		e.set("log", e.text("log")+m[4])
		if m[3] == "F" {
			events = append(events, *e)
			delete(open, m[2])
		}
	}
	return events
}

func encoded(s string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string has a form
	return bytes.TrimSpace(b.Bytes())
}

// at is the place of a key, -1 for none.
func (e *event) at(key string) int {
	return slices.IndexFunc(e.fields, func(m member) bool { return m.key == key })
}

func (e *event) text(key string) (s string) {
	if i := e.at(key); i >= 0 {
		_ = json.Unmarshal(e.fields[i].value, &s) // "" for other kinds
	}
	return s
}

func (e *event) set(key, value string) {
	if i := e.at(key); i >= 0 {
		e.fields[i].value = encoded(value)
		return
	}
	e.fields = append(e.fields, member{key, encoded(value)})
}

// A traceRule leads from one of some states to another.
type traceRule struct{ from, pattern, to string }

// traceParsers are the rules of Fluent Bit's built-in parsers.
func traceParsers() map[string][]traceRule {
	return map[string][]traceRule{
		"java": {
			{"start_state java_start_exception", `(.)(?:Exception|Error|Throwable|V8 errors stack trace)[:\r\n]`, "java_after_exception"},
			{"java_after_exception", `^[\t ]*nested exception is:[\t ]*`, "java_start_exception"}, {"java_after_exception", `^[\r\n]*$`, "java_after_exception"},
			{"java_after_exception java", `^[\t ]+(?:eval )?at `, "java"}, {"java_after_exception java", `^[\t ]*(?:Caused by|Suppressed):`, "java_after_exception"},
			{"java_after_exception java", `^[\t ]*... \d+ (?:more|common frames omitted)`, "java"},
		},
		"go": {
			{"start_state", `\bpanic: `, "go_after_panic"}, {"start_state", `http: panic serving`, "go_goroutine"},
			{"go_after_panic go_after_signal go_frame_1", `^$`, "go_goroutine"}, {"go_after_panic", `^\[signal `, "go_after_signal"},
			{"go_goroutine", `^goroutine \d+ \[[^\]]+\]:$`, "go_frame_1"}, {"go_frame_1", `^(?:[^\s.:]+\.)*[^\s.():]+\(|^created by `, "go_frame_2"},
			{"go_frame_2", `^\s`, "go_frame_1"},
		},
		"python": {
			{"start_state", `^Traceback \(most recent call last\):$`, "python"}, {"python", `^[\t ]+File `, "python_code"},
			{"python_code", `[^\t ]`, "python"}, {"python", `^(?:[^\s.():]+\.)*[^\s.():]+:`, "start_state"},
		},
	}
}

// multiline puts the lines of stack traces together.
func (f *fluentBit) multiline(p yaml.MapSlice, events []event) (out []event) {
	key, rules := f.get(p, "multiline.key_content"), traceParsers()
	step := func(parser, state, line string) string {
		for _, r := range rules[parser] {
			if slices.Contains(strings.Fields(r.from), state) && regexp.MustCompile(r.pattern).MatchString(line) {
				return r.to
			}
		}
		return ""
	}
	parser, state := "", ""
next:
	for _, e := range events {
		line := e.text(key)
		if parser != "" && state != "start_state" {
			if to := step(parser, state, line); to != "" {
				last := &out[len(out)-1]
				last.set(key, last.text(key)+"\n"+line)
				state = to
				continue
			}
		}
		parser, state = "", ""
		for _, name := range strings.Split(f.get(p, "multiline.parser"), ",") {
			name = strings.TrimSpace(name)
			if rules[name] == nil {
				f.t.Fatalf("no parser %s", name)
			}
			if to := step(name, "start_state", line); to != "" {
				parser, state = name, to
				out = append(out, e)
				continue next
			}
		}
		out = append(out, e)
	}
	return out
}

// modify applies rules in their order.
func (f *fluentBit) modify(p yaml.MapSlice, e *event) {
	for _, item := range p {
		for _, rule := range f.list(item.Value) {
			from, to, _ := strings.Cut(rule, " ")
			i := e.at(from)
			switch item.Key {
			case "rename":
				for taken := e.at(to) >= 0; i >= 0 && !taken; i = e.at(from) {
					e.fields[i].key = to
				}
			case "copy":
				if i >= 0 && e.at(to) < 0 {
					e.fields = append(e.fields, member{to, e.fields[i].value})
				}
			case "set":
				e.set(from, to)
			case "add":
				if i < 0 {
					e.set(from, to)
				}
			case "remove":
				e.fields = slices.DeleteFunc(e.fields, func(m member) bool { return m.key == rule })
			case "remove_wildcard":
				e.fields = slices.DeleteFunc(e.fields, func(m member) bool { return strings.HasPrefix(m.key, rule) })
			}
		}
	}
}

// kubernetes adds the pod of a file, and the members of JSON in the line.
func (f *fluentBit) kubernetes(p yaml.MapSlice, tag string, events []event) (out []event) {
	name, ok := strings.CutPrefix(tag, f.get(p, "kube_tag_prefix"))
	m := regexp.MustCompile(`^([^_]+)_([^_]+)_(.+)-([a-z0-9]{64})\.log$`).FindStringSubmatch(name)
	if !ok || m == nil {
		f.t.Fatalf("the tag %s has no pod", tag)
	}
	pod := f.pods[m[2]+"/"+m[1]]
	if pod.excluded && f.get(p, "k8s-logging.exclude") == "on" {
		return nil
	}
	about := []member{{"pod_name", encoded(m[1])}, {"namespace_name", encoded(m[2])}, {"pod_id", encoded("3f2c6a2e-0000-4000-8000-000000000001")}}
	if f.get(p, "labels") == "on" && len(pod.labels) > 0 {
		labels, err := json.Marshal(pod.labels)
		if err != nil {
			f.t.Fatal(err)
		}
		about = append(about, member{"labels", labels})
	}
	about = append(about, member{"host", encoded("node-of-the-api")}, member{"pod_ip", encoded("10.0.0.9")}, member{"container_name", encoded(m[3])},
		member{"docker_id", encoded(m[4])}, member{"container_hash", encoded("sha256:1")}, member{"container_image", encoded("shop:1")})
	for _, e := range events {
		var fields []member
		for _, field := range e.fields {
			inner := membersOf([]byte(e.text("log")))
			if field.key == "log" && f.get(p, "merge_log") == "on" && inner != nil && f.get(p, "keep_log") == "off" {
				continue
			}
			fields = append(fields, field)
		}
		if f.get(p, "merge_log") == "on" {
			fields = append(fields, membersOf([]byte(e.text("log")))...)
		}
		out = append(out, event{e.time, append(fields, member{"kubernetes", object2json(about)})})
	}
	return out
}

// membersOf are those of an object in JSON, nil if it is none.
func membersOf(text []byte) (all []member) {
	if !json.Valid(text) || bytes.TrimSpace(text)[0] != '{' {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	_, _ = d.Token() // it is valid
	all = []member{}
	for d.More() {
		key, _ := d.Token()
		var v json.RawMessage
		_ = d.Decode(&v)
		all = append(all, member{fmt.Sprint(key), v})
	}
	return all
}

// lift puts the members of an object beside the others.
func (f *fluentBit) lift(p yaml.MapSlice, e *event) {
	if op := f.get(p, "operation"); op != "lift" {
		f.t.Fatalf("nest: operation %s", op)
	}
	var rest, lifted []member
	for _, m := range e.fields {
		if m.key != f.get(p, "nested_under") || membersOf(m.value) == nil {
			rest = append(rest, m)
			continue
		}
		for _, in := range membersOf(m.value) {
			lifted = append(lifted, member{f.get(p, "add_prefix") + in.key, in.value})
		}
	}
	e.fields = append(rest, lifted...)
}

// object2json writes members as Fluent Bit does: the last of equal keys, with escapes for all that
// is not ASCII.
func object2json(members []member) []byte {
	b := []byte{'{'}
	for i, m := range members {
		if slices.ContainsFunc(members[i+1:], func(o member) bool { return o.key == m.key }) {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, encoded(m.key)...), ':'), m.value...)
	}
	var out []byte
	for _, r := range string(append(b, '}')) {
		switch a, z := utf16.EncodeRune(r); {
		case r < 0x80:
			out = append(out, byte(r))
		case a != 0xfffd:
			out = fmt.Appendf(out, `\u%04x\u%04x`, a, z)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// body is that of a request with records, as the output http makes it.
func (f *fluentBit) body(p yaml.MapSlice, events []event) (body []byte) {
	if f.get(p, "format") != "json_lines" || f.get(p, "json_date_format") != "iso8601" {
		f.t.Fatal("the output has another format")
	}
	for _, e := range events {
		line := object2json(e.fields)
		body = fmt.Appendf(body, `{"%s":"%s"`, f.get(p, "json_date_key"), e.time.UTC().Format("2006-01-02T15:04:05.000000Z"))
		if len(line) > 2 {
			body = append(body, ',')
		}
		body = append(append(body, line[1:]...), '\n')
	}
	return body
}
