package azurelogs

import (
	"context"
	"errors"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// ErrOdd is the error of a read of a blob that is no log by its name; see [Blob.Odd].
var ErrOdd = errors.New("its name has no hour as those of logs have (y=2026/m=11/d=20/h=10/m=00/PT1H.json); " +
	"azurelogs.ignore in the configuration leaves its first part out")

// Odd reports whether the blob stands for all below the first part of its key: no log is there.
func (b *Blob) Odd() bool { return b.odd }

// odd lists a blob of each first part that no log is below, if it may be of a span by the day in its
// key, so that a read does not pass over it in silence. Its hour is none of a log.
func (st *stream) odd(ctx context.Context, roots []string, service string, span Span) (out []Blob, err error) {
	for _, part := range st.parts {
		isAbove := func(root string) bool { return strings.HasPrefix(root, part+"/") }
		ignores := func(glob string) bool { ok, _ := path.Match(glob, part); return ok }
		if strings.HasPrefix(part, "y=") || slices.ContainsFunc(roots, isAbove) || slices.ContainsFunc(st.o.Ignore, ignores) {
			continue
		}
		for o, err := range st.container.List(ctx, part+"/", "") {
			if err != nil {
				return nil, err
			}
			if o.Size > 0 && mayBeOf(o.Key, span) {
				b := Blob{Service: service, Kind: st.kind, Key: o.Key, Hour: span.From.Add(time.Hour + 1), odd: true}
				b.container = st.container.Name
				out = append(out, b)
				break
			}
		}
	}
	return out, nil
}

// mayBeOf reports whether a blob may have records of a span, by the day in its key.
func mayBeOf(key string, span Span) bool {
	m := regexp.MustCompile(`(20\d\d)(?:/|-|/?m=)?(\d\d)(?:/|-|/?d=)?(\d\d)`).FindStringSubmatch(key)
	if m == nil {
		return true
	}
	day, err := time.Parse("20060102", m[1]+m[2]+m[3])
	return err != nil || (span.From.IsZero() || day.AddDate(0, 0, 1).After(span.From)) && (span.To.IsZero() || !day.After(span.To))
}
