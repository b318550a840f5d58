package azure

import (
	"bytes"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"blobtail/storage"
)

// page is one answer to a list.
type page struct {
	blobs []storage.Blob
	dirs  []string // with their slash
	next  string   // where the next page starts; "" after the last one
}

// scanPage reads the XML of an answer. It takes the form that the service writes, and
// answers false for all else: a comment, CDATA, a namespace, an element within a text, a value of
// another form. encoding/xml decides on those. It reads each page that scanPage takes to the same,
// at ten times the price. There is one difference: the SDK makes a space of a + in an encoded
// name, and the service means a +.
func scanPage(body []byte) (page, bool) {
	s := scanner{rest: bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")), seen: map[string]string{}}
	s.check()
	s.declaration()
	root, whole := s.start(), false
	s.bad = s.bad || string(root.name) != "EnumerationResults"
	s.children(root, func(t tag) {
		switch string(t.name) {
		case "Blobs":
			whole = true
			s.children(t, s.item)
		case "NextMarker":
			s.page.next = string(s.text(t))
		default:
			s.skip(t, 0)
		}
	})
	return s.page, whole && !s.bad
}

// scanner walks through a page. Once bad is set, it stands still.
type scanner struct {
	rest []byte
	seen map[string]string // the strings that most blobs share
	bad  bool
	page page
}

// tag is the start of an element.
type tag struct {
	name    []byte
	empty   bool // the element ends with its start
	encoded bool // its text is percent-encoded
}

// check refuses characters that XML has not.
func (s *scanner) check() {
	s.bad = !utf8.Valid(s.rest) || bytes.Contains(s.rest, []byte("]]>")) ||
		bytes.Contains(s.rest, []byte("\uFFFE")) || bytes.Contains(s.rest, []byte("\uFFFF"))
	for _, c := range s.rest {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' {
			s.bad = true
		}
	}
}

// declaration skips the <?xml …?> before the root.
func (s *scanner) declaration() {
	head, rest, ok := bytes.Cut(s.rest, []byte("?>"))
	head = bytes.TrimSuffix(bytes.ToLower(head), []byte(` standalone="yes"`))
	if s.bad = s.bad || !ok || string(head) != `<?xml version="1.0" encoding="utf-8"`; !s.bad {
		s.rest = rest
		s.space()
	}
}

// space skips the space between two elements.
func (s *scanner) space() {
	for len(s.rest) > 0 && isSpace(s.rest[0]) {
		s.rest = s.rest[1:]
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// start reads the start of an element.
func (s *scanner) start() (t tag) {
	end := bytes.IndexByte(s.rest, '>')
	if s.bad = s.bad || end < 2 || s.rest[0] != '<'; s.bad {
		return tag{}
	}
	inner, empty := bytes.CutSuffix(s.rest[1:end], []byte("/"))
	s.rest, t.empty = s.rest[end+1:], empty
	n := 0
	for n < len(inner) && !isSpace(inner[n]) {
		n++
	}
	t.name = inner[:n]
	s.bad = !isName(t.name)
	for attrs := bytes.TrimSpace(inner[n:]); len(attrs) > 0 && !s.bad; attrs = bytes.TrimSpace(attrs) {
		name, rest, ok := bytes.Cut(attrs, []byte(`="`))
		value, rest, closed := bytes.Cut(rest, []byte(`"`))
		s.bad = !ok || !closed || !isName(name) || bytes.ContainsAny(value, "<&")
		if string(name) == "Encoded" {
			t.encoded = string(value) == "true"
			s.bad = s.bad || !t.encoded && string(value) != "false"
		}
		attrs = rest
	}
	return t
}

// isName reports whether b is the name of an element in ASCII, without a namespace.
func isName(b []byte) bool {
	for i, c := range b {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_'
		if !letter && (i == 0 || (c < '0' || c > '9') && c != '-' && c != '.') {
			return false
		}
	}
	return len(b) > 0
}

// ends reads the end of t if it comes next.
func (s *scanner) ends(t tag) bool {
	n := len(t.name)
	if len(s.rest) < n+3 || s.rest[0] != '<' || s.rest[1] != '/' || s.rest[n+2] != '>' || !bytes.Equal(s.rest[2:n+2], t.name) {
		return false
	}
	s.rest = s.rest[n+3:]
	return true
}

// children reads an element that holds nothing but elements. each must read the rest of
// the element that it gets.
func (s *scanner) children(t tag, each func(tag)) {
	for !t.empty && !s.bad {
		if s.space(); s.ends(t) {
			return
		}
		if child := s.start(); !s.bad {
			each(child)
		}
	}
}

// text reads an element that holds nothing but text. The bytes are valid until the body
// changes.
func (s *scanner) text(t tag) []byte {
	if t.empty || s.bad {
		return nil
	}
	raw := s.upToTag()
	if s.bad = s.bad || !s.ends(t); s.bad || !t.encoded {
		return raw
	}
	decoded, err := url.PathUnescape(string(raw))
	s.bad = err != nil || !utf8.ValidString(decoded)
	return []byte(decoded)
}

// upToTag reads the text up to the next tag.
func (s *scanner) upToTag() []byte {
	n := bytes.IndexByte(s.rest, '<')
	if s.bad = s.bad || n < 0; s.bad {
		return nil
	}
	raw := s.rest[:n]
	s.rest = s.rest[n:]
	if bytes.IndexByte(raw, '\r') >= 0 { // XML has it otherwise
		s.bad = true
	}
	if bytes.IndexByte(raw, '&') < 0 {
		return raw
	}
	return s.unescape(raw)
}

// unescape replaces the entities of a text.
func (s *scanner) unescape(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for {
		before, rest, ok := bytes.Cut(raw, []byte("&"))
		out = append(out, before...)
		if !ok {
			return out
		}
		entity, rest, ok := bytes.Cut(rest, []byte(";"))
		switch string(entity) {
		case "amp":
			out = append(out, '&')
		case "lt":
			out = append(out, '<')
		case "gt":
			out = append(out, '>')
		case "quot":
			out = append(out, '"')
		case "apos":
			out = append(out, '\'')
		default: // a number, which the service has no need of
			ok = false
		}
		if s.bad = s.bad || !ok; s.bad {
			return nil
		}
		raw = rest
	}
}

// skip reads an element that the listing does not need.
func (s *scanner) skip(t tag, depth int) {
	if s.bad = s.bad || depth > 10; t.empty {
		return
	}
	for !s.bad {
		if s.upToTag(); s.ends(t) {
			return
		}
		if child := s.start(); !s.bad {
			s.skip(child, depth+1)
		}
	}
}

// item reads a blob or a directory.
func (s *scanner) item(t tag) {
	var b storage.Blob
	prefix := string(t.name) == "BlobPrefix"
	if !prefix && string(t.name) != "Blob" {
		s.skip(t, 0)
		return
	}
	s.children(t, func(t tag) {
		switch string(t.name) {
		case "Name":
			b.Key = string(s.text(t))
		case "Properties":
			s.children(t, func(t tag) { s.property(&b, t) })
		case "Metadata":
			s.children(t, func(t tag) {
				if b.Metadata == nil {
					b.Metadata = make(map[string]string, len(s.seen))
				}
				b.Metadata[strings.ToLower(s.shared(t.name))] = string(s.text(t))
			})
		default:
			s.skip(t, 0)
		}
	})
	if prefix {
		s.page.dirs = append(s.page.dirs, b.Key)
		return
	}
	s.page.blobs = append(s.page.blobs, b)
}

// property reads a property of b.
func (s *scanner) property(b *storage.Blob, t tag) {
	var err error
	switch string(t.name) {
	case "Content-Length":
		b.Size = 0
		if text := s.text(t); len(text) > 0 {
			b.Size, err = strconv.ParseInt(string(text), 10, 64)
		}
	case "Last-Modified":
		b.Created = time.Time{}
		if text := s.text(t); len(text) > 0 {
			b.Created, err = time.Parse(http.TimeFormat, string(text))
		}
	case "Etag":
		b.Version = strings.Trim(string(s.text(t)), `"`)
	case "AccessTier":
		b.Tier = tier(s.shared(s.text(t)))
	case "Content-Type":
		b.ContentType = s.shared(s.text(t))
	case "Content-Encoding":
		b.ContentEncoding = s.shared(s.text(t))
	default:
		s.skip(t, 0)
	}
	s.bad = s.bad || err != nil
}

// shared makes a string of a text that most blobs have.
func (s *scanner) shared(text []byte) string {
	if known, ok := s.seen[string(text)]; ok {
		return known
	}
	made := string(text)
	s.seen[made] = made
	return made
}
