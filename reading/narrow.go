package reading

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"blobtail/internal/access"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
	"blobtail/record"
)

// reach returns the names and globs to ask ingesters for, if a query names some services: the same,
// if the holder of the token may read all that they match; else names that the holder may read, and
// globs of the token. exact says that no further services match. A name that the holder may not
// read is absent, as if it did not exist; without another name or glob it is the error.
func (s *Store) reach(asked []string) (services []string, exact bool, absent []*blobs.NoServiceError, err error) {
	var globs []string
	for _, name := range asked {
		if !record.ValidStored(name) {
			globs = append(globs, name)
			continue
		}
		if !s.May(name) {
			absent = append(absent, &blobs.NoServiceError{Name: name})
			continue
		}
		services = append(services, name)
	}
	if len(absent) > 0 && len(absent) == len(asked) {
		return nil, false, nil, absent[0]
	}
	if exact = !slices.ContainsFunc(globs, func(g string) bool { return !s.mayAll(g) }); exact {
		services = append(services, globs...)
	} else {
		for _, may := range s.token.Read {
			if !record.ValidStored(may) || matches(globs, may) {
				services = append(services, may)
			}
		}
	}
	slices.Sort(services)
	return slices.Compact(services), exact, absent, nil
}

// mayAll reports whether the holder of the token may read all services that a glob matches.
func (s *Store) mayAll(glob string) bool {
	if s.token == nil || s.token.Role == access.Peer {
		return true
	}
	return slices.Contains(s.token.Read, glob) || glob != "" && glob[0] != '_' && s.token.MayReadAll()
}

func matches(globs []string, service string) bool {
	return slices.ContainsFunc(globs, func(g string) bool { return record.MatchService(g, service) })
}

// existing returns a function that reports whether a name or a glob of a query means a service that
// the query chooses and the holder of the token may read. That function lists the services at its
// first call. It asks ingesters for a name or a glob that means no listed service: the list may be
// some seconds old, and lack services that begin.
func (s *Store) existing(ctx context.Context, m *member) func(name string) bool {
	list := sync.OnceValue(func() []string {
		all, _ := s.Names(ctx)
		return all
	})
	return func(name string) bool {
		all, may := list(), s.mayAll(name) && m.query.Choose == nil
		if record.ValidStored(name) {
			may = s.May(name)
		}
		if slices.ContainsFunc(all, func(of string) bool { return record.MatchService(name, of) && m.choose(of) }) {
			return true
		}
		if !may {
			return false // records that ingesters hold may be of others
		}
		held, _ := s.r.o.Logs.Holds(ctx, name) // nobody can tell: then the read has a problem
		return held
	}
}

// exists returns a function that reports whether a service that is in no blob exists, or may, and
// warns of it in out, if it was asked for by name. unread says that records of ingesters are
// missing: they may be those of the service.
func (s *Store) exists(ctx context.Context, m *member, unread bool, out *blobs.Outcome) func(none *blobs.NoServiceError) bool {
	there, named := s.existing(ctx, m), m.query.Choose == nil
	return func(none *blobs.NoServiceError) bool {
		if !unread && !there(none.Name) {
			return false
		}
		if named && !unread && (m.mode == Off || s.BlobsAlone()) {
			out.Warnings = append(out.Warnings, fmt.Errorf("%s has no blob yet; ingesters have its records", none.Name))
		} else if named && (unread || out.Records == 0 && m.mode != unflushed.Only) { // it may be in blobs alone
			out.Warnings = append(out.Warnings, none.Elsewhere(unread))
		}
		return true
	}
}

// settle decides which names of a read are absent, as [unflushed.Gathered.Settle] does, by the
// rights of the token's holder. hidden are those that the holder may not read. It returns the error
// that is left.
func (s *Store) settle(exists func(*blobs.NoServiceError) bool, out *blobs.Outcome, hidden []*blobs.NoServiceError, err error) error {
	out.Absent = append(out.Absent, hidden...)
	return out.Settle(err, func(none *blobs.NoServiceError) bool {
		s.scrub(none)
		return exists(none)
	})
}

// scrub takes the names of services that the holder of the token may not read out of an error.
func (s *Store) scrub(none *blobs.NoServiceError) {
	for _, of := range none.Beside {
		s.scrub(of)
	}
	none.Stored = slices.DeleteFunc(slices.Clone(none.Stored), func(name string) bool { return !s.May(name) })
	if none.Near != "" && !s.May(none.Near) {
		none.Near = ""
	}
}

// gapsOf returns those gaps that concern some names and globs.
func (s *Store) gapsOf(asked []string, gaps []unflushed.Gap) []unflushed.Gap {
	return slices.DeleteFunc(slices.Clone(gaps), func(g unflushed.Gap) bool { return !matches(asked, g.Service) || !s.May(g.Service) })
}
