package interop_test

import (
	"slices"
	"testing"
)

// clients are all shippers, in the order of the table.
func clients() []*client {
	return slices.Concat(npmClients(), pythonClients(), debianClients(), goClients(), replayedClients())
}

// TestPlain has each client send its records to an ingester that works.
func TestPlain(t *testing.T) { each(t, plain) }

// TestRestart stops the ingester while a client sends, once as an operator does and once as
// a power cut does.
func TestRestart(t *testing.T) { each(t, restart) }

// TestFullLog has the log of the ingester full for some seconds.
func TestFullLog(t *testing.T) { each(t, full) }

// TestLostAnswer cuts connections when the records are in the log and the answer is on its
// way.
func TestLostAnswer(t *testing.T) { each(t, lost) }

// each runs all clients under a fault.
func each(t *testing.T, f fault) {
	switch {
	case shared.mode == "":
		t.Skip("BLOBTAIL_INTEROP is not set: see make interop")
	case shared.mode == "record":
		t.Skip("see TestRecord")
	case shared.mode == "quick" && f != plain:
		t.Skip("not in the quick mode")
	}
	for _, c := range clients() {
		if c.slow && shared.mode == "quick" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			if c.without[f] != "" {
				t.Skip(c.without[f])
			}
			t.Parallel()
			c.version(t) // or skip
			drive(t, c, f)
		})
	}
}
