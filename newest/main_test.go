package newest_test

import (
	"testing"

	"blobtail/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
