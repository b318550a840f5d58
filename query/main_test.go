package query_test

import (
	"testing"

	"go.uber.org/goleak"
)

// However a read ends, it leaves no goroutine running.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
