package blobs_test

import (
	"testing"

	"blobtail/internal/dev/testkit"
)

// However a read ends, it leaves no goroutine running.
func TestMain(m *testing.M) { testkit.Main(m) }
