package formats

import (
	"bytes"
	"strings"

	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/record/times"
)

// A summary is the members of a resource log that make the head of its line. The values are
// those of a canonical line.
type summary struct {
	operation, result []byte // inside of strings
	text              []byte // that a program or a server wrote, inside of a string
	word, severity    []byte // the level by another spelling or in the properties, and of PostgreSQL
	code, status      []byte
	correlated        bool
	folded            bool // the properties may be the text of an object
}

// resource appends the line of a JSON object of Azure Monitor. made says that unfold made it.
func (t *Translator) resource(dst, entry []byte, made bool) (line []byte, stamp record.Stamp, err error) {
	n, err := t.parser.Scan(entry)
	if err != nil {
		if whole := t.unfold(entry); whole != nil && !made {
			return t.unfolded(dst, entry, whole)
		}
		return dst, stamp, &MalformedError{err.Error()}
	}
	if blanks(entry[n:]) < len(entry[n:]) {
		return dst, stamp, &MalformedError{"text behind the JSON object"}
	}
	t.scratch, stamp = t.parser.AppendLine(t.scratch[:0], &t.of)
	word := append(t.word[:0], t.parser.Level()...)
	t.word = word
	if !stamp.OwnTime {
		if stamp, err = t.otherTime(stamp); err != nil {
			return dst, stamp, err
		}
	}
	msg, ok := record.LineMsg(t.scratch)
	end := record.StringEnd(t.scratch, msg)
	if !ok || end < 0 {
		return dst, stamp, &MalformedError{"it has no canonical line"}
	}
	var s summary
	t.members = append(append(t.members[:0], '{'), bytes.TrimPrefix(t.scratch[end:], []byte(","))...)
	s.gather(t.members, true)
	if s.folded && !made {
		if whole := t.unfold(entry); whole != nil {
			return t.unfolded(dst, entry, whole)
		}
	}
	t.id, t.hasID = idOf(TrimEnd(entry)), s.correlated

	own := t.scratch[msg : end-1]
	level, kept := t.level(&s, word, own)
	stamp.Level = level
	dst = append(dst, `{"ts":"`...)
	dst = record.AppendTime(dst, stamp.Time)
	dst = append(dst, `","level":"`...)
	dst = append(dst, level.String()...)
	dst = append(dst, `","service":"`...)
	dst = append(dst, stamp.Service...)
	dst = append(dst, `","msg":"`...)
	if len(own) > 0 {
		dst = append(dst, own...)
	} else {
		dst = s.appendMessage(dst)
	}
	dst = append(dst, '"')
	if kept {
		dst = append(dst, `,"level.original":"`...)
		dst = record.AppendEscaped(dst, unquoted(word))
		dst = append(dst, '"')
	}
	return append(dst, t.scratch[end:]...), stamp, nil
}

// otherTime finds the time of an object that has none under a usual name and in a usual form:
// that of a member with a name in another case, or a date with the month first, else the hour
// of the blob. A date alone is the time if nothing else is, with a clock in another member.
func (t *Translator) otherTime(stamp record.Stamp) (record.Stamp, error) {
	var day, clock int64
	dated, clocked := false, false
	for key, value := range record.Fields(t.scratch) {
		if !isTimeName(key) {
			continue
		}
		switch ns, part := t.readTime(value); {
		case part == times.Full:
			stamp.Time, stamp.OwnTime = ns, true
			return stamp, nil
		case part == times.Date && !dated:
			day, dated = ns, true
		case part == times.Clock && !clocked:
			clock, clocked = ns, true
		}
	}
	switch {
	case dated && day+clock >= day: // within the range of times
		stamp.Time, stamp.OwnTime = day+clock, true
	case t.hour.IsZero():
		return stamp, &MalformedError{"it has no time"}
	default:
		stamp.Time = t.hour.UnixNano()
	}
	return stamp, nil
}

// readTime reads the time of a member, if it has one.
func (t *Translator) readTime(value []byte) (ns int64, part times.Part) {
	if record.IsString(value) {
		return t.times.Read(record.TextOf(value))
	}
	if ns, ok := meaning.ReadTime(value, 0); ok {
		return ns, times.Full
	}
	return 0, times.None
}

// isTimeName reports whether a member may have the time of a record, by its name in any case:
// services write time, Time, timeStamp and eventTimestamp.
func isTimeName(key []byte) bool {
	for _, name := range [...]string{"time", "timestamp", "@timestamp", "eventtime", "eventtimestamp", "timegenerated", "date"} {
		if strings.EqualFold(name, string(key)) {
			return true
		}
	}
	return false
}

// appendMessage appends the inside of a message: operation, result and text.
func (s *summary) appendMessage(dst []byte) []byte {
	from := len(dst)
	if bytes.HasSuffix(s.text, []byte(`\n`)) && !bytes.HasSuffix(s.text, []byte(`\\n`)) {
		s.text = s.text[:len(s.text)-2] // the line feed of a container's line
	}
	for i, part := range [...][]byte{s.operation, s.result, s.text} {
		if len(part) == 0 || i == 2 && bytes.Equal(part, s.result) {
			continue
		}
		if len(dst) > from {
			dst = append(dst, ' ')
		}
		dst = append(dst, part...)
	}
	return dst
}

// gather notes the members of an object. top says that it is the whole record; else it is its
// properties, in which services have texts and levels, some also the status or the request.
func (s *summary) gather(object []byte, top bool) {
	var properties []byte
	for key, value := range record.Fields(object) {
		switch string(key) {
		case "operationName", "OperationName":
			if top {
				s.operation = nameOf(value)
			}
		case "CsMethod", "EventName", "TaskName": // of App Service, and of Event Hubs
			if len(s.operation) == 0 {
				s.operation = content(value)
			}
		case "resultDescription", "ResultDescription":
			if top {
				s.result = content(value)
			}
		case "log", "Log", "message", "Message", "msg", "LogMessage", "LogEntry", "SyslogMessage", "RawData", "RenderedDescription",
			"CsUriStem":
			if len(s.text) == 0 {
				s.text = content(value)
			}
		case "correlationId", "CorrelationId":
			s.correlated = s.correlated || top && len(content(value)) > 0
		case "SeverityLevel":
			if s.word = value; len(value) == 1 && value[0]-'0' < 5 {
				s.word = []byte{'5' - (value[0] - '0')} // Application Insights counts upwards
			}
		case "Level", "level", "EventLevelName":
			if wordLevel(unquoted(s.word)) == record.Other {
				s.word = value
			}
		case "errorLevel":
			s.severity = value
		case "statusCode", "StatusCode", "httpStatusCode", "httpStatus", "ScStatus":
			if s.code == nil {
				s.code = unquoted(value)
			}
			if string(key) == "ScStatus" && len(s.result) == 0 {
				s.result = unquoted(value)
			}
		case "resultSignature":
			if top && s.code == nil && isStatus(unquoted(value)) {
				s.code = unquoted(value)
			}
		case "statusText", "resultType":
			if s.status == nil || isThrottled(value) {
				s.status = value
			}
		case "properties", "Properties":
			if value[0] == '{' {
				properties = value
			}
			s.folded = s.folded || top && len(value) > 2 && string(value[:2]) == `"{`
		}
	}
	if top && (s.code == nil || s.status == nil) { // else it is a request, such as one to storage
		s.gather(properties, false)
	}
}

// nameOf is the name of an operation. Old records of the activity log have an object.
func nameOf(value []byte) []byte {
	if len(value) > 0 && value[0] == '{' {
		value, _ = record.Lookup(value, "value")
	}
	return content(value)
}

// content is the inside of a string; nil for other values.
func content(value []byte) []byte {
	if !record.IsString(value) {
		return nil
	}
	return value[1 : len(value)-1]
}

// unquoted is a value without quotes.
func unquoted(value []byte) []byte {
	if record.IsString(value) {
		return value[1 : len(value)-1]
	}
	return value
}

// level is the level of a record by its words, else by its texts, its own message first, or else by
// its operation and status. kept says that its own word means nothing, and has to be kept.
func (t *Translator) level(s *summary, word, own []byte) (level record.Level, kept bool) {
	for _, text := range [...][]byte{word, s.word, s.severity} {
		if l := wordLevel(unquoted(text)); l != record.Other {
			return l, false
		}
	}
	text := unquoted(word)
	kept = len(text) > 0 && string(text) != "null"
	for _, text := range [...][]byte{own, s.text, s.result} {
		t.text = record.AppendUnescaped(t.text[:0], text)
		if _, l := t.parser.Seek(t.text, &meaning.Defaults{}, true); l != record.Other {
			return l, kept
		}
	}
	switch string(s.operation) {
	case "ErrorEvent": // of Azure SQL
		return record.Error, kept
	case "TimeoutEvent":
		return record.Warn, kept
	}
	return statusLevel(s.code, s.status), kept
}

// wordLevel is the level of a word. Numbers are those of .NET's EventLevel, which Azure's
// services use: 1 is critical and 5 verbose.
func wordLevel(text []byte) record.Level {
	if len(text) == 1 {
		switch text[0] {
		case '0', '4':
			return record.Info
		case '1':
			return record.Critical
		case '2':
			return record.Error
		case '3':
			return record.Warn
		case '5':
			return record.Trace
		}
	}
	return record.ParseLevel(text)
}

// statusLevel is the level of a request by its HTTP status and the word for it.
func statusLevel(code, status []byte) record.Level {
	switch {
	case isThrottled(status), string(code) == "429":
		return record.Warn
	case !isStatus(code):
		return record.Info
	case code[0] == '5':
		return record.Error
	case code[0] == '4':
		return record.Warn
	}
	return record.Info
}

// isThrottled reports whether the word for a status says that the service was too busy.
func isThrottled(status []byte) bool {
	return bytes.Contains(status, []byte("Throttl")) || bytes.Contains(status, []byte("ServerBusy"))
}

// isStatus reports whether a text is an HTTP status.
func isStatus(code []byte) bool {
	n, ok := wholeNumber(code)
	return ok && n >= 100 && n < 600
}
