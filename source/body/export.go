package body

import (
	"slices"
	"strings"

	"blobtail/record"
	"blobtail/source/tokens"
)

// An export is the form of an object around a batch of records, as platforms deliver them and APIs
// answer. An object with any other member is a record.
type export struct {
	batch string   // the member with the records, an array
	needs []string // one of these is there too; empty: none has to be
	keeps []string // members that become fields of each record
	drops []string // members about the list or the answer, which are left out
	texts bool     // the first record may be a text
}

// exports is the table of docs/SENDING.md#exports.
func exports() []export {
	return []export{
		{batch: "logEvents", keeps: []string{
			"owner", "logGroup", "logStream", "messageType", "subscriptionFilters", "policyLevel"}},
		{batch: "events", drops: []string{"nextForwardToken", "nextBackwardToken", "nextToken", "searchedLogStreams"}},
		{batch: "Events", drops: []string{"NextToken"}},
		{batch: "Records"},
		{batch: "records"},
		{batch: "items", needs: []string{"kind", "apiVersion"}, drops: []string{"metadata"}},
		{batch: "value", drops: []string{
			"@odata.context", "@odata.count", "@odata.nextLink", "@odata.deltaLink", "odata.metadata", "odata.nextLink", "nextLink"}},
		{batch: "entries", drops: []string{"nextPageToken"}},
		{batch: "logs", texts: true},
	}
}

// exportLetters are those that the members of exports begin with. Most objects begin with another.
const exportLetters = "@ENRaeiklmnoprsv"

// isOfExport reports whether a member is one of an export.
func isOfExport(key []byte) bool {
	switch string(key) {
	case "logEvents", "owner", "logGroup", "logStream", "messageType", "subscriptionFilters", "policyLevel",
		"events", "nextForwardToken", "nextBackwardToken", "nextToken", "searchedLogStreams", "Events", "NextToken",
		"Records", "records", "items", "kind", "apiVersion", "metadata", "value", "@odata.context", "@odata.count",
		"@odata.nextLink", "@odata.deltaLink", "odata.metadata", "odata.nextLink", "nextLink", "entries", "nextPageToken", "logs":
		return true
	}
	return false
}

// A part is a member of an object: its place in the object, and the text from its key on.
type part struct {
	key        string
	whole      []byte
	value, end int
}

// export passes the records of an export that begins at off and ends before limit. ok is false if no
// export is there. line says that nothing may be behind it.
func (o *objects) export(off, limit int, line bool) (end int, more, ok bool) {
	if b := o.body[off:limit]; len(b) < 3 || b[0] != '{' || b[1] == '"' && strings.IndexByte(exportLetters, b[2]) < 0 {
		return 0, false, false
	}
	c := tokens.Cursor{Src: o.body[:limit], At: off}
	var parts []part
	for has, _ := c.Enter('{'); has; has = c.More('{') {
		c.Next()
		from := c.At
		key := c.Key()
		if !isOfExport(key) {
			return 0, false, false
		}
		c.Next()
		n := record.ValueLen(c.Src[c.At:])
		if n == 0 {
			return 0, false, false
		}
		parts = append(parts, part{key: string(key), whole: o.body[from : c.At+n], value: c.At, end: c.At + n})
		c.At += n
	}
	if c.Fault != "" || !atEnd(o.body, c.At) || line && skipSpace(o.body[:limit], c.At) < limit {
		return 0, false, false
	}
	for _, e := range exports() {
		if at, kept := e.find(o.body, parts); at >= 0 && !o.to.Mapped(nil, e.batch) {
			return c.At, decodeArray(o.body[:parts[at].end], parts[at].value, &batch{Sink: o.to, kept: kept}), true
		}
	}
	return 0, false, false
}

// find returns the index of the part with the records, -1 if the parts are not those of the export, and
// the members that each record keeps, with a comma before each.
func (e *export) find(body []byte, parts []part) (at int, kept []byte) {
	const most = 4 << 10 // bytes that each record gets
	needed := len(e.needs) == 0
	at = -1
	for i, p := range parts {
		switch {
		case p.key == e.batch && at < 0 && body[p.value] == '[':
			at = i
		case slices.Contains(e.needs, p.key):
			needed = true
		case slices.Contains(e.keeps, p.key):
			kept = append(append(kept, ','), p.whole...)
		case !slices.Contains(e.drops, p.key):
			return -1, nil
		}
	}
	if at < 0 || !needed || len(kept) > most {
		return -1, nil
	}
	switch first := body[skipSpace(body, parts[at].value+1)]; {
	case first == '{', first == ']', first == '"' && e.texts:
		return at, kept
	}
	return -1, nil
}

// A batch is the sink of the records of an export. A text is the message of an object.
type batch struct {
	Sink
	kept   []byte
	object []byte // the element scanned last, with the members that it gets; nil: it gets none
}

// Scan checks an element, as in [Sink].
func (s *batch) Scan(src []byte) (n int, err error) {
	if s.object = nil; src[0] != '{' || len(s.kept) > 0 {
		n = record.ValueLen(src)
	}
	if n == 0 {
		return s.Sink.Scan(src)
	}
	head, inner, kept := `{"msg":`, src[:n], s.kept
	if src[0] == '{' {
		head, inner = "{", src[1:n-1]
		if skipSpace(inner, 0) == len(inner) {
			kept = kept[1:] // the comma
		}
	}
	s.object = slices.Concat([]byte(head), inner, kept, []byte("}"))
	_, err = s.Sink.Scan(s.object)
	return n, err
}

// Object accepts the element scanned last, as in [Sink].
func (s *batch) Object(raw []byte, end int) bool {
	if s.object != nil {
		raw = s.object
	}
	return s.Sink.Object(raw, end)
}
