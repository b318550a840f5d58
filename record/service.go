package record

import (
	"bytes"
	"path"
	"strings"
)

// RejectedService is the system's own service for rejected lines.
const RejectedService = "_rejected"

// UnknownService is the service of a record that names none.
const UnknownService = "unknown"

// maxService is the length of the longest service name.
const maxService = 63

// FoldService makes a valid service name of any text: upper case becomes lower, each
// run of other bytes "-", and the name is cut at 63. ".." becomes ".", leading and
// trailing "._-" are removed; an empty result becomes "unknown". The result never
// begins with "_", so no client can write to a system service. Folding twice changes
// nothing.
func FoldService(name string) string {
	var buf [maxService]byte
	dst := buf[:0]
	other := false
	for i := 0; i < len(name) && len(dst) < maxService; i++ {
		c := name[i]
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if isServiceByte(c) {
			dst = append(dst, c)
		} else if !other {
			dst = append(dst, '-')
		}
		other = !isServiceByte(c)
	}
	// The cut came first: removing dots later makes no room for more.
	n := 0
	for _, c := range dst {
		if c == '.' && n > 0 && dst[n-1] == '.' {
			continue
		}
		dst[n] = c
		n++
	}
	switch dst = bytes.Trim(dst[:n], "._-"); {
	case len(dst) == 0:
		return UnknownService
	case string(dst) == name:
		return name
	}
	return string(dst)
}

func isServiceByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || isTrimmed(c)
}

func isTrimmed(c byte) bool { return c == '.' || c == '_' || c == '-' }

// ValidService reports whether name is a service that clients may write to:
// [a-z0-9][a-z0-9._-]{0,62}, no "..", no trailing ".".
func ValidService(name string) bool {
	if name == "" || len(name) > maxService || isTrimmed(name[0]) || name[len(name)-1] == '.' {
		return false
	}
	for i := range len(name) {
		if !isServiceByte(name[i]) {
			return false
		}
	}
	return !strings.Contains(name, "..")
}

// ValidStored reports whether name may be the service of a stored blob: a valid
// service, or one of the system's own, which is "_" and a valid service.
func ValidStored(name string) bool {
	return ValidService(strings.TrimPrefix(name, "_"))
}

// MatchService reports whether a pattern matches a stored service. A pattern is a
// name or a glob like those of [path.Match]. It matches a system service, with a name
// that begins with "_", only if it begins with "_" itself. A pattern that is not
// valid matches none.
func MatchService(pattern, service string) bool {
	ok, err := path.Match(pattern, service)
	return ok && err == nil && (!strings.HasPrefix(service, "_") || pattern[0] == '_')
}

// ValidPattern reports whether a pattern of services is a name or a glob: it is not
// empty, and its brackets and backslashes are complete.
func ValidPattern(pattern string) bool {
	_, err := path.Match(pattern, "")
	return err == nil && pattern != ""
}
