//go:build race

package sim_test

// The race detector makes a simulation some ten times slower.
const raceEnabled = true
