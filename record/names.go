package record

import "slices"

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

// KnownNames are the names that are tried in every record. Those of [conditions] are tried in some.
func KnownNames() Names {
	names := allNames()
	for _, list := range []*[]string{&names.Time, &names.Level, &names.Message, &names.Service} {
		*list = slices.DeleteFunc(*list, func(key string) bool { return isConditional(nameOf([]byte(key))) })
	}
	return names
}

// allNames are the names of [KnownNames] and those of [conditions].
func allNames() Names {
	return Names{
		Time: []string{
			"ts", "time", "timestamp", "@timestamp", "date", "_time", "@t", "datetime", "asctime",
			"timemillis", "instant", "lasttimestamp", "deprecatedlasttimestamp", "eventtime", "event_time",
			"logtime", "log_time", "time_iso8601", "timereported", "timegenerated", "timecreated",
			"system_time", "stagetimestamp", "requestreceivedtimestamp", "__realtime_timestamp", "t",
			"time_local", "date_time", "syslogtimestamp", "syslog_timestamp", "timestampseconds", "msec",
			"firsttimestamp", "start_time", "created", "activitydatetime", "createddatetime", "eventtimestamp",
		},
		Level: []string{
			"level", "severity", "lvl", "log.level", "@l", "@level", "loglevel", "log_level", "levelname",
			"level_name", "leveltext", "leveldisplayname", "severity_text", "severitytext",
			"severity_label", "syslogseverity-text", "syslog_severity", "eventlevelname", "error_severity",
			"detected_level", "severity_number", "severitynumber", "levelno", "level_value",
			"severitylevel", "eventlevel", "syslogseverity", "syslog_severity_code", "priority", "label",
			"s", "type",
		},
		Message: []string{
			"msg", "message", "log", "_msg", "@m", "@message", "renderedmessage", "rendered_message",
			"short_message", "textpayload", "logmessage", "rawdata", "syslogmessage", "logentry",
			"rendereddescription", "event", "@mt", "messagetemplate", "content", "note", "description",
			"text",
		},
		Service: []string{
			"service", "service.name", "app", "service_name", "_service_name", "servicename", "application",
			"app_name", "appname", "application_name", "applicationname", "container_name",
			"syslog_identifier", "programname",
		},
	}
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

// longestName is the length of the longest name.
const longestName = 24

// lookupName recognises a key in any case.
func lookupName(key []byte) name {
	if len(key) > longestName {
		return 0
	}
	if n := nameOf(key); n != 0 {
		return n
	}
	var buf [longestName]byte
	upper := false
	for i, c := range key {
		if c-'A' < 26 {
			c |= 0x20
			upper = true
		}
		buf[i] = c
	}
	if !upper {
		return 0
	}
	return nameOf(buf[:len(key)])
}

// nameOf recognises a key in lower case.
func nameOf(key []byte) name {
	switch n := len(key); {
	case n > 15:
		return longestNameOf(key)
	case n > 13:
		return longerNameOf(key)
	case n > 10:
		return longNameOf(key)
	}
	switch string(key) {
	case "ts":
		return kindTime + 0
	case "time":
		return kindTime + 1
	case "timestamp":
		return kindTime + 2
	case "@timestamp":
		return kindTime + 3
	case "date":
		return kindTime + 4
	case "_time":
		return kindTime + 5
	case "@t":
		return kindTime + 6
	case "datetime":
		return kindTime + 7
	case "asctime":
		return kindTime + 8
	case "timemillis":
		return kindTime + 9
	case "instant":
		return kindTime + 10
	case "eventtime":
		return kindTime + 13
	case "event_time":
		return kindTime + 14
	case "logtime":
		return kindTime + 15
	case "log_time":
		return kindTime + 16
	case "t":
		return kindTime + 25
	case "time_local":
		return kindTime + 26
	case "date_time":
		return kindTime + 27
	case "msec":
		return kindTime + 31
	case "start_time":
		return kindTime + 33
	case "created":
		return kindTime + 34
	case "level":
		return kindLevel + 0
	case "severity":
		return kindLevel + 1
	case "lvl":
		return kindLevel + 2
	case "log.level":
		return kindLevel + 3
	case "@l":
		return kindLevel + 4
	case "@level":
		return kindLevel + 5
	case "loglevel":
		return kindLevel + 6
	case "log_level":
		return kindLevel + 7
	case "levelname":
		return kindLevel + 8
	case "level_name":
		return kindLevel + 9
	case "leveltext":
		return kindLevel + 10
	case "levelno":
		return kindLevel + 22
	case "eventlevel":
		return kindLevel + 25
	case "priority":
		return kindLevel + 28
	case "label":
		return kindLevel + 29
	case "s":
		return kindLevel + 30
	case "type":
		return kindLevel + 31
	case "msg":
		return kindMsg + 0
	case "message":
		return kindMsg + 1
	case "log":
		return kindMsg + 2
	case "_msg":
		return kindMsg + 3
	case "@m":
		return kindMsg + 4
	case "@message":
		return kindMsg + 5
	case "logmessage":
		return kindMsg + 10
	case "rawdata":
		return kindMsg + 11
	case "logentry":
		return kindMsg + 13
	case "event":
		return kindMsg + 15
	case "@mt":
		return kindMsg + 16
	case "content":
		return kindMsg + 18
	case "note":
		return kindMsg + 19
	case "text":
		return kindMsg + 21
	case "service":
		return kindService + 0
	case "app":
		return kindService + 2
	case "app_name":
		return kindService + 7
	case "appname":
		return kindService + 8
	case "fields":
		return kindParent + 0
	case "record":
		return kindParent + 2
	case "kubernetes":
		return kindParent + 3
	case "context":
		return kindParent + 4
	case "body":
		return kindParent + 5
	case "_meta":
		return kindParent + 6
	case "_logmeta":
		return kindParent + 7
	case "info":
		return kindParent + 8
	case "object":
		return kindParent + 9
	case "channel":
		return kindBeside + 0
	case "event_id":
		return kindBeside + 1
	case "eventid":
		return kindBeside + 2
	case "reqid":
		return kindBeside + 3
	case "category":
		return kindBeside + 4
	case "regarding":
		return kindBeside + 8
	case "kind":
		return kindBeside + 9
	case "verb":
		return kindBeside + 10
	}
	return 0
}

// longNameOf is nameOf for keys of 11 to 13 bytes.
func longNameOf(key []byte) name {
	switch string(key) {
	case "lasttimestamp":
		return kindTime + 11
	case "time_iso8601":
		return kindTime + 17
	case "timereported":
		return kindTime + 18
	case "timegenerated":
		return kindTime + 19
	case "timecreated":
		return kindTime + 20
	case "system_time":
		return kindTime + 21
	case "severity_text":
		return kindLevel + 12
	case "severitytext":
		return kindLevel + 13
	case "level_value":
		return kindLevel + 23
	case "severitylevel":
		return kindLevel + 24
	case "short_message":
		return kindMsg + 8
	case "textpayload":
		return kindMsg + 9
	case "syslogmessage":
		return kindMsg + 12
	case "description":
		return kindMsg + 20
	case "service.name":
		return kindService + 1
	case "service_name":
		return kindService + 3
	case "_service_name":
		return kindService + 4
	case "servicename":
		return kindService + 5
	case "application":
		return kindService + 6
	case "programname":
		return kindService + 13
	case "jsonpayload":
		return kindParent + 1
	case "response_code":
		return kindBeside + 5
	case "upstream_host":
		return kindBeside + 6
	case "servicesource":
		return kindBeside + 14
	}
	return 0
}

// longerNameOf is nameOf for keys of 14 and 15 bytes.
func longerNameOf(key []byte) name {
	switch string(key) {
	case "stagetimestamp":
		return kindTime + 22
	case "syslogtimestamp":
		return kindTime + 28
	case "firsttimestamp":
		return kindTime + 32
	case "severity_label":
		return kindLevel + 14
	case "syslog_severity":
		return kindLevel + 16
	case "eventlevelname":
		return kindLevel + 17
	case "error_severity":
		return kindLevel + 18
	case "detected_level":
		return kindLevel + 19
	case "severity_number":
		return kindLevel + 20
	case "severitynumber":
		return kindLevel + 21
	case "syslogseverity":
		return kindLevel + 26
	case "renderedmessage":
		return kindMsg + 6
	case "messagetemplate":
		return kindMsg + 17
	case "applicationname":
		return kindService + 10
	case "container_name":
		return kindService + 11
	case "involvedobject":
		return kindBeside + 7
	case "timestampnanos":
		return kindBeside + 12
	case "createddatetime":
		return kindTime + 36
	case "eventtimestamp":
		return kindTime + 37
	case "appdisplayname":
		return kindBeside + 13
	}
	return 0
}

// longestNameOf is nameOf for longer keys.
func longestNameOf(key []byte) name {
	switch string(key) {
	case "deprecatedlasttimestamp":
		return kindTime + 12
	case "requestreceivedtimestamp":
		return kindTime + 23
	case "__realtime_timestamp":
		return kindTime + 24
	case "syslog_timestamp":
		return kindTime + 29
	case "timestampseconds":
		return kindTime + 30
	case "activitydatetime":
		return kindTime + 35
	case "leveldisplayname":
		return kindLevel + 11
	case "syslogseverity-text":
		return kindLevel + 15
	case "syslog_severity_code":
		return kindLevel + 27
	case "rendered_message":
		return kindMsg + 7
	case "rendereddescription":
		return kindMsg + 14
	case "application_name":
		return kindService + 9
	case "syslog_identifier":
		return kindService + 12
	case "common_properties":
		return kindParent + 10
	case "objectapiversion":
		return kindBeside + 11
	}
	return 0
}
