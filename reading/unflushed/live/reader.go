package live

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"blobtail/internal/door"
	"blobtail/record"
)

// A Reader has the rights of a client. The zero value may read nothing.
type Reader struct {
	// Name is the id of the token; "": the client has none.
	Name string
	// All says that the reader may read all services, as ingesters do for each other.
	All bool
	// Globs are the services that the reader may read, as of [record.MatchService].
	Globs []string
}

// headerReadable is of a question of an ingester: the globs that its own reader may read.
// It only takes rights away, so every asker may send it.
const headerReadable = "Blobtail-Readable"

// A scope bounds the services of an answer; nil is everything. Each list of globs must match.
type scope [][]string

// may reports whether records of a service may be in an answer.
func (s scope) may(service string) bool {
	for _, globs := range s {
		if !slices.ContainsFunc(globs, func(glob string) bool { return record.MatchService(glob, service) }) {
			return false
		}
	}
	return true
}

// admit returns the scope of a question by its header, and the name of its reader. The error is a
// [door.Refusal].
func (h *Handler) admit(r *http.Request) (s scope, name string, err error) {
	if h.o.Guard != nil {
		reader, err := h.o.Guard(r)
		if err != nil {
			return nil, "", err
		}
		name = reader.Name
		if !reader.All {
			s = append(s, reader.Globs)
		}
	}
	for _, list := range r.Header.Values(headerReadable) {
		s = append(s, slices.Collect(names(list)))
	}
	return s, name, nil
}

// check refuses a question about a named service that may not be read. A glob is about
// those that may be.
func (s scope) check(q *Query) error {
	some := false
	for name := range names(q.Service) {
		glob := strings.ContainsAny(name, wild)
		if !glob && !s.may(name) {
			return door.Refuse(http.StatusForbidden, "the token may not read the service %s", plain(name))
		}
		some = some || !glob
	}
	if none := func(globs []string) bool { return len(globs) == 0 }; !some && slices.ContainsFunc(s, none) {
		return door.Refuse(http.StatusForbidden, "the token may read no service")
	}
	return nil
}

// narrowed names the services that may be in the answer to a question, as a header; "" if
// these are all that the question is about.
func (s scope) narrowed(q *Query) string {
	for _, globs := range s {
		for name := range names(q.Service) {
			if !slices.ContainsFunc(globs, func(glob string) bool { return covers(glob, name) }) {
				return cmp.Or(plain(strings.Join(globs, ",")), "-")
			}
		}
	}
	return ""
}

// covers reports whether a glob surely matches each service that a name or a glob matches.
func covers(glob, name string) bool {
	if glob == name || !strings.ContainsAny(name, wild) {
		return glob == name || record.MatchService(glob, name)
	}
	prefix, ok := strings.CutSuffix(glob, "*")
	system := prefix == "" && name[0] == '_' // a lone star matches no system service
	return ok && !system && !strings.ContainsAny(prefix, wild) && strings.HasPrefix(name, prefix)
}

// wild are the characters of globs.
const wild = `*?[\`

// readable is the scope as a header for other ingesters; "" is everything.
func (s scope) readable() string {
	if len(s) == 0 {
		return ""
	}
	return strings.Join(s[0], ",") // an ingester that answers others asks no peers, so there is one list
}

// allowed reports whether a line may be in an answer.
func (s scope) allowed(line []byte) bool {
	if len(s) == 0 {
		return true
	}
	service, ok := record.LineService(line)
	return ok && s.may(string(service))
}
