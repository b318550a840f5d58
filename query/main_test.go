package query_test

import (
	"testing"

	"go.uber.org/goleak"
)

// Whatever a read was ended by, it leaves nothing running.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
