// Package signpost tells a client that asks the wrong listener where to go. Each listener of
// blobtail has a [Post]. It hands requests to [Post.Find] that no path of it answers. Find knows
// the paths of the other listeners, and those of other programs (paths.go).
//
// The package answers nothing and checks no token: a listener gives the [Sign] its own form.
package signpost

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"blobtail/internal/spelling"
)

// A Listener is one of blobtail's.
type Listener int

// The listeners.
const (
	Ingester Listener = iota // takes records: --listen of ingest
	Admin                    // is for operators: --admin of ingest
	Reads                    // answers readers: --listen of logquery serve
)

// A Post is the knowledge of one listener. At must be set.
type Post struct {
	At Listener
	// Own has the methods of the paths of the listener, as the header Allow has them. A path with a
	// slash at its end stands for those below it, too.
	Own map[string]string
	// More are the beginnings of paths that other handlers answer, each with its methods.
	More map[string]string
	// Admin is the address of the listener for operators, "" if it is not known.
	Admin string
	// Ingester is the URL of the listener for records, "" if it is not known.
	Ingester string
}

// A Sign is the answer to a request that belongs elsewhere.
type Sign struct {
	Status int
	// Allow is the value of the header of that name, for [http.StatusMethodNotAllowed].
	Allow string
	// Text is one line.
	Text string
}

// The port or the address of each listener, unless it was told another one.
const (
	ingesterPort = "8514"
	usualAdmin   = "127.0.0.1:8515"
	readsPort    = "8516"
)

// readers says where readers ask.
const readers = "logquery serve answers reads: its port is " + readsPort + " by default"

// Find returns the sign for a request that the listener does not answer.
func (p Post) Find(r *http.Request) Sign {
	path := short(r.URL.Path)
	if allow, ok := p.allow(r.URL.Path); ok && !slices.Contains(strings.Split(allow, ", "), r.Method) {
		text := method(r, path, allow)
		if p.At == Reads && path == "/" && sends(r) {
			text += "; " + p.records("/ingest/{service}")
		}
		return Sign{http.StatusMethodNotAllowed, allow, text}
	}
	if text := byHeader(r); text != "" {
		return Sign{Status: http.StatusNotFound, Text: text + "; " + p.takes()}
	}
	row := rowOf(r.URL.Path)
	switch {
	case row == nil:
		return p.unknown(r, path)
	case row.text != "":
		return Sign{Status: http.StatusNotFound, Text: path + ": " + row.text}
	case row.owner == p.At:
		return p.unknown(r, path)
	case row.owner == Ingester:
		return Sign{map[Listener]int{Reads: http.StatusMethodNotAllowed, Admin: http.StatusNotFound}[p.At], "", p.here() + "; " + p.records(path)}
	case row.owner == Admin:
		return p.operators(path)
	}
	return Sign{Status: http.StatusNotFound, Text: p.here() + "; " + readers + " (" + path + " there)"}
}

// Records reports whether a path is one of those to which clients send records.
func Records(path string) bool {
	row := rowOf(path)
	return row != nil && row.text == "" && row.owner == Ingester
}

// Known reports whether the listener has a sign for a path: it belongs to another one, or to
// another program.
func (p Post) Known(path string) bool {
	row := rowOf(path)
	return row != nil && (row.text != "" || row.owner != p.At)
}

// Reading reports whether a path is one of those that logquery serve answers.
func Reading(path string) bool {
	row := rowOf(path)
	return row != nil && row.text == "" && row.owner == Reads
}

// allow returns the methods of an own path.
func (p Post) allow(path string) (string, bool) {
	if allow, ok := p.Own[path]; ok {
		return allow, true
	}
	for own, allow := range p.Own {
		if strings.HasSuffix(own, "/") && own != "/" && strings.HasPrefix(path, own) {
			return allow, true
		}
	}
	return "", false
}

// method tells the method that a path wants.
func method(r *http.Request, path, allow string) string {
	if allow == http.MethodPost {
		return fmt.Sprintf("%s %s: send it with POST: curl -X POST http://%s%s", short(r.Method), path, short(r.Host), path)
	}
	return fmt.Sprintf("%s %s: ask with GET", short(r.Method), path)
}

// here says which listener this is.
func (p Post) here() string {
	return [...]string{
		Ingester: "this is the ingester, which takes records",
		Admin:    "this is the admin listener",
		Reads:    "this is logquery serve, which only reads",
	}[p.At]
}

// takes says what the listener takes, for requests that no listener answers.
func (p Post) takes() string {
	if p.At == Ingester {
		return `send records to /ingest/{service}, or to /ingest when each has a field "service"`
	}
	return p.here() + ", and has " + p.list()
}

// all are the paths of the listener with their methods.
func (p Post) all() map[string]string {
	all := maps.Clone(p.Own)
	maps.Copy(all, p.More)
	return all
}

// list names the paths of the listener with their methods.
func (p Post) list() string {
	var texts []string
	for _, path := range slices.Sorted(maps.Keys(p.all())) {
		method, _, _ := strings.Cut(p.all()[path], ",")
		texts = append(texts, method+" "+path)
	}
	return strings.Join(texts, ", ")
}

// records says where a path of an ingester is, for clients of another listener.
func (p Post) records(path string) string {
	if p.Ingester != "" {
		return "records are sent to the one of --listen: " + strings.TrimSuffix(p.Ingester, "/") + path
	}
	return "send records to the ingester, at its --listen (port " + ingesterPort + " unless told otherwise): " + path
}

// admin is the address of the listener for operators.
func (p Post) admin() string { return cmp.Or(p.Admin, usualAdmin+" unless told otherwise") }

// operators is the sign for a path of the listener for operators.
func (p Post) operators(path string) Sign {
	text := fmt.Sprintf("%s; %s is answered at the admin listener, %s (--admin of ingest)", p.here(), path, p.admin())
	if path == "/flush" || path == "/drain" {
		text += ": curl -X POST http://" + HostPort(cmp.Or(p.Admin, usualAdmin), usualAdmin) + path + ", on its host"
	}
	return Sign{Status: http.StatusNotFound, Text: text}
}

// sends reports whether a request is one with records.
func sends(r *http.Request) bool { return r.Method == http.MethodPost || r.Method == http.MethodPut }

// unknown is the sign for a path that nobody has.
func (p Post) unknown(r *http.Request, path string) Sign {
	text := "no such path " + path + "; " + p.takes()
	switch near := p.near(r.URL.Path, sends(r)); {
	case near != "":
		text += "; is it " + near + "?"
	case path == "/health" && p.At == Ingester:
		text += "; the probe of this listener is /ready, and those of the ingester are /healthz and /readyz at the admin listener, " + p.admin()
	case p.At == Reads && sends(r):
		text += "; " + p.records("/ingest/{service}")
	case p.At == Ingester && !sends(r):
		text += "; " + readers
	}
	return Sign{Status: http.StatusNotFound, Text: text}
}

// near is the path that was probably meant, "" if none is near. sends says that records come.
func (p Post) near(path string, sends bool) string {
	const most = 128 // of a path that somebody types
	if len(path) > most {
		return ""
	}
	segments := strings.FieldsFunc(path, func(c rune) bool { return c == '/' })
	clean := "/" + strings.Join(segments, "/")
	if p.At != Ingester {
		if clean == "/" || p.At == Reads && sends {
			return ""
		}
		own := slices.DeleteFunc(slices.Sorted(maps.Keys(p.Own)), func(path string) bool { return path == "/" })
		return spelling.Near(clean, own)
	}
	end := slices.IndexFunc(known(), func(own string) bool { return own != "/ingest" && strings.HasSuffix(clean, own) })
	switch {
	case end >= 0 && clean != known()[end]: // another program has more before it
		return known()[end]
	case clean == "/" || clean == "/ingest" && path != "/ingest/":
		return ""
	case clean == "/ingest":
		return "/ingest/{service}, or /ingest"
	case clean != path && rowOf(clean) != nil && rowOf(clean).owner == Ingester:
		return short(clean)
	case !sends && segments[0] != "ingest":
		return ""
	case segments[0] == "ingest" && len(segments) > 2:
		return short("/ingest/" + strings.Join(segments[1:], "-"))
	case len(segments) == 2 && spelling.Near(segments[0], []string{"ingest"}) != "":
		return short("/ingest/" + segments[1])
	}
	near := spelling.Near(clean, known())
	if near == "" && len(segments) == 1 && regexp.MustCompile(`^[\w.-]{1,64}$`).MatchString(segments[0]) {
		near = "/ingest/" + segments[0]
	}
	return near
}

// Index is the text of the path / of a listener: which one it is, and its paths.
func (p Post) Index() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s. It has:\n\n", strings.ToUpper(p.here()[:1])+p.here()[1:])
	all := p.all()
	for _, path := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "  %-10s %s\n", strings.ReplaceAll(all[path], ", ", "|"), path)
	}
	b.WriteString("\n")
	switch p.At {
	case Admin:
		fmt.Fprintf(&b, "Records go to %s/ingest/{service} (--listen); %s.\n", strings.TrimSuffix(p.Ingester, "/"), readers)
	case Reads:
		fmt.Fprintf(&b, "Records go to the ingester, to /ingest/{service} at its --listen (port %s unless told otherwise).\n", ingesterPort)
	}
	return b.String()
}

// short cuts a text of a client to a length that an answer may have.
func short(text string) string {
	const most = 200
	cut := text[:min(len(text), most)]
	for len(cut) < len(text) && len(cut) > 0 && !utf8.RuneStart(text[len(cut)]) {
		cut = cut[:len(cut)-1]
	}
	out := regexp.MustCompile(`[\x00-\x1f\x7f]`).ReplaceAllString(strings.ToValidUTF8(cut, "?"), "?")
	if len(cut) < len(text) {
		out += "..."
	}
	return out
}

// HostPort puts the port of an address behind the host that a client knows, if the address is of no
// host alone.
func HostPort(address, known string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		if h, _, err := net.SplitHostPort(known); err == nil {
			return net.JoinHostPort(h, port)
		}
	}
	return address
}
