//go:build race

package query_test

// The race detector makes reads some ten times slower.
const raceEnabled = true
