//go:build !linux

package openstore

import "runtime"

// openDir refuses: locks, durable names and the tables of a directory are known to
// work on Linux alone.
func openDir(spec Spec, _ bool, _ Options) (*Store, error) {
	return nil, &BadSpecError{spec.String(), "a store in a directory needs Linux, and this is " + runtime.GOOS + "; set BLOBTAIL_STORE or --store to azure:[ACCOUNT/]CONTAINER"}
}
