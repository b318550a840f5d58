package query_test

import (
	"testing"

	"blobtail/internal/testkit"
)

// However a read ends, it leaves no goroutine running.
func TestMain(m *testing.M) { testkit.Main(m) }
