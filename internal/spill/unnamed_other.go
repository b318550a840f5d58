//go:build !linux && !windows

package spill

import "os"

// unnamed makes a file without a name.
func unnamed(dir string) (*os.File, error) { return removed(dir) }
