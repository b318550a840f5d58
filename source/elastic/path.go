package elastic

import (
	"net/url"
	"strings"
)

// A place is the meaning of a path.
type place struct {
	bulk bool
	// document says that the path is that of one document, with its id, "" for none.
	document bool
	id       string
	// index is that of a bulk request or a document, "" for none.
	index string
	// probe is the first segment of the path of any other request, such as _license; "" is
	// the root.
	probe string
	// rest has the segments behind it.
	rest []string
}

// parsePath parses an escaped path. ok is false if it belongs to another protocol. At the
// root that is every path but the root itself, those with a first or second segment that
// begins with "_", and the index that Logstash creates.
func parsePath(path string) (at place, ok bool) {
	path, below := cutPrefix(path)
	segments := strings.Split(strings.TrimPrefix(strings.TrimSuffix(path, "/"), "/"), "/")
	for i, s := range segments {
		text, err := url.PathUnescape(s)
		if err != nil {
			return place{}, false
		}
		segments[i] = text
	}
	first, last := segments[0], segments[len(segments)-1]
	switch {
	case !below && first == "ingest":
		return place{}, false // a service may be called _bulk
	case last == "_bulk" && len(segments) == 1:
		return place{bulk: true}, true
	case last == "_bulk" && len(segments) <= 3 && !strings.HasPrefix(first, "_"): // before version 7 a type follows the index
		return place{bulk: true, index: first}, true
	}
	logstash := strings.HasPrefix(strings.TrimPrefix(first, "<"), "logstash") && len(segments) == 1
	question := strings.HasPrefix(first, "_") || len(segments) > 1 && strings.HasPrefix(segments[1], "_")
	at = place{probe: first, rest: segments[1:]}
	if n := len(at.rest); n > 0 && n <= 2 && !strings.HasPrefix(first, "_") && (at.rest[0] == "_doc" || at.rest[0] == "_create") {
		at.document, at.index, at.id = true, first, strings.Join(at.rest[1:], "")
	}
	return at, below || path == "/" || question || logstash
}

// cutPrefix removes the path below which the protocol is found as well. VictoriaLogs has it
// below /insert/elasticsearch.
func cutPrefix(path string) (rest string, found bool) {
	for _, prefix := range []string{"/elasticsearch", "/insert/elasticsearch"} {
		if rest, ok := strings.CutPrefix(path, prefix); ok && (rest == "" || rest[0] == '/') {
			return rest, true
		}
	}
	return path, false
}
