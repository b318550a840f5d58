package cli

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
)

// number is the version of the three programs. The Makefile reads it for the SBOMs.
const number = "0.9.0"

// The Makefile has the linker set the commit; "" in other builds.
var stampedCommit = ""

// Version is the version and the commit of the build, such as 0.9.0+0123456789ab; without the
// commit if that is unknown. It has no spaces.
func Version() string {
	if commit := built(); commit != "" {
		return number + "+" + commit
	}
	return number
}

// Build is the output of --version: the program, its version, its commit, and the version
// of Go.
func Build(program string) string {
	return fmt.Sprintf("%s %s, commit %s, %s", program, number, cmp.Or(built(), "unknown"), runtime.Version())
}

// PrintVersion prints the version for a command line that asks for nothing else, before a parser is
// made. It reports whether it did.
func PrintVersion(program string, args []string, w io.Writer) (printed bool, err error) {
	if !slices.Equal(args, []string{"--version"}) {
		return false, nil
	}
	_, err = fmt.Fprintln(w, Build(program))
	return true, err
}

// built returns the commit of the build, "" if unknown: 12 digits, and "-changed" if files were
// changed.
func built() (commit string) {
	if stampedCommit != "" {
		return stampedCommit // the list of modules takes long to read
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	changed := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			commit = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "-changed"
		}
	}
	if commit == "" {
		return ""
	}
	return commit + changed
}
