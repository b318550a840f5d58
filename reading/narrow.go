package reading

import (
	"context"
	"errors"
	"slices"

	"blobtail/internal/access"
	"blobtail/newest"
	"blobtail/query"
	"blobtail/record"
	"blobtail/storage"
)

// reach returns the names and globs to ask ingesters for, if a query names some services: the
// same, if the client may read all that they match; else names that it may read, and globs of
// its token. exact says that no further services match. A name that the client may not read is
// a [*query.NoServiceError], as if it did not exist.
func (c *Client) reach(asked []string) (services []string, exact bool, err error) {
	var globs []string
	for _, name := range asked {
		if !record.ValidStored(name) {
			globs = append(globs, name)
			continue
		}
		if !c.May(name) {
			return nil, false, &query.NoServiceError{Name: name}
		}
		services = append(services, name)
	}
	if exact = !slices.ContainsFunc(globs, func(g string) bool { return !c.mayAll(g) }); exact {
		services = append(services, globs...)
	} else {
		for _, may := range c.token.Read {
			if !record.ValidStored(may) || matches(globs, may) {
				services = append(services, may)
			}
		}
	}
	slices.Sort(services)
	return slices.Compact(services), exact, nil
}

// mayAll reports whether the client may read all services that a glob matches.
func (c *Client) mayAll(glob string) bool {
	if c.token == nil || c.token.Role == access.Peer {
		return true
	}
	return slices.Contains(c.token.Read, glob) || glob != "" && glob[0] != '_' && slices.Contains(c.token.Read, "*")
}

func matches(globs []string, service string) bool {
	return slices.ContainsFunc(globs, func(g string) bool { return record.MatchService(g, service) })
}

// named returns the services that a query means and chooses, in order, as far as the client may
// read them: those of the store, and of unflushed records. The store is asked after those have
// been gathered, so that no service is missing that has moved from a log to a blob.
func (c *Client) named(ctx context.Context, blobs *query.Reader, m *member, held []*query.Unflushed) ([]string, error) {
	asked := m.asked
	names := slices.DeleteFunc(slices.Clone(asked), func(name string) bool { return !record.ValidStored(name) })
	if len(names) == len(asked) {
		names = slices.DeleteFunc(names, func(s string) bool { return !m.choose(s) })
		slices.Sort(names)
		return slices.Compact(names), nil
	}
	all, err := blobs.Services(ctx, asked)
	switch {
	case err == nil:
	case errors.Is(err, storage.ErrNotExist) && len(held) > 0: // all is in the logs yet
		all = names
	default:
		return nil, err
	}
	for _, u := range held {
		all = append(all, u.Services()...)
	}
	slices.Sort(all)
	all = slices.DeleteFunc(slices.Compact(all), func(s string) bool {
		return ctx.Err() != nil || !matches(asked, s) || !m.choose(s) || !c.May(s) // each may be many globs
	})
	return all, ctx.Err()
}

// gapsOf returns those gaps that concern some names and globs.
func (c *Client) gapsOf(asked []string, gaps []newest.Gap) []newest.Gap {
	return slices.DeleteFunc(slices.Clone(gaps), func(g newest.Gap) bool { return !matches(asked, g.Service) || !c.May(g.Service) })
}
