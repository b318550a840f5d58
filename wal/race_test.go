//go:build race

package wal_test

// The race detector makes scans some ten times slower.
const raceEnabled = true
