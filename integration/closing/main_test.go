package closing_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// Worlds are small and leave much garbage. Collecting less often makes them quicker.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}
