package testkit

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Main runs the tests of a package, as its TestMain. They must leave no goroutine behind.
// Those of connections that a test closed have a minute to end.
func Main(m *testing.M) {
	code := m.Run()
	if code == 0 {
		err := goleak.Find()
		for begun := time.Now(); err != nil && time.Since(begun) < time.Minute; {
			err = goleak.Find()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
