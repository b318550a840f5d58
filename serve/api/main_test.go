package api_test

import (
	"testing"

	"blobtail/internal/dev/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
