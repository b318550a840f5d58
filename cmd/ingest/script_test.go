package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
)

// env is shared by the tests of this package: Azurite takes a second to start.
var env testenv.Env

func TestMain(m *testing.M) {
	testscript.Main(environment{m}, map[string]func(){"ingest": main, "send": send})
}

// environment runs the tests, and then stops the servers that they started.
type environment struct{ m *testing.M }

// Run implements [testscript.TestingM].
func (e environment) Run() int { return env.Run(e.m) }

// The scripts test the view of users: output, messages and exit codes.
func TestScript(t *testing.T) {
	testkit.FullOnly(t, "tables of texts, in hundreds of processes")
	testscript.Run(t, testscript.Params{Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true, Setup: withStream(t),
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": testkit.Exits, "addresses": addresses}})
}
