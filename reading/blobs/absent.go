package blobs

import (
	"errors"
	"fmt"
	"slices"
)

// NoServiceError says that nothing is stored under a name or glob.
type NoServiceError struct {
	Name string
	// Near is a service of a similar name, or "".
	Near string
	// Stored are all services in blobs, sorted; nil for a glob.
	Stored []string
	// Beside are the errors of the further names and globs of the query, which mean no service
	// either.
	Beside []*NoServiceError
}

func (e *NoServiceError) Error() string {
	if isGlob(e.Name) {
		return fmt.Sprintf("no service matches %q", e.Name)
	}
	return fmt.Sprintf("no service %q", e.Name)
}

// all is the error with those beside it.
func (e *NoServiceError) all() []*NoServiceError {
	return append([]*NoServiceError{e}, e.Beside...)
}

// Miss decides about names and globs that mean no service. If others of the query do, the names
// are absent, and nothing is missing because of them. If none does, it returns the error of the
// first. That a glob matches nothing is worth a word only then.
func (s *Summary) Miss(names, globs []*NoServiceError, others bool) error {
	if all := slices.Concat(names, globs); !others && len(all) > 0 {
		all[0].Beside = all[1:]
		return all[0]
	}
	s.Absent = append(s.Absent, names...)
	return nil
}

// Unsettled are the names and globs that a read has not found, by its error and its summary.
func (s *Summary) Unsettled(err error) (names []string) {
	all := slices.Clone(s.Absent)
	if none, ok := errors.AsType[*NoServiceError](err); ok {
		all = append(all, none.all()...)
	}
	for _, none := range all {
		names = append(names, none.Name)
	}
	return names
}

// Settle decides about the names that a read has not found, by its error and its summary: exists
// reports whether a service is elsewhere. It returns the error that is left.
func (s *Summary) Settle(err error, exists func(*NoServiceError) bool) error {
	s.Absent = slices.DeleteFunc(s.Absent, exists)
	none, ok := errors.AsType[*NoServiceError](err)
	if !ok {
		return err
	}
	all := none.all()
	left := slices.DeleteFunc(slices.Clone(all), exists)
	if len(left) == len(all) {
		return err
	}
	return s.Miss(slices.DeleteFunc(left, func(of *NoServiceError) bool { return isGlob(of.Name) }), nil, true)
}

// Elsewhere is the warning in place of the error if records of the service exist outside of blobs,
// and none of them is wanted; unread: if there may be some that could not be read.
func (e *NoServiceError) Elsewhere(unread bool) error {
	if unread {
		return fmt.Errorf("%w in blobs", e)
	}
	return fmt.Errorf("%s has records in no blob yet, and none that match", e.Name)
}
