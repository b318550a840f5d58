//go:build race

package complete_test

// The race detector makes a simulation some ten times slower.
const raceEnabled = true
