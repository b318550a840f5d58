// Package azurelogs reads the logs that Azure itself keeps in blob storage, by service and
// hour: those of Storage Analytics in the container $logs, and those of Azure Monitor in
// containers insights-logs-… and insights-activity-logs.
//
// Make a [Source] of containers ([Dir] makes them of a directory with copies). Ask it for
// [Source.Services], list the [Blob]s of a service and some hours by [Source.Blobs], and
// read each by [Read], which yields canonical lines in chunks. Chunks have fixed bounds and
// origins, so a blob that is read again, also after it has grown, gives the same records.
//
// These logs have no index. The name of a blob has the hour in which its records came, so a
// record may be earlier than that hour; a caller looks some hours ahead for late ones.
// Package asblobs makes blobs of the chunks for a reader.
//
// # Rules
//
//   - A chunk is a request. A blob is cut into chunks of 4,096 entries or 4 MiB. The origin of a
//     chunk is made of the hour, the service, the key and the first entry of the blob, and the
//     number of the chunk. The index of a record is its place in the chunk; malformed entries
//     and copies keep their places. So a blob gives the same records whenever it is read, and
//     one that has grown gives the same records and more. A record that an import hands over
//     again is a copy, and readers drop it.
//   - One state of a blob. Azure adds lines to a blob, and writes one with an array anew. So a
//     resource log is read as it is when it is opened: its listed size may be a place within a
//     record of a later state. If the blob changes meanwhile (Azure refuses the rest, a file has
//     another time), the chunks since the last one that was handed over are dropped, and the new
//     state is read from its start. Its entries up to there must be the same, by a checksum;
//     else the read fails. A classic log is read up to its listed size, because copies are left
//     out by the sizes of a listing.
//   - Names have the hour of arrival. A listing looks some hours further, and prunes classic
//     logs by the times in their metadata. Records that came later than that are found by their
//     own hour only if their blob is read for another reason; the read says how many it has
//     seen.
//   - Copies. Storage Analytics may log a request twice within an hour, with the same request id
//     and operation count. The first in the order of keys stays. A line of a resource log is a
//     copy if its blob has an equal line before it and it has a correlationId; without one, two
//     equal events are two events.
//   - A malformed entry costs no other. If the fields up to the end of an entry do not add up to
//     a line of its version, its first line alone is malformed, and reading goes on behind that.
//     So a quote that nobody closed takes no line along. Each byte is searched for the end of a
//     quote once, however many lines begin one. An entry of more than 1 MiB is passed over up to
//     its end: that of its line, or in an array that of its value. No cut depends on the parts
//     in which a blob comes.
//   - An entry at the end of a blob may be cut off. One of a resource log needs its newline. One
//     of a classic log is read if it has all fields and ends as a field does; else it is
//     unfinished, and a note says so.
package azurelogs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"blobtail/internal/azurelogs/formats"
	"blobtail/record"
	"blobtail/storage"
)

// Objects is the part of a blob store that this package needs. List and Dirs may yield in
// any order, since an account with a hierarchical namespace has its own.
type Objects interface {
	List(ctx context.Context, prefix, startAfter string) iter.Seq2[storage.Blob, error]
	Dirs(ctx context.Context, prefix string) iter.Seq2[string, error]
	Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error)
}

// Container is a container that may have logs. The name says the category of resource logs.
type Container struct {
	Name string
	// Optional says that the container may be missing, as $logs in an account without classic
	// logs.
	Optional bool
	Objects
}

// Options are the tunables of [New].
type Options struct {
	// Account is the account of the containers, for the names of services. "" takes the
	// owner that the first line of a log names.
	Account string
	// Find returns the containers. It is called once, and again if it fails.
	Find func(ctx context.Context) ([]Container, error)
	// Ignore are globs of first parts of keys that may have no logs below them.
	Ignore []string
}

// Source is the logs of some containers. Several goroutines may use it at once.
type Source struct {
	o Options

	mu      sync.Mutex
	streams []*stream
	found   bool
}

// New returns the Source of some containers. It sends no request yet.
func New(o Options) *Source { return &Source{o: o} }

// A stream is the logs of one service.
type stream struct {
	service   string
	kind      formats.Kind
	container Container
	layout    string   // of the part of a key that names the hour
	top       string   // the prefix of all keys; resources have further directories below it
	parts     []string // the first parts of the keys of resources
	o         *Options

	mu    sync.Mutex
	roots []string // the prefixes before the hours; nil: not known yet
	alias string   // another name of the service, by its lines; see [Source.find]
}

// The layouts of hours in keys.
const (
	classicLayout  = "2006/01/02/15"
	resourceLayout = "y=2006/m=01/d=02/h=15"
)

// The beginnings of the names of containers that Azure Monitor makes: of all, of those of resource
// logs, and of those of tables that Log Analytics exports.
const (
	prefix         = "insights-"
	categoryPrefix = prefix + "logs-"
	exportPrefix   = "am-"
)

// IsNamed reports whether a container has the name of one with resource logs.
func IsNamed(container string) bool {
	return strings.HasPrefix(container, prefix) || strings.HasPrefix(container, exportPrefix)
}

// isPart reports whether a directory can be the first part of a key only, such as resourceId= and
// tenantId=GUID.
func isPart(dir string) bool { return strings.Contains(dir, "=") }

// NoServiceError says that a source has no logs of a service.
type NoServiceError struct {
	Service string
	Stored  []string // the services that it has, if they were asked for
}

func (e *NoServiceError) Error() string { return fmt.Sprintf("no service %q", e.Service) }

// Services returns the names of the services, sorted.
func (s *Source) Services(ctx context.Context) ([]string, error) {
	streams, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(streams))
	for i, st := range streams {
		names[i] = st.service
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Match returns the services that names and globs mean, sorted. The error is a
// [*NoServiceError] for a name without logs; a glob may match nothing.
func (s *Source) Match(ctx context.Context, patterns []string) (out []string, err error) {
	stored, err := s.Services(ctx)
	if err != nil {
		return nil, err
	}
	for _, pattern := range patterns {
		before := len(out)
		for _, name := range stored {
			if record.MatchService(pattern, name) {
				out = append(out, name)
			}
		}
		if len(out) > before || strings.ContainsAny(pattern, `*?[\\`) {
			continue
		}
		// It may be the name by which the lines know the service.
		_, err := s.find(ctx, pattern)
		if _, none := errors.AsType[*NoServiceError](err); none {
			return nil, &NoServiceError{pattern, stored}
		}
		if err != nil {
			return nil, err
		}
		out = append(out, pattern)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// find returns the streams of a service. A copy of the logs of another account may be in the
// containers of a known one, such as an emulator's: its services go by both accounts.
func (s *Source) find(ctx context.Context, service string) ([]*stream, error) {
	streams, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	named := func(match func(st *stream) bool) (out []*stream) {
		for _, st := range streams {
			if match(st) {
				out = append(out, st)
			}
		}
		return out
	}
	out := named(func(st *stream) bool { return st.service == service })
	_, of, _ := strings.Cut(service, ".")
	if len(out) == 0 && s.o.Account != "" && of != "" {
		out = named(func(st *stream) bool {
			if st.kind != formats.Classic || st.service != s.o.Account+"."+of {
				return false
			}
			st.mu.Lock()
			defer st.mu.Unlock()
			if st.alias == "" {
				st.alias = record.FoldService(cmp.Or(st.owner(ctx), s.o.Account) + "." + of)
			}
			return st.alias == service
		})
	}
	if len(out) == 0 {
		return nil, &NoServiceError{Service: service}
	}
	return out, ctx.Err()
}

// list finds the streams of all containers once.
func (s *Source) list(ctx context.Context) ([]*stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found {
		return s.streams, nil
	}
	containers, err := s.o.Find(ctx)
	if err != nil {
		return nil, err
	}
	var all []*stream
	for _, c := range containers {
		streams, err := s.inContainer(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("list container %s: %w", c.Name, err)
		}
		all = append(all, streams...)
	}
	s.streams, s.found = all, true
	return all, nil
}

// inContainer finds the streams of a container by the first parts of its keys.
func (s *Source) inContainer(ctx context.Context, c Container) (out []*stream, err error) {
	st := &stream{kind: formats.Resource, container: c, layout: resourceLayout, o: &s.o}
	for dir, err := range c.Dirs(ctx, "") {
		switch {
		case c.Optional && errors.Is(err, storage.ErrNotExist):
			return nil, nil
		case err != nil:
			return nil, err
		case slices.Contains([]string{"blob", "file", "queue", "table"}, dir):
			st := &stream{kind: formats.Classic, container: c, layout: classicLayout, top: dir + "/", o: &s.o}
			st.roots = []string{st.top}
			account := cmp.Or(s.o.Account, st.owner(ctx), c.Name)
			st.service = record.FoldService(account + "." + dir)
			out = append(out, st)
		default:
			st.parts = append(st.parts, dir)
		}
	}
	if slices.ContainsFunc(st.parts, isPart) || len(st.parts) > 0 && IsNamed(c.Name) {
		if st.service, err = st.category(ctx); err != nil {
			return nil, err
		}
		out = append(out, st)
	}
	return out, ctx.Err()
}

// category is the service of resource logs: that of the container's name, or else that of
// the first record.
func (st *stream) category(ctx context.Context) (string, error) {
	if name, ok := strings.CutPrefix(st.container.Name, categoryPrefix); ok && name != "" {
		return record.FoldService(name), nil
	}
	for _, prefix := range []string{prefix, exportPrefix} {
		if name, ok := strings.CutPrefix(st.container.Name, prefix); ok && name != "" {
			return record.FoldService(name), nil
		}
	}
	first := st.peek(ctx, "category", "Category")
	return record.FoldService(cmp.Or(first, st.container.Name, "resource-logs")), ctx.Err()
}

// owner is the account that the first line of a classic log names, "" if there is none.
func (st *stream) owner(ctx context.Context) string { return st.peek(ctx, "owner-account-name") }

// peeked is how much of a blob is read for the name of its service.
const peeked = 256 << 10

// peek returns the first of some fields of the first sound line of the first blob with one;
// "" if there is none.
func (st *stream) peek(ctx context.Context, names ...string) string {
	tries := 0
	for o, err := range st.container.List(ctx, st.top, "") {
		if err != nil || tries == 3 {
			return ""
		}
		if o.Size == 0 || !strings.Contains(o.Key, "/") {
			continue
		}
		tries++
		b := Blob{Service: "-", Kind: st.kind, Key: o.Key, Size: min(o.Size, peeked), head: true, from: st.container}
		for c, err := range Read(ctx, &b, nil) {
			if err != nil {
				break
			}
			for i := range c.Lines {
				for _, name := range names {
					if v, ok := record.Lookup(c.Line(i), name); ok && record.IsString(v) && len(v) > 2 {
						return string(record.AppendUnescaped(nil, v[1:len(v)-1]))
					}
				}
			}
		}
	}
	return ""
}

// Span is a span of whole hours, both included. A zero time leaves that end open.
type Span struct{ From, To time.Time }

// Blob is a blob of a service and hour, as it was listed.
type Blob struct {
	Service string
	Kind    formats.Kind
	Key     string
	Size    int64  // when it was listed
	Version string // of the listed state, "" if unknown
	Hour    time.Time
	// First and Last are the times of the first and the last record, to the second; zero if
	// the metadata do not tell them.
	First, Last time.Time

	container string
	from      Objects
	stream    *stream
	odd       bool // it is no log by its name
	head      bool // it is read up to Size, which is not the whole blob
}

// Path is the blob's container and key.
func (b *Blob) Path() string {
	if b.container == "" {
		return b.Key
	}
	return b.container + "/" + b.Key
}
