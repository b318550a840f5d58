package blobs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"blobtail/catalog"
	"blobtail/catalog/closed"
	"blobtail/catalog/horizon"
	"blobtail/storage"
)

// vanished returns the days of which nothing was listed, and whose account a root names: somebody
// has removed the account with the blobs. Roots are read only if there is a day without anything,
// and by nobody who may read some services alone. A range without a beginning goes from the first day
// of which something was listed, and one without both ends to the last one.
func (a *asked) vanished(ctx context.Context, sum *Summary) (out []doubt) {
	services, from := map[string]int{}, map[string]horizon.Day{} // by their aliases
	last := min(a.reader.lastClosed(), horizon.DayOfNs(a.query.Range.last()))
	first := last + 1
	for i, service := range a.services {
		slices.Sort(a.met[i])
		until := last
		if n := len(a.met[i]); n > 0 && a.query.Range.To == Newest && a.query.Range.From == Oldest {
			until = min(last, a.met[i][n-1])
		}
		if day := a.lacking(i); day <= until {
			alias := closed.Alias(service)
			services[alias], from[alias], first = i, day, min(first, day)
		}
	}
	if first > last {
		return nil
	}
	overlap := func(begin, end string) bool { return begin <= last.String() && first.String() <= end }
	for root, err := range catalog.Roots(ctx, a.reader.store, overlap) {
		if ctx.Err() != nil || root == nil && (errors.Is(err, storage.ErrUnauthorized) || errors.Is(err, storage.ErrNotExist)) {
			return nil
		}
		if err != nil {
			sum.Problems = append(sum.Problems, fmt.Errorf("whether whole days are missing cannot be checked: %w", err))
			continue
		}
		for text, parts := range root.Days {
			day, _ := horizon.ParseDay(text)
			for alias := range parts {
				i, ok := services[alias]
				if _, met := slices.BinarySearch(a.met[i], day); ok && !met && from[alias] <= day && day <= last {
					a.found[i].any = true
					out = append(out, doubt{service: a.services[i], day: day, root: root.Name})
				}
			}
		}
	}
	return out
}

// lacking returns the first day of the listed range of which nothing was listed of a service.
func (a *asked) lacking(i int) horizon.Day {
	met, day := a.met[i], horizon.DayOfNs(a.back)
	if a.back == Oldest {
		if len(met) == 0 {
			return horizon.DayOfNs(Newest)
		}
		day = met[0]
	}
	if _, dropped := a.view.Dropped(a.services[i]); dropped.Set {
		day = max(day, dropped.First)
	}
	for _, at := range met {
		if at > day {
			break
		}
		day = max(day, at+1)
	}
	return day
}
