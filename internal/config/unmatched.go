package config

import (
	"fmt"
	"iter"
	"strconv"
	"strings"

	"blobtail/internal/spelling"
	"blobtail/internal/units"
	"blobtail/record"
)

// Unmatched has a note for each rule of retention, each counter, and each rule of records, whose
// pattern matches no service, with the nearest names that there are. names are the folders of the
// store, as [storage.BlobStore.Dirs] lists them: it is not asked for them without a pattern, and
// its error is returned. A store without services has no note.
func (c Config) Unmatched(names iter.Seq2[string, error]) (notes []string, err error) {
	var keys, patterns []string
	add := func(list string, i int, pattern string) {
		if pattern != "" {
			keys, patterns = append(keys, list+"["+strconv.Itoa(i)+"].service"), append(patterns, pattern)
		}
	}
	for i, r := range c.Retention.Rules {
		add("retention.rules", i, r.Service)
	}
	for i, r := range c.Counters {
		add("counters", i, r.Service)
	}
	for i, r := range c.Rules {
		add("rules", i, r.Service)
	}
	if len(keys) == 0 {
		return nil, nil
	}
	var services []string
	for name, err := range names {
		if err != nil {
			return nil, err
		}
		if record.ValidService(name) || name == record.RejectedService {
			services = append(services, name)
		}
	}
	for i, pattern := range patterns {
		matched, near := false, []string(nil)
		for _, s := range services {
			matched = matched || record.MatchService(pattern, s)
			if len(near) < 3 && !matched && resembles(pattern, s) {
				near = append(near, s)
			}
		}
		if matched || len(services) == 0 {
			continue
		}
		note := fmt.Sprintf("%s: %q matches none of the %s stored so far", keys[i], pattern, units.Count(len(services), "service"))
		if len(near) > 0 {
			note += "; is it meant for " + strings.Join(near, ", ") + "?"
		}
		notes = append(notes, note)
	}
	return notes, nil
}

// resembles reports whether the begin or the end of a service is near the text before the first,
// or behind the last, sign of a pattern.
func resembles(pattern, service string) bool {
	const signs = `*?[]\`
	begin, end := pattern, ""
	if i := strings.IndexAny(pattern, signs); i >= 0 {
		begin, end = pattern[:i], pattern[strings.LastIndexAny(pattern, signs)+1:]
	}
	var begins, ends []string
	for more := -1; more <= 1; more++ { // a letter too many, or one too few
		begins = append(begins, service[:max(0, min(len(begin)+more, len(service)))])
		ends = append(ends, service[max(0, len(service)-max(0, len(end)+more)):])
	}
	return spelling.Near(begin, begins) != "" || spelling.Near(end, ends) != ""
}
