package body

import (
	"bytes"
	"slices"

	"blobtail/record"
	"blobtail/record/text"
	"blobtail/source/tokens"
)

// An exportPart is what a member is in an export: an object around a batch of records, as platforms
// deliver them and APIs answer. An object with any other member is a record.
type exportPart uint8

const (
	ofBatch  exportPart = iota // the records, an array of objects
	ofTexts                    // the records, an array of objects and texts
	ofNeeded                   // it says that this is an export, and is left out
	ofEach                     // a field of each record
	ofPage                     // about the list or the answer: it is left out
)

// exportMember is the table of docs/send/native.md#exports. of is the export that has the member, by a word
// for it; "" for none. An export has no member of another.
func exportMember(key []byte) (of string, part exportPart) {
	switch string(key) {
	case "logEvents":
		return "subscription", ofBatch
	case "owner", "logGroup", "logStream", "messageType", "subscriptionFilters", "policyLevel":
		return "subscription", ofEach
	case "events":
		return "CloudWatch", ofBatch
	case "nextForwardToken", "nextBackwardToken", "nextToken", "searchedLogStreams":
		return "CloudWatch", ofPage
	case "Records":
		return "CloudTrail", ofBatch
	case "Events":
		return "LookupEvents", ofBatch
	case "NextToken":
		return "LookupEvents", ofPage
	case "records":
		return "Azure", ofBatch
	case "items":
		return "Kubernetes", ofBatch
	case "kind", "apiVersion":
		return "Kubernetes", ofNeeded
	case "metadata":
		return "Kubernetes", ofPage
	case "value":
		return "OData", ofBatch
	case "nextLink", "odata.metadata", "odata.nextLink", "odata.count":
		return "OData", ofPage
	case "entries":
		return "Google", ofBatch
	case "nextPageToken":
		return "Google", ofPage
	case "logs":
		return "programs", ofTexts
	}
	if bytes.HasPrefix(key, []byte("@odata.")) {
		return "OData", ofPage
	}
	return "", ofPage
}

// export passes the records of an export that begins at off and ends before limit. ok is false if none
// is there. line says that nothing may be behind it.
func (o *objects) export(off, limit int, line bool) (end int, more, ok bool) {
	const most = 4 << 10                                             // bytes that each record gets
	if limit-off < 3 || o.body[off] != '{' || o.body[off+2] == 't' { // as in {"ts": and {"time":
		return 0, false, false
	}
	b := batch{Sink: o.to}
	c := tokens.Cursor{Src: o.body[:limit], At: off}
	list, last, is, needed := 0, 0, "", false
	for has, _ := c.Enter('{'); has; has = c.More('{') {
		c.Next()
		from := c.At
		key := c.Key()
		of, part := exportMember(key)
		if of == "" || is != "" && of != is {
			return 0, false, false
		}
		c.Next()
		at, n := c.At, record.ValueLen(c.Src[c.At:])
		c.At += n
		switch is = of; {
		case n == 0, part <= ofTexts && (list > 0 || !begins(c.Src[at:], part) || o.to.Mapped(nil, string(key))):
			return 0, false, false
		case part <= ofTexts:
			list, last = at, c.At
		case part == ofEach:
			b.each = append(append(b.each, ','), c.Src[from:c.At]...)
		case part == ofNeeded:
			needed = true
		}
	}
	if c.Fault != "" || list == 0 || is == "Kubernetes" && !needed || len(b.each) > most {
		return 0, false, false
	}
	if !atEnd(o.body, c.At) || line && text.SkipSpace(c.Src, c.At) < limit {
		return 0, false, false
	}
	return c.At, decodeArray(o.body[:last], list, &b), true
}

// begins reports whether a value may be the array of a part: the first element decides.
func begins(value []byte, part exportPart) bool {
	first := value[min(text.SkipSpace(value, 1), len(value)-1)]
	return value[0] == '[' && (first == '{' || first == ']' || first == '"' && part == ofTexts)
}

// A batch is the sink of the records of an export. A text is the message of an object.
type batch struct {
	Sink
	each   []byte // the members that each record gets, with a comma before each
	object []byte // the element scanned last, with these; nil: it is as it was
}

// Scan checks an element, as in [Sink].
func (b *batch) Scan(src []byte) (n int, err error) {
	if b.object = nil; src[0] == '"' || len(b.each) > 0 {
		n = record.ValueLen(src)
	}
	switch {
	case n == 0:
		return b.Sink.Scan(src)
	case src[0] == '"':
		b.object = slices.Concat([]byte(`{"msg":`), src[:n], b.each, []byte("}"))
	case text.SkipSpace(src, 1) == n-1:
		b.object = slices.Concat([]byte("{"), b.each[1:], []byte("}"))
	default:
		b.object = slices.Concat(src[:n-1], b.each, []byte("}"))
	}
	_, err = b.Sink.Scan(b.object)
	return n, err
}

// Object accepts the element scanned last, as in [Sink].
func (b *batch) Object(raw []byte, end int) bool {
	if b.object != nil {
		raw = b.object
	}
	return b.Sink.Object(raw, end)
}
