// Package names has the table of the keys that loggers have for the time, the level, the message and the
// service of a record, with what their values mean: [Lookup] recognises a key, [Set.Level] reads the
// level of a value under its name.
package names

import "blobtail/record"

// A Name is a recognised key: its kind, and its place in the order of that kind.
type Name = record.Tag

// A Part is one of the parts of a head.
type Part uint8

// The parts, in the order of the kinds of names.
const (
	Time Part = iota
	Level
	Message
	Service
	NumParts
)

// First is the first name of a part.
func (p Part) First() Name { return Name(p+1) * PerKind }

// Is reports whether a name is one of a part.
func (p Part) Is(n Name) bool { return n/PerKind == Name(p+1) }

// The kinds of names. 0 is none.
const (
	kindTime Name = (iota + 1) * PerKind
	kindLevel
	kindMsg
	kindService
	kindParent // objects that may have members of the other kinds
	kindBeside // names that give others beside them a meaning

	PerKind = record.TagsPerKind // more than a kind has names
)

// knownNames are the recognised keys in lower case, by kind, in the order in which they are tried. The number
// of a name is its place here.
var knownNames = [record.TagKinds][]string{
	kindTime / PerKind: {
		"ts", "time", "timestamp", "@timestamp", "date", "_time", "@t", "datetime", "asctime",
		"timemillis", "instant", "lasttimestamp", "deprecatedlasttimestamp", "eventtime", "event_time",
		"logtime", "log_time", "time_iso8601", "timereported", "timegenerated", "timecreated",
		"system_time", "stagetimestamp", "requestreceivedtimestamp", "__realtime_timestamp", "t",
		"time_local", "date_time", "syslogtimestamp", "syslog_timestamp", "timestampseconds", "msec",
		"firsttimestamp", "start_time", "created", "activitydatetime", "createddatetime", "eventtimestamp",
		"published",
	},
	kindLevel / PerKind: {
		"level", "severity", "lvl", "log.level", "@l", "@level", "loglevel", "log_level", "levelname",
		"level_name", "leveltext", "leveldisplayname", "severity_text", "severitytext",
		"severity_label", "syslogseverity-text", "syslog_severity", "eventlevelname", "error_severity",
		"detected_level", "severity_number", "severitynumber", "levelno", "level_value",
		"severitylevel", "eventlevel", "syslogseverity", "syslog_severity_code", "priority", "label",
		"s", "type",
	},
	kindMsg / PerKind: {
		"msg", "message", "log", "_msg", "@m", "@message", "renderedmessage", "rendered_message",
		"short_message", "textpayload", "logmessage", "rawdata", "syslogmessage", "logentry",
		"rendereddescription", "event", "@mt", "messagetemplate", "content", "note", "description",
		"displaymessage", "text",
	},
	kindService / PerKind: {
		"service", "service.name", "app", "service_name", "_service_name", "servicename", "application",
		"app_name", "appname", "application_name", "applicationname", "container_name",
		"syslog_identifier", "programname",
	},
	kindParent / PerKind: {
		"fields", "jsonpayload", "record", "kubernetes", "context", "body", "_meta", "_logmeta", "info",
		"object", "common_properties",
	},
	kindBeside / PerKind: {
		"channel", "event_id", "eventid", "reqid", "category", "response_code", "upstream_host",
		"involvedobject", "regarding", "kind", "verb", "objectapiversion", "timestampnanos",
		"appdisplayname", "servicesource",
	},
}

// Known returns the keys of a part that are tried in every record, in their order. Those of [conditions]
// are tried in some.
func Known(part Part) (all []string) {
	first := part.First()
	for place, key := range knownNames[first/PerKind] {
		if !isConditional(first + Name(place)) {
			all = append(all, key)
		}
	}
	return all
}

// The names that have rules of their own. The others are their place alone.
const (
	Ts               = kindTime
	Date             = kindTime + 4  // a guess if it is a text, as of Fluent Bit and of a birthday
	Created          = kindTime + 34 // a guess if it is no number with a fraction
	AtT              = kindTime + 6
	TimestampSeconds = kindTime + 30
	Realtime         = kindTime + 24 // of journald
	LevelObject      = kindLevel
	LogLevel         = kindLevel + 9 // the last one that may have a word of the sender's own
	nameSeverityNum  = kindLevel + 20
	Priority         = kindLevel + 28 // from here on a string is needed, and the field stays
	S                = kindLevel + 30
	Msg              = kindMsg
	Log              = kindMsg + 2 // the last one that may be no string
	AtM              = kindMsg + 4
	LogMessage       = kindMsg + 10
	Event            = kindMsg + 15
	AtMt             = kindMsg + 16
	Text             = kindMsg + 22 // of loguru, beside the record with the message
	ServiceObject    = kindService
	ServiceName      = kindService + 1
	App              = kindService + 2 // the last one that is kept under another name
	nameServiceName2 = kindService + 3
	nameContainer    = kindService + 11
	Kind             = kindBeside + 9 // counts if it is Event
	TimestampNanos   = kindBeside + 12
	Fields           = kindParent // the first of the objects with members for the head
	Kubernetes       = kindParent + 3
)

// Mapped is of fields that a mapping names, and no known name.
const Mapped Name = 1

// nameSlots has each name at the first free place from its hash on.
var nameSlots = func() (slots [1 << nameBits]Name) {
	for kind, keys := range knownNames {
		for place, key := range keys {
			at := record.Hash([]byte(key)) >> (64 - nameBits)
			for slots[at] != 0 {
				at = (at + 1) % (1 << nameBits)
			}
			slots[at] = Name(kind*PerKind + place)
		}
	}
	return slots
}()

const nameBits = 10

// Lookup recognises a key in any case; 0 if it is none.
func Lookup(key []byte) Name { return At(key, record.Hash(key)) }

// key is the name of a key, which is in the table: TestKeys holds that.
func key(text string) Name { return Lookup([]byte(text)) }

func keys(texts ...string) (all []Name) {
	for _, text := range texts {
		all = append(all, key(text))
	}
	return all
}

// At is [Lookup] for a key with its hash.
func At(key []byte, hash uint64) Name {
	for at := hash >> (64 - nameBits); ; at = (at + 1) % (1 << nameBits) {
		n := nameSlots[at]
		if n == 0 {
			return 0
		}
		if known := knownNames[n/PerKind][n%PerKind]; len(known) == len(key) && record.IsFolded(key, known) {
			return n
		}
	}
}
