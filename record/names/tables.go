package names

import (
	"bytes"
	"iter"
	"math"
	"strconv"

	"blobtail/record"
)

// A condition says beside which other names a name counts: one of them has to be there.
type condition struct {
	name   Name
	beside []Name
}

// conditions are of names that mean other things elsewhere.
var conditions = [...]condition{
	// {"start_time":"2026-11-20T10:00:06Z","response_code":503} of Envoy and Istio
	{key("start_time"), keys("response_code", "upstream_host")},
	// {"kind":"Event","lastTimestamp":"2026-11-20T10:00:06Z","type":"Warning"} of Kubernetes, core/v1
	{key("lasttimestamp"), keys("kind", "involvedobject", "regarding")},
	{key("firsttimestamp"), keys("kind", "involvedobject", "regarding")},
	// {"createdDateTime":"2026-11-20T10:00:06Z","appDisplayName":"x"}: sign-ins and alerts of Microsoft Graph
	{key("createddatetime"), keys("appdisplayname", "servicesource")},
	// {"published":"2026-11-20T10:00:06.257Z","displayMessage":"x","severity":"WARN"}: Okta's System Log
	{key("published"), keys("displaymessage")},
	// {"deprecatedLastTimestamp":"2026-11-20T10:00:06Z","note":"x","regarding":{}}, events.k8s.io/v1
	{key("deprecatedlasttimestamp"), keys("regarding")},
	{key("note"), keys("regarding")},
	// {"objectAPIversion":"v1","type":"Warning","msg":"x"} of Alloy's loki.source.kubernetes_events
	{key("type"), keys("kind", "involvedobject", "regarding", "objectapiversion")},
	// {"Channel":"System","EventID":"7036","Description":"x"} of fluent-plugin-windows-eventlog
	{key("description"), keys("event_id", "eventid")},
}

// conditional has the names of conditions.
var conditional = func() (all Set) {
	for _, c := range conditions {
		(*record.Tags)(&all).Add(c.name)
	}
	return all
}()

// Conditional has the names of a kind, by its first one, that count beside others alone, as bits.
func Conditional(kind Name) uint64 { return conditional[kind/PerKind] }

func isConditional(n Name) bool { return conditional.Has(n) }

// A Scale has the levels that the numbers of a field are, or one word.
type Scale struct {
	name Name // 0: any
	// beside are other names: one of them has to be there, and one of also.
	beside, also []Name
	By           string // whose they are
	open         bool   // the scales behind this one count too
	word         string // that is info
	spans        []span
}

// A span is the numbers of a level.
type span struct {
	from, to int
	level    record.Level
}

// The spans of OpenTelemetry and of Windows, under several names.
var (
	otlpSpans = [...]span{
		{1, 4, record.Trace}, {5, 8, record.Debug}, {9, 12, record.Info}, {13, 16, record.Warn}, {17, 20, record.Error},
		{21, 24, record.Critical},
	}
	windowsSpans = [...]span{
		{0, 0, record.Info}, {1, 1, record.Critical}, {2, 2, record.Error}, {3, 3, record.Warn}, {4, 4, record.Info}, {5, 5, record.Trace},
	}
)

// scales are tried in their order.
var scales = [...]Scale{
	// {"severity_number":17}; opentelemetry.io/docs/specs/otel/logs/data-model
	{name: key("severity_number"), By: "OpenTelemetry", spans: otlpSpans[:]},
	{name: key("severitynumber"), By: "OpenTelemetry", spans: otlpSpans[:]},
	// {"levelno":40}; docs.python.org/3/library/logging.html#logging-levels
	{name: key("levelno"), By: "Python", spans: []span{
		{1, 9, record.Trace}, {10, 19, record.Debug}, {20, 29, record.Info}, {30, 39, record.Warn},
		{40, 49, record.Error}, {50, 99, record.Critical},
	}},
	// {"level_value":40000}; github.com/logfellow/logstash-logback-encoder
	{name: key("level_value"), By: "Logback", spans: []span{
		{1, 9999, record.Trace}, {10000, 19999, record.Debug}, {20000, 29999, record.Info},
		{30000, 39999, record.Warn}, {40000, 49999, record.Error},
		{50000, 99999, record.Critical},
	}},
	// {"Type":"AppTraces","SeverityLevel":3}; learn.microsoft.com/azure/azure-monitor/reference/tables/apptraces
	{name: key("severitylevel"), By: "Application Insights", spans: []span{
		{0, 0, record.Trace}, {1, 1, record.Info}, {2, 2, record.Warn}, {3, 3, record.Error}, {4, 4, record.Critical},
	}},
	// {"Type":"Event","EventLevel":2}; learn.microsoft.com/azure/azure-monitor/reference/tables/event
	{name: key("eventlevel"), By: "Windows", spans: windowsSpans[:]},
	// {"LogLevel":2,"Category":"Shop"}; learn.microsoft.com/dotnet/api/microsoft.extensions.logging.loglevel
	{name: key("loglevel"), beside: keys("category"), By: ".NET", spans: []span{
		{0, 0, record.Trace}, {1, 1, record.Debug}, {2, 2, record.Info}, {3, 3, record.Warn}, {4, 4, record.Error}, {5, 5, record.Critical},
	}},
	// {"channel":"System","event_id":7036,"level":4}; learn.microsoft.com/windows/win32/wes/eventmanifestschema-leveltype-complextype
	{
		name: key("level"), beside: keys("channel"), also: keys("event_id", "eventid"),
		open: true, By: "Windows", spans: windowsSpans[:],
	},
	// {"reqId":"a1","level":3,"app":"files"}; docs.nextcloud.com, logging
	{name: key("level"), beside: keys("reqid"), also: keys("app"), open: true, By: "Nextcloud", spans: []span{
		{0, 0, record.Debug}, {1, 1, record.Info}, {2, 2, record.Warn}, {3, 3, record.Error}, {4, 4, record.Critical},
	}},
	// {"lastTimestamp":"2026-11-20T10:00:06Z","type":"Normal"}
	{name: key("type"), By: "Kubernetes", word: "Normal"},
	// {"severity":3}; RFC 5424
	{open: true, By: "syslog", spans: []span{
		{0, 2, record.Critical}, {3, 3, record.Error}, {4, 4, record.Warn}, {5, 6, record.Info}, {7, 7, record.Debug},
	}},
	// {"level":30}; getpino.io, github.com/trentm/node-bunyan
	{open: true, By: "pino and bunyan", spans: []span{
		{10, 10, record.Trace}, {20, 20, record.Debug}, {30, 30, record.Info}, {40, 40, record.Warn},
		{50, 50, record.Error}, {60, 60, record.Critical},
	}},
	// {"level":400,"channel":"app"}; github.com/Seldaek/monolog, 01-usage
	{name: key("level"), open: true, By: "Monolog", spans: []span{
		{100, 100, record.Debug}, {200, 200, record.Info}, {250, 250, record.Info}, {300, 300, record.Warn}, {400, 400, record.Error},
		{500, 500, record.Critical}, {550, 550, record.Critical}, {600, 600, record.Critical},
	}},
	// {"level":8,"msg":"x"}; pkg.go.dev/log/slog#Level
	{name: key("level"), open: true, By: "slog", spans: []span{
		{-8, -8, record.Trace}, {-4, -4, record.Debug}, {8, 8, record.Error}, {12, 12, record.Critical},
	}},
	// {"severity":500}; cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry#LogSeverity
	{name: key("severity"), open: true, By: "Google", spans: []span{
		{100, 100, record.Debug}, {200, 200, record.Info}, {300, 300, record.Info}, {400, 400, record.Warn}, {500, 500, record.Error},
		{600, 600, record.Critical}, {700, 700, record.Critical}, {800, 800, record.Critical},
	}},
	// {"severity":17}: the commonest two of its numbers; 13 and 21 are as well numbers of others
	{name: key("severity"), open: true, By: "OpenTelemetry", spans: []span{{9, 9, record.Info}, {17, 17, record.Error}}},
}

// scaleLetters has a bit for the low five bits of the first letters of the names that [scales] look
// at, and of those before which a number of them does not count.
const scaleLetters = 1<<('@'&31) | 1<<('a'&31) | 1<<('c'&31) | 1<<('d'&31) | 1<<('e'&31) | 1<<('l'&31) | 1<<('r'&31) | 1<<('s'&31)

// A Nested is a member of an object that may have a part of the head.
type Nested struct {
	part   Part
	Parent Name
	Path   string // with that of the parent
	beside []Name // one of these has to be there, if there are any
}

// nestedNames are tried in their order, each part by itself.
var nestedNames = [...]Nested{
	{part: Time, Parent: key("record"), Path: "record.time.timestamp"}, // loguru
	{part: Time, Parent: key("_meta"), Path: "_meta.date"},             // tslog
	{part: Time, Parent: key("_logmeta"), Path: "_logMeta.date"},
	// dbt: {"data":{},"info":{"level":"error","msg":"x","ts":"2026-11-20T10:00:06Z"}}
	{part: Time, Parent: key("info"), Path: "info.ts"},
	// eventrouter: {"verb":"ADDED","event":{"lastTimestamp":"2026-11-20T10:00:06Z","message":"x","type":"Warning"}}
	{part: Time, Parent: key("event"), Path: "event.lastTimestamp", beside: keys("verb")},
	{part: Time, Parent: key("event"), Path: "event.eventTime", beside: keys("verb")},
	// a watch, and the Collector's k8sobjects: {"type":"ADDED","object":{"kind":"Event","lastTimestamp":"2026-11-20T10:00:06Z"}}
	{part: Time, Parent: key("object"), Path: "object.lastTimestamp", beside: keys("type")},
	{part: Time, Parent: key("object"), Path: "object.eventTime", beside: keys("type")},
	// Envoy's gRPC access log: {"common_properties":{"start_time":"2026-11-20T10:00:06Z"}}
	{part: Time, Parent: key("common_properties"), Path: "common_properties.start_time"},

	{part: Level, Parent: key("log"), Path: "log.level"}, // Elastic Common Schema
	{part: Level, Parent: key("jsonpayload"), Path: "jsonPayload.severity"},
	{part: Level, Parent: key("jsonpayload"), Path: "jsonPayload.level"},
	{part: Level, Parent: key("record"), Path: "record.level.name"},
	{part: Level, Parent: key("context"), Path: "context.logLevel"}, // Roarr
	{part: Level, Parent: key("_meta"), Path: "_meta.logLevelName"},
	{part: Level, Parent: key("_logmeta"), Path: "_logMeta.logLevelName"},
	{part: Level, Parent: key("level"), Path: "level.levelStr"}, // Logback: {"level":{"levelInt":40000,"levelStr":"ERROR"}}
	{part: Level, Parent: key("level"), Path: "level.name"},     // loguru: {"level":{"name":"ERROR","no":40}}
	{part: Level, Parent: key("info"), Path: "info.level"},
	// ContainerLogV2 of Azure: {"LogMessage":{"level":"error","msg":"x"}}
	{part: Level, Parent: key("logmessage"), Path: "LogMessage.level"},
	{part: Level, Parent: key("event"), Path: "event.type", beside: keys("verb")},
	{part: Level, Parent: key("object"), Path: "object.type", beside: keys("type")},

	{part: Message, Parent: key("fields"), Path: "fields.message"}, // tracing for Rust
	{part: Message, Parent: key("jsonpayload"), Path: "jsonPayload.message"},
	{part: Message, Parent: key("record"), Path: "record.message"},
	{part: Message, Parent: key("body"), Path: "Body.Value"},
	{part: Message, Parent: key("info"), Path: "info.msg"},
	{part: Message, Parent: key("logmessage"), Path: "LogMessage.message"},
	{part: Message, Parent: key("logmessage"), Path: "LogMessage.msg"},
	{part: Message, Parent: key("event"), Path: "event.message", beside: keys("verb")},
	{part: Message, Parent: key("object"), Path: "object.message", beside: keys("type")},
}

// Nested iterates over the members that may have a part, in their order.
func (m *Set) Nested(part Part) iter.Seq[*Nested] {
	return func(yield func(*Nested) bool) {
		for i := range nestedNames {
			n := &nestedNames[i]
			if n.part == part && m.Has(n.Parent) && m.some(n.beside) && !yield(n) {
				return
			}
		}
	}
}

// A Set is the names that a record has: by kind, bit n is of the name n of it.
type Set record.Tags

// Has reports whether there is a field with a name.
func (m *Set) Has(n Name) bool { return m[n/PerKind]>>(n%PerKind)&1 != 0 }

// some reports whether there is one of some names, or none is asked for.
func (m *Set) some(names []Name) bool {
	for _, n := range names {
		if m.Has(n) {
			return true
		}
	}
	return len(names) == 0
}

// Counts reports whether a name counts in this record.
func (m *Set) Counts(n Name) bool {
	for i := range conditions {
		if conditions[i].name == n {
			return m.some(conditions[i].beside)
		}
	}
	return true
}

// IsMark reports whether a field says what its name does, for names beside it.
func IsMark(n Name, text []byte) bool { return n != Kind || string(text) == "Event" }

// IsCommon reports whether the scale is for numbers under any name.
func (s *Scale) IsCommon() bool { return s.name == 0 }

// Level returns the level that a text is under a name: a word by the usual vocabularies, a
// number by the first of the scales. by is that.
func (m *Set) Level(n Name, text []byte) (l record.Level, by *Scale) {
	if v, number := Number(text); number {
		return m.scaled(n, v)
	}
	if n == S && (len(text) == 0 || text[0]-'A' >= 26 || len(text) > len("D5")) {
		return record.Other, nil // MongoDB has letters
	}
	if l = record.ParseLevel(text); l != record.Other || len(text) == 0 {
		return l, nil
	}
	for i := range scales {
		if s := &scales[i]; s.name == n && s.word != "" && bytes.EqualFold(text, []byte(s.word)) {
			return record.Info, nil
		}
	}
	return record.Other, nil
}

// common has the scales of numbers that have no name of their own, by the number.
var common = func() (by [64]struct {
	level record.Level
	scale *Scale
}) {
	for i := range scales {
		for _, in := range scales[i].spans {
			for v := in.from; v <= in.to && scales[i].name == 0; v++ {
				by[v].level, by[v].scale = in.level, &scales[i]
			}
		}
	}
	return by
}()

// scaled is [Set.Level] for a number.
func (m *Set) scaled(n Name, v int) (l record.Level, by *Scale) {
	if uint(v) < uint(len(common)) && m[kindBeside/PerKind] == 0 && n < nameSeverityNum && common[v].scale != nil {
		return common[v].level, common[v].scale // as nearly all are
	}
	for i := range scales {
		s := &scales[i]
		if s.name != n && s.name != 0 || !m.some(s.beside) || !m.some(s.also) {
			continue
		}
		for _, in := range s.spans {
			if v >= in.from && v <= in.to {
				return in.level, s
			}
		}
		if !s.open {
			break
		}
	}
	return record.Other, nil
}

// Number reads a text that is a number. A number with a fraction that is not 0 is on no scale.
func Number(text []byte) (v int, number bool) {
	if len(text) == 2 && record.IsDigit(text[0]) && record.IsDigit(text[1]) { // as nearly all are
		return int(text[0]-'0')*10 + int(text[1]-'0'), true
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 || !record.IsDigit(text[0]) && (text[0] != '-' || len(text) < 2 || !record.IsDigit(text[1])) {
		return 0, false
	}
	if v, err := strconv.Atoi(string(text)); err == nil {
		return v, true
	}
	f, err := strconv.ParseFloat(string(text), 64)
	switch {
	case err != nil:
		return 0, false
	case f != math.Trunc(f) || math.Abs(f) > math.MaxInt32:
		return math.MaxInt32, true
	}
	return int(f), true
}
