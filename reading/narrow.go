package reading

import (
	"context"
	"errors"
	"slices"
	"sync"

	"blobtail/internal/access"
	"blobtail/newest"
	"blobtail/query"
	"blobtail/record"
	"blobtail/storage"
)

// reach returns the names and globs to ask ingesters for, if a query names some services: the
// same, if the client may read all that they match; else names that it may read, and globs of
// its token. exact says that no further services match. A name that the client may not read is
// absent, as if it did not exist; without another name or glob it is the error.
func (c *Client) reach(asked []string) (services []string, exact bool, absent []*query.NoServiceError, err error) {
	var globs []string
	for _, name := range asked {
		if !record.ValidStored(name) {
			globs = append(globs, name)
			continue
		}
		if !c.May(name) {
			absent = append(absent, &query.NoServiceError{Name: name})
			continue
		}
		services = append(services, name)
	}
	if len(absent) > 0 && len(absent) == len(asked) {
		return nil, false, nil, absent[0]
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
	return slices.Compact(services), exact, absent, nil
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
		names = slices.DeleteFunc(names, func(s string) bool { return !m.choose(s) || !c.May(s) })
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

// Unmatched decides about names and globs of a query that mean no service of the store, as
// [Client.Query] does beside others: it returns the error, unless there is one elsewhere.
func (c *Client) Unmatched(ctx context.Context, asked []string, out *query.Outcome) error {
	exists := c.exists(ctx, out)
	var absent, globs []*query.NoServiceError
	for _, name := range asked {
		none := &query.NoServiceError{Name: name}
		switch {
		case exists(none):
		case record.ValidStored(name):
			absent = append(absent, none)
		default:
			globs = append(globs, none)
		}
	}
	return out.Miss(absent, globs, len(absent)+len(globs) < len(asked))
}

// existing returns a function that reports whether a name or a glob means a service that the
// client may read. It lists them at the first call. What the list does not have, ingesters are
// asked for: it may be some seconds old, and lack services that begin.
func (c *Client) existing(ctx context.Context) func(name string) bool {
	list := sync.OnceValue(func() []string {
		all, _ := c.Services(ctx)
		return all
	})
	return func(name string) bool {
		all, may := list(), c.mayAll(name)
		if record.ValidStored(name) {
			may = c.May(name)
		}
		if slices.ContainsFunc(all, func(s string) bool { return record.MatchService(name, s) }) {
			return true
		}
		if !may {
			return false // what ingesters hold may be of others
		}
		held, _ := c.r.o.Logs.Holds(ctx, name) // nobody can tell: then the read has a problem
		return held
	}
}

// exists returns a function that reports whether a service that is in no blob exists, or may, and
// warns of it in out. So far out tells of ingesters alone: if records of theirs are missing, they
// may be those of the service.
func (c *Client) exists(ctx context.Context, out *query.Outcome) func(none *query.NoServiceError) bool {
	there, unread := c.existing(ctx), !out.Complete()
	return func(none *query.NoServiceError) bool {
		if !unread && !there(none.Name) {
			return false
		}
		if unread || out.Records == 0 {
			out.Warnings = append(out.Warnings, none.Elsewhere(unread))
		}
		return true
	}
}

// settle decides which names of a read are absent, as [newest.Gathered.Settle] does, by what the
// client may read. hidden are those that it may not. It returns the error that is left.
func (c *Client) settle(exists func(*query.NoServiceError) bool, out *query.Outcome, hidden []*query.NoServiceError, err error) error {
	out.Absent = append(out.Absent, hidden...)
	return out.Settle(err, func(none *query.NoServiceError) bool {
		c.scrub(none)
		return exists(none)
	})
}

// scrub takes the names of services that the client may not read out of an error.
func (c *Client) scrub(none *query.NoServiceError) {
	for _, of := range none.Beside {
		c.scrub(of)
	}
	none.Stored = slices.DeleteFunc(slices.Clone(none.Stored), func(s string) bool { return !c.May(s) })
	if none.Near != "" && !c.May(none.Near) {
		none.Near = ""
	}
}

// gapsOf returns those gaps that concern some names and globs.
func (c *Client) gapsOf(asked []string, gaps []newest.Gap) []newest.Gap {
	return slices.DeleteFunc(slices.Clone(gaps), func(g newest.Gap) bool { return !matches(asked, g.Service) || !c.May(g.Service) })
}
