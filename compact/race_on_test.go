//go:build race

package compact_test

// The race detector makes compression some ten times slower.
const raceEnabled = true
