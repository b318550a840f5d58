//go:build race

package newest_test

// The race detector makes everything some ten times slower.
const raceEnabled = true
