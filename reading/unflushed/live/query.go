package live

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/record"
)

// Pattern is where a [Handler] is mounted in a mux.
const Pattern = "GET /live/{service}"

// MaxNewest is the largest [Query.Newest].
const MaxNewest = 100_000

// MaxService is the largest [Query.Service] in bytes. It stands in the path of a question, and
// older ingesters take no more. An asker with more names asks with globs, and leaves out of the
// answer the services that it did not mean.
const MaxService = 4096

const maxPositions = 1024 // ingesters in one question

// Version is the version of questions and answers that this package knows. Each question says the
// asker's, and each answer says its own. A message without one is of version 1, of ingesters before
// commit a960ca37.
const Version = 2

// The headers of an answer; headerVersion is of a question too.
const (
	headerVersion   = "Blobtail-Live"
	headerIngester  = "Blobtail-Ingester"
	headerProcess   = "Blobtail-Process"
	headerStore     = "Blobtail-Store"
	headerSnapshots = "Blobtail-Snapshots"
	headerRowsAge   = "Blobtail-Rows-Age"
	headerPositions = "Blobtail-Positions"
	headerBehind    = "Blobtail-Behind"
	headerNarrowed  = "Blobtail-Narrowed"
)

// Query is a question. From and To have no useful zero: a range without ends is
// [math.MinInt64] to [math.MaxInt64].
type Query struct {
	// Service is a name or a glob as of [record.MatchService], or several of them with
	// commas between.
	Service  string
	From, To int64 // effective time in Unix nanoseconds, half open
	// Levels are the wanted levels; none: all.
	Levels []record.Level
	// Newest asks for only so many of the newest records; 0: for all. The answer seldom
	// has some older ones too, if leaving them out would take too much memory.
	Newest int
	// Follow asks for the records appended behind After, not for the unflushed ones. An
	// ingester that is not in After sends all that it remembers.
	Follow bool
	After  Positions
	// Now, with Follow, asks for positions only: later records are behind them.
	Now bool
	// Stored asks for the newest blobs of the services too, see [Answer.Stored]. It does nothing
	// with Follow.
	Stored bool
}

// Positions say where snapshots of logs ended, by the ids of the ingesters. Records
// behind them were not in the answer. A position is valid for its own log only.
type Positions map[string]uint64

// String is the form that ParsePositions reads, `0badcafe.1a2b,...`, in the order
// of ids.
func (p Positions) String() string { return formatList(p, "%s.%x") }

// ParsePositions reads the form of Positions.String, and nothing else.
func ParsePositions(s string) (Positions, error) {
	if s == "" {
		return Positions{}, nil
	}
	return parseList(s, "a hex number", func(text string) (uint64, bool) {
		n, err := strconv.ParseUint(text, 16, 64)
		return n, err == nil && strconv.FormatUint(n, 16) == text
	})
}

// formatList writes ids with their values, `0badcafe.1a2b,...`, in the order of ids.
func formatList[V any](all map[string]V, form string) string {
	parts := make([]string, 0, len(all))
	for _, id := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, fmt.Sprintf(form, id, all[id]))
	}
	return strings.Join(parts, ",")
}

// parseList reads the form of formatList, and nothing else. want describes a value.
func parseList[V any](s, want string, value func(text string) (v V, ok bool)) (map[string]V, error) {
	all := map[string]V{}
	last := ""
	for part := range strings.SplitSeq(s, ",") {
		id, text, _ := strings.Cut(part, ".")
		v, ok := value(text)
		switch {
		case !ok || !isID(id):
			return nil, fmt.Errorf("%.40q: want an ingester's 8 hex digits, a dot, and %s", part, want)
		case id <= last:
			return nil, fmt.Errorf("%.40q is not in order of ids, each once", part)
		case len(all) == maxPositions:
			return nil, fmt.Errorf("more than %d ingesters", maxPositions)
		}
		last, all[id] = id, v
	}
	return all, nil
}

// isID reports whether s has the form of an ingester's id.
func isID(s string) bool { return len(s) == 8 && isHex(s) }

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// check finds the fault of an invalid question.
func (q *Query) check() error {
	switch {
	case q.Service == "" || len(q.Service) > MaxService:
		return fmt.Errorf("service: %.40q: want a name or glob of at most %d bytes", q.Service, MaxService)
	case q.Newest < 0 || q.Newest > MaxNewest:
		return fmt.Errorf("newest: %d: want 1 to %d, or leave it out for all", q.Newest, MaxNewest)
	case q.Newest > 0 && q.Follow:
		return fmt.Errorf("newest: %d: a follower gets all; leave out newest or follow", q.Newest)
	case !q.Follow && (q.Now || len(q.After) > 0):
		return fmt.Errorf("after: only a follower has positions; add follow=1")
	case len(q.After) > maxPositions:
		return fmt.Errorf("after: more than %d positions", maxPositions)
	}
	for name := range names(q.Service) {
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00\r\n") {
			return fmt.Errorf("service: %.40q: no service can be called so; want a name like web, or a glob like 'web-*'", name)
		}
		if !record.ValidPattern(name) {
			return fmt.Errorf("service: %.40q: it is no glob: a bracket or a backslash lacks its other half", name)
		}
	}
	return nil
}

// names are the names and globs in a list. A comma between brackets is of a glob.
func names(list string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start, in := 0, false
		for i, c := range list {
			in = c == '[' || in && c != ']'
			if c == ',' && !in {
				if !yield(list[start:i]) {
					return
				}
				start = i + 1
			}
		}
		yield(list[start:])
	}
}

// Match reports whether the question is about a service.
func (q *Query) Match(service string) bool {
	for name := range names(q.Service) {
		if record.MatchService(name, service) {
			return true
		}
	}
	return false
}

// keep selects lines of the wanted levels; nil if all are wanted.
func (q *Query) keep() func(line []byte) bool {
	if len(q.Levels) == 0 {
		return nil
	}
	return func(line []byte) bool { return slices.Contains(q.Levels, record.LineLevel(line)) }
}

// parseLevels reads the words for levels, with commas between.
func parseLevels(text string) (all []record.Level, err error) {
	for word := range strings.SplitSeq(text, ",") {
		l := record.LevelOf([]byte(word))
		if l.String() != word || slices.Contains(all, l) {
			return nil, fmt.Errorf("%.40q: want names of levels, each once: trace,debug,info,warn,error,critical,other", word)
		}
		all = append(all, l)
	}
	return all, nil
}

// values is the question as parameters of a URL. alone asks the one ingester only.
func (q *Query) values(alone bool) url.Values {
	v := url.Values{}
	set := func(there bool, name, value string) {
		if there {
			v.Set(name, value)
		}
	}
	set(q.From != math.MinInt64, "from", strconv.FormatInt(q.From, 10))
	set(q.To != math.MaxInt64, "to", strconv.FormatInt(q.To, 10))
	var words []string
	for _, l := range q.Levels {
		words = append(words, l.String())
	}
	set(len(words) > 0, "levels", strings.Join(words, ","))
	set(q.Newest > 0, "newest", strconv.Itoa(q.Newest))
	set(q.Follow, "follow", "1")
	set(len(q.After) > 0, "after", q.After.String())
	set(q.Now, "after", "now")
	set(alone, "peers", "no")
	return v
}

// parseQuery reads the form of values, or a question that a person typed.
func parseQuery(service, raw string) (q Query, alone bool, err error) {
	q = Query{Service: service, From: math.MinInt64, To: math.MaxInt64}
	v, err := url.ParseQuery(raw)
	if err != nil {
		return q, false, fmt.Errorf("the parameters cannot be read: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		text := v[name][0]
		if len(v[name]) > 1 {
			return q, false, fmt.Errorf("%s: it is there twice", name)
		}
		switch name {
		case "from":
			err = parseTime(text, &q.From)
		case "to":
			err = parseTime(text, &q.To)
		case "levels":
			q.Levels, err = parseLevels(text)
		case "newest":
			q.Newest, err = strconv.Atoi(text)
			if err != nil || q.Newest < 1 {
				err = fmt.Errorf("%.40q: want a number from 1 to %d", text, MaxNewest)
			}
		case "follow":
			q.Follow, err = text == "1", oneOf(text, "1")
		case "peers":
			alone, err = text == "no", oneOf(text, "no")
		case "after":
			if q.Now = text == "now"; !q.Now {
				q.After, err = ParsePositions(text)
			}
		default:
			err = fmt.Errorf("there is no such parameter; there are from, to, levels, newest, follow, after and peers")
		}
		if err != nil {
			return q, false, fmt.Errorf("%.40s: %w", name, err)
		}
	}
	return q, alone, q.check()
}

func oneOf(text, want string) error {
	if text != want {
		return fmt.Errorf("%.40q: want %s, or leave it out", text, want)
	}
	return nil
}

// parseTime reads Unix nanoseconds or RFC 3339.
func parseTime(text string, ns *int64) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil {
		*ns = n
		return nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.Year() < 1678 || t.Year() > 2261 {
		return fmt.Errorf("%.40q: want Unix nanoseconds, or RFC 3339 like 2026-11-20T15:04:05Z", text)
	}
	*ns = t.UnixNano()
	return nil
}
