package httpsource

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/source/body"
)

// note returns a remark for the client about a request that was taken, "" for none. Such a
// request is no error, because a shipper drops a body that is answered 400, and the proxies
// between add parameters of their own.
func (s *Source) note(r *http.Request, in Intake, decoded []byte, a *Result) string {
	var notes []string
	if r.URL.RawQuery != "" {
		if text := unusedParameters(r.URL.Query(), in.Service != ""); text != "" {
			s.unused.Warn().Str("path", body.Short(r.URL.Path)).Msg(text)
			notes = append(notes, text)
		}
	}
	if a.Accepted+a.Expired == 1 && joinedByCurl(r.Header.Get("Content-Type"), decoded) {
		notes = append(notes, fmt.Sprintf("the body is one line of %d bytes; if the file has more lines, curl -d removed the line feeds: send it with --data-binary", len(decoded)))
	}
	if text := likeNote(r, decoded, a); text != "" && a.Accepted > 0 {
		notes = append(notes, text)
	}
	if text := Lacking(a.lacks, a.lines); text != "" {
		notes = append(notes, text)
	}
	return strings.Join(notes, "; ")
}

// Lacking says how many of the lines of a request lack a part of their head, and which pages help.
// It is "" if none does.
func Lacking(l record.Lacks, lines int) string {
	var notes []string
	if l.Time > 0 {
		notes = append(notes, fmt.Sprintf("no time found in %d of %d lines: they have the time of arrival; docs/send/time-and-level.md#times", l.Time, lines))
	}
	if l.TimeUnread > 0 {
		text := fmt.Sprintf("%d of %d lines have a field for the time that could not be read", l.TimeUnread, lines)
		if l.Time == 0 { // else the page is named already
			text += "; docs/send/time-and-level.md#times"
		}
		notes = append(notes, text)
	}
	if l.LevelUnread > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d lines have a field for the level that could not be read; docs/send/loggers.md#words-for-levels", l.LevelUnread, lines))
	}
	return strings.Join(notes, "; ")
}

// unusedParameters names the query parameters without effect, and the remedy. served says that the
// path has the service.
func unusedParameters(q url.Values, served bool) string {
	const most = 3
	var names []string
	used, meant := false, ""
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if isField(name) && !(served && name == "_service") {
			used = true
			continue
		}
		if names = append(names, name); meant == "" && name != "_service" {
			meant = meantParameter(name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	if served && slices.Equal(names, []string{"_service"}) {
		return "_service has no effect here, because the path has the service; send to /ingest"
	}
	names = names[:min(most, len(names))]
	for i, name := range names {
		if !isParameter(name) {
			names[i] = "..."
		}
	}
	text := "no query parameter has an effect here"
	if used {
		text = "these query parameters have no effect here"
	}
	text += " (" + strings.Join(slices.Compact(names), ", ") + "); "
	if meant != "" {
		text += "did you mean " + meant + "? "
	}
	known := meaning.KnownNames()
	first := func(names []string, n int) string { return strings.Join(names[:n], ", ") }
	return text + "_time, _level, _message and _service name fields, or give the fields one of these names: " +
		first(known.Time, 5) + "; " + first(known.Level, 4) + "; " + first(known.Message, 3) + "; " + first(known.Service, 3)
}

// isParameter reports whether a text looks like the name of a parameter. Others may be a key that
// a sender wrote behind the question mark.
func isParameter(name string) bool {
	const most = 32
	return name != "" && len(name) <= most && strings.IndexFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_'
	}) < 0
}

// joinedByCurl reports whether a body of one text record looks like a file without its line feeds,
// which curl -d removes: it has the Content-Type that curl -d sends and no line feed, and it is
// long, or its beginning, such as a date, comes again.
func joinedByCurl(contentType string, decoded []byte) bool {
	const long, begin = 1 << 10, 10
	media, _, _ := strings.Cut(contentType, ";")
	text := bytes.TrimSpace(decoded)
	if !strings.EqualFold(strings.TrimSpace(media), body.URLForm) || body.IsURLForm(decoded) || len(text) <= 2*begin ||
		text[0] == '{' || bytes.HasPrefix(text, []byte("[{")) || bytes.IndexByte(text, '\n') >= 0 {
		return false
	}
	return len(text) >= long || bytes.Contains(text[begin:], text[:begin])
}
