//go:build race

package retention_test

// The race detector makes random worlds several times slower.
const raceEnabled = true
