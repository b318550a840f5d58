package main

import (
	"testing"

	"blobtail/internal/cli"
	"blobtail/internal/guide/guidetest"
)

// Each verb has the flags that it uses and no others; manual and completion have all.
func TestGuide(t *testing.T) {
	a := &app{Console: cli.Console{Name: "retention"}}
	parser, err := cli.NewParser(&a.flags, a.Name, "It deletes.")
	if err != nil {
		t.Fatal(err)
	}
	guidetest.Check(t, parser.Model, signposts(), "plan", "apply", "drop", "erase", "hold", "holds", "release", "compact", "close",
		"accept-loss", "copy", "export", "promote")
}
