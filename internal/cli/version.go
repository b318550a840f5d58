package cli

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
)

// The Makefile has the linker set the version and the commit; "" in other builds.
var stamped, stampedCommit = "", ""

// Version is the version of the build: the stamped one, else that of the module,
// else the commit. It has no spaces.
func Version() string {
	version, commit := built()
	return cmp.Or(version, commit, "(devel)")
}

// Build is the output of --version: the program, its version, its commit, and the version
// of Go.
func Build(program string) string {
	_, commit := built()
	return fmt.Sprintf("%s %s, commit %s, %s", program, Version(), cmp.Or(commit, "unknown"), runtime.Version())
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

// built returns the version and the commit of the build, "" if unknown. A commit has 12
// digits. If the build itself noted it, "+changed" follows if files were changed; a stamped version
// says that itself.
func built() (version, commit string) {
	version, commit = stamped, stampedCommit
	if version != "" && commit != "" {
		return version, commit // the list of modules takes long to read
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version, commit
	}
	if version == "" && info.Main.Version != "(devel)" {
		version = info.Main.Version
	}
	changed := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			commit = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+changed"
		}
	}
	return version, commit + changed
}
