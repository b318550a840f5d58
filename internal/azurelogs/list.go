package azurelogs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/internal/azurelogs/formats"
	"blobtail/storage"
	"blobtail/storage/fanout"
)

// atOnce is how many directories are listed at once.
const atOnce = 16

// Blobs lists the blobs of a service in a span of hours, by hour and key. The error is a
// [*NoServiceError] for an unknown service.
func (s *Source) Blobs(ctx context.Context, service string, span Span) ([]Blob, error) {
	streams, err := s.find(ctx, service)
	if err != nil {
		return nil, err
	}
	var all []Blob
	for _, st := range streams {
		blobs, err := st.blobs(ctx, service, span)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", service, err)
		}
		all = append(all, blobs...)
	}
	slices.SortFunc(all, func(a, b Blob) int {
		return cmp.Or(a.Hour.Compare(b.Hour), strings.Compare(a.Key, b.Key))
	})
	return all, nil
}

func (st *stream) blobs(ctx context.Context, service string, span Span) ([]Blob, error) {
	roots, err := st.resources(ctx)
	if err != nil {
		return nil, err
	}
	found := make([][]Blob, len(roots))
	err = fanout.Each(ctx, len(roots), atOnce, func(ctx context.Context, i int) (err error) {
		found[i], err = st.below(ctx, roots[i], service, span)
		return err
	})
	if err != nil || st.kind != formats.Resource {
		return slices.Concat(found...), err
	}
	odd, err := st.odd(ctx, roots, service, span)
	return append(slices.Concat(found...), odd...), err
}

// resources returns the prefixes before the hours. Those of resource logs have the ids of
// resources, of several levels.
func (st *stream) resources(ctx context.Context) ([]string, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.roots != nil {
		return st.roots, nil
	}
	roots, level := []string{}, []string{""}
	isYear := func(name string) bool { return strings.HasPrefix(name, "y=") }
	for len(level) > 0 {
		below := make([][]string, len(level))
		err := fanout.Each(ctx, len(level), atOnce, func(ctx context.Context, i int) error {
			for name, err := range st.container.Dirs(ctx, level[i]) {
				if err != nil {
					return err
				}
				below[i] = append(below[i], name)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		var next []string
		for i, names := range below {
			if slices.ContainsFunc(names, isYear) {
				roots = append(roots, level[i])
			}
			// A resource may have others below it, such as the slots of a web site.
			for _, name := range slices.DeleteFunc(names, isYear) {
				next = append(next, level[i]+name+"/")
			}
		}
		level = next
	}
	st.roots = roots
	return roots, nil
}

// below lists the blobs below a root. One LIST has all of them: their keys are in the order
// of hours, and it begins with the longest prefix that all of the span have.
func (st *stream) below(ctx context.Context, root, service string, span Span) (out []Blob, err error) {
	prefix, after := root, ""
	if !span.From.IsZero() {
		after = root + span.From.UTC().Format(st.layout)
	}
	if !span.From.IsZero() && !span.To.IsZero() {
		to := root + span.To.UTC().Format(st.layout)
		n := 0
		for n < len(to) && to[n] == after[n] {
			n++
		}
		prefix = after[:n]
	}
	for o, err := range st.container.List(ctx, prefix, after) {
		if err != nil {
			return nil, err
		}
		b, ok := st.blob(root, service, &o)
		switch {
		case !ok:
		case !span.To.IsZero() && b.Hour.After(span.To):
			if b.Hour.Sub(span.To) > 24*time.Hour {
				return out, nil // and not at once, since some accounts have another order
			}
		case b.Hour.Before(span.From):
		default:
			out = append(out, b)
		}
	}
	return out, nil
}

// blob makes a Blob of a listed object; ok is false if it is no log.
func (st *stream) blob(root, service string, o *storage.Blob) (b Blob, ok bool) {
	if len(o.Key) < len(root)+len(st.layout)+1 || o.Size == 0 {
		return b, false
	}
	text := o.Key[len(root):][:len(st.layout)]
	hour, err := time.Parse(st.layout, text)
	if err != nil || hour.Format(st.layout) != text || strings.HasSuffix(o.Key, "/") || !strings.Contains(o.Key[len(root)+len(text):], "/") {
		return b, false
	}
	b = Blob{Service: service, Kind: st.kind, Key: o.Key, Size: o.Size, Version: o.Version, Hour: hour, container: st.container.Name, from: st.container, stream: st}
	if st.kind == formats.Classic {
		first, err1 := time.Parse(time.RFC3339, o.Metadata["starttime"])
		last, err2 := time.Parse(time.RFC3339, o.Metadata["endtime"])
		if err1 == nil && err2 == nil && !last.Before(first) {
			b.First, b.Last = first, last
		}
	}
	return b, true
}

// Years returns the years in which a service has logs, in order. It goes by the names of
// directories.
func (s *Source) Years(ctx context.Context, service string) ([]int, error) {
	streams, err := s.find(ctx, service)
	if err != nil {
		return nil, err
	}
	var years []int
	for _, st := range streams {
		roots, err := st.resources(ctx)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", service, err)
		}
		for _, root := range roots {
			for dir, err := range st.container.Dirs(ctx, root) {
				if err != nil {
					return nil, fmt.Errorf("list %s: %w", service, err)
				}
				year, err := strconv.Atoi(strings.TrimPrefix(dir, "y="))
				if err == nil && len(strings.TrimPrefix(dir, "y=")) == len("2006") {
					years = append(years, year)
				}
			}
		}
	}
	slices.Sort(years)
	return slices.Compact(years), nil
}
