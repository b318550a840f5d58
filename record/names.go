package record

import "encoding/binary"

// A name is a recognised key: its kind, and its place in the order of that kind.
type name uint16

// The kinds of names. 0 is none.
const (
	kindTime name = (iota + 1) * perKind
	kindLevel
	kindMsg
	kindService
	kindParent // objects that may have members of the other kinds
	kindBeside // names that give others beside them a meaning
	numNames

	perKind  = 64 // more than a kind has names
	numKinds = numNames / perKind
)

// Names are the names of the fields that may have the time, the level, the message or the
// service of a record, in the order in which they are tried. Their case does not matter.
type Names struct{ Time, Level, Message, Service []string }

// knownNames are the recognised keys in lower case, by kind, in the order in which they are tried. The number
// of a name is its place here.
var knownNames = [numKinds][]string{
	kindTime / perKind: {
		"ts", "time", "timestamp", "@timestamp", "date", "_time", "@t", "datetime", "asctime",
		"timemillis", "instant", "lasttimestamp", "deprecatedlasttimestamp", "eventtime", "event_time",
		"logtime", "log_time", "time_iso8601", "timereported", "timegenerated", "timecreated",
		"system_time", "stagetimestamp", "requestreceivedtimestamp", "__realtime_timestamp", "t",
		"time_local", "date_time", "syslogtimestamp", "syslog_timestamp", "timestampseconds", "msec",
		"firsttimestamp", "start_time", "created", "activitydatetime", "createddatetime", "eventtimestamp",
	},
	kindLevel / perKind: {
		"level", "severity", "lvl", "log.level", "@l", "@level", "loglevel", "log_level", "levelname",
		"level_name", "leveltext", "leveldisplayname", "severity_text", "severitytext",
		"severity_label", "syslogseverity-text", "syslog_severity", "eventlevelname", "error_severity",
		"detected_level", "severity_number", "severitynumber", "levelno", "level_value",
		"severitylevel", "eventlevel", "syslogseverity", "syslog_severity_code", "priority", "label",
		"s", "type",
	},
	kindMsg / perKind: {
		"msg", "message", "log", "_msg", "@m", "@message", "renderedmessage", "rendered_message",
		"short_message", "textpayload", "logmessage", "rawdata", "syslogmessage", "logentry",
		"rendereddescription", "event", "@mt", "messagetemplate", "content", "note", "description",
		"text",
	},
	kindService / perKind: {
		"service", "service.name", "app", "service_name", "_service_name", "servicename", "application",
		"app_name", "appname", "application_name", "applicationname", "container_name",
		"syslog_identifier", "programname",
	},
	kindParent / perKind: {
		"fields", "jsonpayload", "record", "kubernetes", "context", "body", "_meta", "_logmeta", "info",
		"object", "common_properties",
	},
	kindBeside / perKind: {
		"channel", "event_id", "eventid", "reqid", "category", "response_code", "upstream_host",
		"involvedobject", "regarding", "kind", "verb", "objectapiversion", "timestampnanos",
		"appdisplayname", "servicesource",
	},
}

// KnownNames are the names that are tried in every record. Those of [conditions] are tried in some.
func KnownNames() Names {
	always := func(kind name) (of []string) {
		for place, key := range knownNames[kind/perKind] {
			if !isConditional(kind + name(place)) {
				of = append(of, key)
			}
		}
		return of
	}
	return Names{Time: always(kindTime), Level: always(kindLevel), Message: always(kindMsg), Service: always(kindService)}
}

// The names that have rules of their own. The others are their place alone.
const (
	nameTs               = kindTime
	nameDate             = kindTime + 4  // a guess if it is a text, as of Fluent Bit and of a birthday
	nameCreated          = kindTime + 34 // a guess if it is no number with a fraction
	nameAtT              = kindTime + 6
	nameLastTimestamp    = kindTime + 11
	nameOldLastTimestamp = kindTime + 12
	nameTimestampSeconds = kindTime + 30
	nameFirstTimestamp   = kindTime + 32
	nameCreatedDateTime  = kindTime + 36
	nameStartTime        = kindTime + 33
	nameRealtime         = kindTime + 24 // of journald
	nameLevel            = kindLevel
	nameSeverity         = kindLevel + 1
	nameLogLevelNet      = kindLevel + 6
	nameLogLevel         = kindLevel + 9 // the last one that may have a word of the sender's own
	nameSeverityNum      = kindLevel + 20
	nameSeverityNum2     = kindLevel + 21
	nameLevelNo          = kindLevel + 22
	nameLevelValue       = kindLevel + 23
	nameSeverityLevel    = kindLevel + 24
	nameEventLevel       = kindLevel + 25
	namePriority         = kindLevel + 28 // from here on a string is needed, and the field stays
	nameS                = kindLevel + 30
	nameType             = kindLevel + 31
	nameLog              = kindMsg + 2 // the last one that may be no string
	nameAtM              = kindMsg + 4
	nameLogMessage       = kindMsg + 10
	nameEvent            = kindMsg + 15
	nameAtMt             = kindMsg + 16
	nameNote             = kindMsg + 19
	nameDescription      = kindMsg + 20
	nameText             = kindMsg + 21 // of loguru, beside the record with the message
	nameService          = kindService
	nameServiceName      = kindService + 1
	nameApp              = kindService + 2 // the last one that is kept under another name
	nameServiceName2     = kindService + 3
	nameContainer        = kindService + 11
	nameChannel          = kindBeside
	nameEventID          = kindBeside + 1
	nameEventID2         = kindBeside + 2
	nameReqID            = kindBeside + 3
	nameCategory         = kindBeside + 4
	nameResponseCode     = kindBeside + 5
	nameUpstreamHost     = kindBeside + 6
	nameInvolvedObject   = kindBeside + 7
	nameRegarding        = kindBeside + 8
	nameKind             = kindBeside + 9 // counts if it is Event
	nameVerb             = kindBeside + 10
	nameObjectVersion    = kindBeside + 11
	nameTimestampNanos   = kindBeside + 12
	nameAppDisplayName   = kindBeside + 13
	nameServiceSource    = kindBeside + 14
)

// nameMapped is of fields that a [Mapping] names, and no known name.
const nameMapped name = 1

// nameSlots has each name at the first free place from its hash on.
var nameSlots = func() (slots [1 << nameBits]name) {
	for kind, keys := range knownNames {
		for place, key := range keys {
			at := hashKey([]byte(key), firstWord([]byte(key))) >> (64 - nameBits)
			for slots[at] != 0 {
				at = (at + 1) % (1 << nameBits)
			}
			slots[at] = name(kind*perKind + place)
		}
	}
	return slots
}()

const nameBits = 10

// hashKey is a hash of a key, the same in any case. word has its first eight bytes.
func hashKey(key []byte, word uint64) uint64 {
	const lower = 0x2020202020202020
	h := word | lower
	if n := len(key); n > 8 {
		h ^= (binary.LittleEndian.Uint64(key[n-8:]) | lower) * 3
	}
	return h * 0x9e3779b97f4a7c15
}

// lookupName recognises a key in any case.
func lookupName(key []byte) name { return nameAt(key, hashKey(key, firstWord(key))) }

// nameAt is lookupName for a key with its hash.
func nameAt(key []byte, hash uint64) name {
	for at := hash >> (64 - nameBits); ; at = (at + 1) % (1 << nameBits) {
		n := nameSlots[at]
		if n == 0 {
			return 0
		}
		if known := knownNames[n/perKind][n%perKind]; len(known) == len(key) && isFolded(key, known) {
			return n
		}
	}
}
