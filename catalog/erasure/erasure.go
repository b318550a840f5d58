// Package erasure has the marks of runs that erase records (package retention/erase).
//
// A mark is an empty object _erase/<service>/<day>.<time>, made by the conditional create before a run
// makes or deletes anything of that service and day. It stays. Who makes a blob of other blobs looks
// for marks after its Create, and then for erased blobs that replace what it has used.
package erasure

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/catalog/horizon"
	"blobtail/storage"
)

const (
	// Patience is how long after its last change a run that erases lists again.
	Patience = 10 * time.Minute
	// Longest bounds a step that makes a blob of blobs, from its look for marks to its Create.
	Longest = Patience / 2
	// Fresh is how long after a mark its run may change the day without another look for holds.
	Fresh = 2 * Patience
)

const prefix = "_erase/"

func key(service string, day horizon.Day) string {
	return prefix + service + "/" + day.Start().Format("20060102") + "."
}

// Mark marks a service and a day for a run that works on it now.
func Mark(ctx context.Context, store storage.BlobStore, service string, day horizon.Day, now time.Time) error {
	err := store.Create(ctx, fmt.Sprintf("%s%016x", key(service, day), now.UnixNano()), nil, storage.Attrs{})
	if err != nil && !errors.Is(err, storage.ErrExist) {
		return fmt.Errorf("mark %s of %s: %w", day, service, err)
	}
	return nil
}

// Marked lists the directories of the days that were marked after a time, such as web/2026/11/20.
func Marked(ctx context.Context, store catalog.Store, after time.Time) (days map[string]bool, err error) {
	days = map[string]bool{}
	for o, err := range store.List(ctx, prefix, "") {
		if err != nil {
			return days, err
		}
		if day, err := time.Parse("20060102", strings.TrimSuffix(path.Base(o.Key), path.Ext(o.Key))); err == nil && o.Created.After(after) {
			days[path.Base(path.Dir(o.Key))+day.Format("/2006/01/02")] = true
		}
	}
	return days, nil
}

// Outrun reports whether an erased blob of the hour of a name replaces one of some batches, apart from
// those that the caller knows. It lists nothing but marks if the day has none.
func Outrun(ctx context.Context, store catalog.Store, look catalog.Lookup, of blobfmt.Name, ids []blobfmt.BatchID,
	known func(*catalog.Entry) bool) (bool, error) {
	marked := false
	for _, err := range store.List(ctx, key(of.Service, horizon.DayOf(of.Period)), "") {
		if marked = true; err != nil {
			return false, err
		}
		break
	}
	if !marked {
		return false, nil
	}
	hour := of.Period.Truncate(time.Hour)
	for e, err := range catalog.Blobs(ctx, store, of.Service, catalog.Range{From: hour, To: hour.Add(time.Hour)}) {
		if err != nil {
			return false, err
		}
		if !e.Meta.Erased || known(&e) {
			continue
		}
		replaces, err := look(&e)
		if err != nil || slices.ContainsFunc(ids, func(id blobfmt.BatchID) bool { return slices.Contains(replaces, id) }) {
			return err == nil, err
		}
	}
	return false, nil
}

// Within reports whether no more than a time has passed since begun, of time.Now. The monotonic clock
// stands still while a host sleeps, and the other one may be set.
func Within(begun time.Time, most time.Duration) bool {
	wall := time.Now().Round(0).Sub(begun.Round(0))
	return time.Since(begun) < most && 0 <= wall && wall < most
}
