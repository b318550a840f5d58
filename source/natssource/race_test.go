//go:build race

package natssource_test

const raceDetector = true
