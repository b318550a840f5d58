package main

import (
	"testing"

	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/guide/guidetest"
)

// Each verb has the flags that it uses and no others; manual and completion have all.
func TestGuide(t *testing.T) {
	g := &grammar{Config: config.Default()}
	parser, err := cli.NewParser(g, "ingest", "It ingests.", vars())
	if err != nil {
		t.Fatal(err)
	}
	cli.Preset(parser)
	guidetest.Check(t, parser.Model, signposts(), "run", "check", "check-config", "print-config")
}
