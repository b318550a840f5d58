package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"blobtail/internal/testkit"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"ingest": main, "send": send})
}

// The scripts test the view of users: output, messages and exit codes.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true, Setup: withStream(t),
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": testkit.Exits, "addresses": addresses}})
}
