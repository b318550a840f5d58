package main

import (
	"bytes"
	"strings"
	"testing"

	"blobtail/internal/cli"
	"blobtail/reading/blobs"
)

// A read of cooler tiers is told with its price, and not to those who want no notes.
func TestCoolIsTold(t *testing.T) {
	var said bytes.Buffer
	a := &app{Console: cli.Console{Name: "logquery", Stderr: &said}}
	a.tellCool(&blobs.CoolError{Blobs: 5, Bytes: map[string]int64{"cool": 20e9, "cold": 10e9}})
	for _, want := range []string{"the read may fetch up to 10.0 GB of the tier cold and 20.0 GB of the tier cool, in 5 blobs; ", "(USD 0.5000 at the prices of 2026-11-26)", "narrower range"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("%s lacks %q", said.String(), want)
		}
	}
	said.Reset()
	a.tellCool(&blobs.CoolError{Blobs: 1, Bytes: map[string]int64{"smart": 2e9}, Fetched: true})
	if !strings.Contains(said.String(), "the read has fetched so far 2.0 GB of the tier smart, in 1 blob; ") || strings.Contains(said.String(), "USD") {
		t.Error(said.String())
	}
	said.Reset()
	a.Quiet = true
	a.tellCool(&blobs.CoolError{Bytes: map[string]int64{"cool": 2e9}})
	if said.Len() > 0 {
		t.Error(said.String())
	}
}
