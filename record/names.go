package record

// A name is a recognised key: its kind, and its place in the order of that kind.
type name uint8

// The kinds of names. 0 is none.
const (
	kindTime name = (iota + 1) * perKind
	kindLevel
	kindMsg
	kindService
	kindParent // objects that may have members of the other kinds
	numNames

	perKind  = 32 // more than a kind has names
	numKinds = numNames / perKind
)

// Names are the names of the fields that may have the time, the level, the message or the
// service of a record, in the order in which they are tried. Their case does not matter.
type Names struct{ Time, Level, Message, Service []string }

// KnownNames are the names that are tried in every record.
func KnownNames() Names {
	return Names{
		Time:    []string{"ts", "time", "timestamp", "@timestamp", "date", "_time", "@t", "datetime", "asctime", "timemillis", "instant", "eventtime", "event_time", "logtime", "log_time", "time_iso8601", "timegenerated", "stagetimestamp", "requestreceivedtimestamp", "__realtime_timestamp", "t", "time_local", "created"},
		Level:   []string{"level", "severity", "lvl", "log.level", "@l", "@level", "loglevel", "log_level", "levelname", "level_name", "severity_text", "severitytext", "error_severity", "detected_level", "severity_number", "severitynumber", "levelno", "level_value", "priority", "label", "s"},
		Message: []string{"msg", "message", "log", "_msg", "@m", "@message", "renderedmessage", "rendered_message", "short_message", "textpayload", "event", "@mt", "messagetemplate", "content", "text"},
		Service: []string{"service", "service.name", "app", "service_name", "_service_name", "servicename", "application", "app_name", "appname", "application_name", "applicationname", "container_name", "syslog_identifier", "programname"},
	}
}

// The names that have rules of their own. The others are their place alone.
const (
	nameTs           = kindTime
	nameAtT          = kindTime + 6
	nameDate         = kindTime + 4  // a guess if it is a text, as of Fluent Bit and of a birthday
	nameCreated      = kindTime + 22 // a guess if it is no number with a fraction
	nameLogLevel     = kindLevel + 9 // the last one that may have a word of the sender's own
	nameSeverityNum  = kindLevel + 14
	nameSeverityNum2 = kindLevel + 15
	nameLevelNo      = kindLevel + 16
	nameLevelValue   = kindLevel + 17
	namePriority     = kindLevel + 18 // from here on a string is needed, and the field stays
	nameS            = kindLevel + 20
	nameLog          = kindMsg + 2 // the last one that may be no string
	nameAtM          = kindMsg + 4
	nameAtMt         = kindMsg + 11
	nameText         = kindMsg + 14 // of loguru, beside the record with the message
	nameService      = kindService
	nameServiceName  = kindService + 1
	nameApp          = kindService + 2 // the last one that is kept under another name
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
		return kindTime + 11
	case "event_time":
		return kindTime + 12
	case "logtime":
		return kindTime + 13
	case "log_time":
		return kindTime + 14
	case "time_iso8601":
		return kindTime + 15
	case "timegenerated":
		return kindTime + 16
	case "stagetimestamp":
		return kindTime + 17
	case "requestreceivedtimestamp":
		return kindTime + 18
	case "__realtime_timestamp":
		return kindTime + 19
	case "t":
		return kindTime + 20
	case "time_local":
		return kindTime + 21
	case "created":
		return kindTime + 22
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
	case "severity_text":
		return kindLevel + 10
	case "severitytext":
		return kindLevel + 11
	case "error_severity":
		return kindLevel + 12
	case "detected_level":
		return kindLevel + 13
	case "severity_number":
		return kindLevel + 14
	case "severitynumber":
		return kindLevel + 15
	case "levelno":
		return kindLevel + 16
	case "level_value":
		return kindLevel + 17
	case "priority":
		return kindLevel + 18
	case "label":
		return kindLevel + 19
	case "s":
		return kindLevel + 20
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
	case "renderedmessage":
		return kindMsg + 6
	case "rendered_message":
		return kindMsg + 7
	case "short_message":
		return kindMsg + 8
	case "textpayload":
		return kindMsg + 9
	case "event":
		return kindMsg + 10
	case "@mt":
		return kindMsg + 11
	case "messagetemplate":
		return kindMsg + 12
	case "content":
		return kindMsg + 13
	case "text":
		return kindMsg + 14
	case "service":
		return kindService + 0
	case "service.name":
		return kindService + 1
	case "app":
		return kindService + 2
	case "service_name":
		return kindService + 3
	case "_service_name":
		return kindService + 4
	case "servicename":
		return kindService + 5
	case "application":
		return kindService + 6
	case "app_name":
		return kindService + 7
	case "appname":
		return kindService + 8
	case "application_name":
		return kindService + 9
	case "applicationname":
		return kindService + 10
	case "container_name":
		return kindService + 11
	case "syslog_identifier":
		return kindService + 12
	case "programname":
		return kindService + 13
	case "fields":
		return kindParent + 0
	case "jsonpayload":
		return kindParent + 1
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
	}
	return 0
}
