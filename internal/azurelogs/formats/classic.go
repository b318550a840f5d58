package formats

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/record/times"
)

// classicFields are the names of the fields, in order; version 1.0 has the first 30.
func classicFields() []string {
	return []string{
		"version-number", "request-start-time", "operation-type", "request-status", "http-status-code",
		"end-to-end-latency-in-ms", "server-latency-in-ms", "authentication-type", "requester-account-name", "owner-account-name",
		"service-type", "request-url", "requested-object-key", "request-id-header", "operation-count",
		"requester-ip-address", "request-version", "request-header-size", "request-packet-size", "response-header-size",
		"response-packet-size", "request-content-length", "request-md5", "server-md5", "etag-identifier",
		"last-modified-time", "conditions-used", "user-agent-header", "referrer-header", "client-request-id",
		"user-object-id", "tenant-id", "application-id", "audience", "issuer",
		"user-principal-name", "reserved", "authorization-detail",
	}
}

// Places of fields that make the head of a line, or the identity of a request.
const (
	startTime     = 1
	operation     = 2
	requestStatus = 3
	httpStatus    = 4
	latency       = 5
	owner         = 9
	objectKey     = 12
	requestID     = 13
	operationNo   = 14
)

// numeric reports whether the field of a place is a number.
func numeric(place int) bool {
	return place >= httpStatus && place <= latency+1 || place == operationNo || place >= 17 && place <= 21
}

// The numbers of fields of versions 1.0 and 2.0.
const (
	fewFields  = 30
	manyFields = 38
)

// maxQuoted bounds a field in quotes. An URL has at most some KiB. Without a bound, each
// quote that is not closed would cost a search through the rest of the blob.
const maxQuoted = 64 << 10

// A field is the text of one field, still escaped.
type field struct{ text []byte }

// errShort says that the data end within the entry.
var errShort = errors.New("the data end within the entry")

// errOpen says that a quote is not closed before the end of the data, which is that of the blob.
var errOpen = errors.New("a quote is open at the end")

func unclosed() error { return &MalformedError{"a quote is not closed"} }

// A quoteSearch remembers the last search for the quote that ends a field: none of the bytes
// from its begin up to its end was one. Each line of a damaged blob may begin a field in
// quotes. Without this memory each of them would search the same bytes again.
type quoteSearch struct{ begin, end int }

// known returns how many bytes behind a place need no search.
func (s *quoteSearch) known(at int) int {
	if at < s.begin || at >= s.end {
		return 0
	}
	return s.end - at
}

// moved adjusts the places to data that begin n bytes later.
func (s *quoteSearch) moved(n int) { s.begin, s.end = s.begin-n, s.end-n }

// cutFields cuts the first entry of data into fields, and returns its end behind the
// newline. It returns errShort if the entry goes on behind data.
func cutFields(data []byte, fields []field, quotes *quoteSearch, atEOF bool) (out []field, end int, err error) {
	for at := 0; ; {
		if len(fields) == manyFields {
			// The samples of the documentation end in one more semicolon.
			if n := lineEnd(data[at:]); n > 0 || at == len(data) && atEOF {
				return fields, at + n, nil
			}
			if len(data)-at < 2 && !atEOF {
				return fields, 0, errShort
			}
			return fields, 0, &MalformedError{"more than 38 fields"}
		}
		n, err := 0, error(nil)
		if at < len(data) && data[at] == '"' {
			n, err = quotedEnd(data[at:], atEOF, quotes, at)
		} else {
			n = plainEnd(data[at:])
		}
		if err != nil {
			return fields, 0, err
		}
		if at+n == len(data) && !atEOF {
			return fields, 0, errShort
		}
		text := data[at : at+n]
		if n > 0 && text[0] == '"' {
			text = text[1 : n-1]
		}
		fields = append(fields, field{text})
		at += n
		if n := lineEnd(data[at:]); n > 0 || at == len(data) {
			if len(fields) == fewFields+1 && len(fields[fewFields].text) == 0 {
				fields = fields[:fewFields] // the line ends in a semicolon
			}
			return fields, at + n, nil
		}
		if data[at] == '\r' {
			return fields, 0, errShort // the newline is not here yet
		}
		at++
	}
}

// lineEnd returns the length of the newline at the start of data, 0 if there is none.
func lineEnd(data []byte) int {
	switch {
	case len(data) > 0 && data[0] == '\n':
		return 1
	case len(data) > 1 && data[0] == '\r' && data[1] == '\n':
		return 2
	}
	return 0
}

// plainEnd returns the length of the field without quotes at the start of data. Addresses
// are escaped there too: the semicolon of an entity such as &amp; belongs to the field.
func plainEnd(data []byte) int {
	for i, c := range data {
		switch {
		case c == ';' && !endsEntity(data[:i]):
			return i
		case c == '\n':
			if i > 0 && data[i-1] == '\r' {
				return i - 1
			}
			return i
		}
	}
	return len(data)
}

// longestEntity is the length of &#x10ffff, and &#0001114111 is not expected.
const longestEntity = 9

// endsEntity reports whether a text ends in an entity that lacks its semicolon.
func endsEntity(text []byte) bool {
	text = text[max(0, len(text)-longestEntity):]
	at := bytes.LastIndexByte(text, '&')
	return at >= 0 && entity(text[at+1:]) >= 0
}

// entity returns the character of an entity by its name, such as amp or #39; -1 for others.
func entity(name []byte) rune {
	switch string(name) {
	case "amp":
		return '&'
	case "quot":
		return '"'
	case "lt":
		return '<'
	case "gt":
		return '>'
	case "apos":
		return '\''
	}
	if len(name) < 2 || len(name) >= longestEntity || name[0] != '#' {
		return -1
	}
	base := 10
	if name = name[1:]; name[0]|0x20 == 'x' {
		name, base = name[1:], 16
	}
	n, err := strconv.ParseUint(string(name), base, 21)
	if err != nil || n > utf8.MaxRune {
		return -1
	}
	return rune(n)
}

// appendUnescaped appends a text with characters in place of entities. It knows no more of
// HTML than Azure writes: an address may well have &copy=1 in it.
func appendUnescaped(dst, text []byte) []byte {
	for {
		at := bytes.IndexByte(text, '&')
		if at < 0 {
			return append(dst, text...)
		}
		dst, text = append(dst, text[:at]...), text[at:]
		end := bytes.IndexByte(text[:min(len(text), longestEntity+1)], ';')
		if r := rune(-1); end > 0 {
			if r = entity(text[1:end]); r >= 0 {
				dst, text = utf8.AppendRune(dst, r), text[end+1:]
				continue
			}
		}
		dst, text = append(dst, '&'), text[1:]
	}
}

// quotedEnd returns the length of the field in quotes at the start of data. Its last quote
// comes before a semicolon or the end of the line. Most quotes within are escaped, but not
// those of old ETags (""0x8D…"") and of JSON. One behind a semicolon begins another field, so
// this one was not closed.
func quotedEnd(data []byte, atEOF bool, quotes *quoteSearch, place int) (n int, err error) {
	most := min(len(data), maxQuoted)
	i := min(max(1, quotes.known(place)), most)
	if i == 1 {
		quotes.begin = place
	}
	defer func() { quotes.end = place + i }()
	for ; i < most; i++ {
		at := bytes.IndexByte(data[i:most], '"')
		if at < 0 {
			i = most
			break
		}
		i += at
		rest := data[i+1:]
		switch {
		case len(rest) == 0 && atEOF, len(rest) > 0 && rest[0] == ';', lineEnd(rest) > 0:
			return i + 1, nil
		case len(rest) == 0 || len(rest) == 1 && rest[0] == '\r':
			return 0, errShort
		case data[i-1] == ';':
			return 0, unclosed()
		}
	}
	switch {
	case len(data) >= maxQuoted:
		return 0, unclosed()
	case atEOF:
		return 0, errOpen
	}
	return 0, errShort
}

// checkFields checks that an entry begins with a version and has all fields of it. A version
// that is not known yet may have as many fields as one that is.
func checkFields(fields []field) error {
	n := len(fields)
	if n != fewFields && n != manyFields {
		return &MalformedError{fmt.Sprintf("%d fields; a line has %d or %d", n, fewFields, manyFields)}
	}
	version := fields[0].text
	switch major, minor, ok := bytes.Cut(version, []byte{'.'}); {
	case !ok || !isNumber(major) || !isNumber(minor):
		return &MalformedError{fmt.Sprintf("%.40q is no version", version)}
	case string(version) == "1.0" && n != fewFields, string(version) == "2.0" && n != manyFields:
		return &MalformedError{fmt.Sprintf("%d fields; a line of version %s has %d", n, version, fewFields+manyFields-n)}
	}
	return nil
}

func isNumber(text []byte) bool {
	_, ok := wholeNumber(text)
	return ok
}

// classic appends the line of an entry of Storage Analytics.
func (t *Translator) classic(dst, entry []byte) (line []byte, stamp record.Stamp, err error) {
	if t.fields, _, err = cutFields(entry, t.fields[:0], &quoteSearch{}, true); err == nil {
		err = checkFields(t.fields)
	}
	if errors.Is(err, errOpen) {
		err = unclosed()
	}
	if err != nil {
		return dst, stamp, err
	}
	t.text = t.text[:0]
	for i := range t.fields {
		f := &t.fields[i]
		if bytes.IndexByte(f.text, '&') >= 0 {
			at := len(t.text)
			t.text = appendUnescaped(t.text, f.text)
			f.text = t.text[at:len(t.text):len(t.text)]
		}
	}
	at := t.fields
	ns, ok := times.Parse(at[startTime].text)
	if !ok {
		return dst, stamp, &MalformedError{fmt.Sprintf("%.40q is no time", at[startTime].text)}
	}
	t.setID(entry, at[requestID].text, at[operationNo].text)
	parts := t.parser.Begin(dst, meaning.Head{
		Time: ns, Level: []byte(statusLevel(at[httpStatus].text, at[requestStatus].text).String()), Msg: t.classicMessage(),
	}, &t.of)
	for i, name := range t.names[:len(at)] {
		if n, ok := wholeNumber(at[i].text); ok && numeric(i) {
			parts.Int(name, n)
		} else {
			parts.Text(name, at[i].text)
		}
	}
	line, stamp, err = parts.End()
	if err != nil {
		return dst, stamp, &MalformedError{err.Error()}
	}
	return line, stamp, nil
}

// classicMessage is a request in short: GetBlob 200 /container/x.txt 9ms.
func (t *Translator) classicMessage() []byte {
	at := t.fields
	status := at[httpStatus].text
	if len(status) == 0 {
		status = at[requestStatus].text
	}
	key := at[objectKey].text
	if n := 1 + len(at[owner].text); n > 1 && len(key) > n && key[0] == '/' && key[n] == '/' && bytes.Equal(key[1:n], at[owner].text) {
		key = key[n:]
	}
	t.msg = t.msg[:0]
	for i, word := range [...][]byte{at[operation].text, status, key, at[latency].text} {
		if len(word) == 0 {
			continue
		}
		if len(t.msg) > 0 {
			t.msg = append(t.msg, ' ')
		}
		t.msg = append(t.msg, word...)
		if i == 3 {
			t.msg = append(t.msg, "ms"...)
		}
	}
	return t.msg
}

// wholeNumber returns the number of a text that is written as JSON writes it.
func wholeNumber(text []byte) (n int64, ok bool) {
	if len(text) == 0 || len(text) > 18 || len(text) > 1 && text[0] == '0' {
		return 0, false
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}
