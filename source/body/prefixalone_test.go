package body_test

import (
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/source/body"
)

// A line of a prefix alone is a record, also if it ends in a carriage return, and many of them are read
// as quickly as other lines.
func TestPrefixAlone(t *testing.T) {
	read := func(text string) int {
		g := body.NewGatherer()
		g.After = func(int) bool { return true }
		g.Arrive(body.Arrival{Service: "web", Time: arrival.UnixNano(), Source: "test", Clock: "the clock"})
		if err := body.Text([]byte(text), g); err != nil {
			t.Fatal(err)
		}
		return g.Accepted
	}
	for _, line := range []string{"web-1  |", "[pod/web-0/web]", "(pay pid=812)", "0|app |", "10:00:06 web.1 |", "\x1b[36mweb-1  |"} {
		for _, end := range []string{"\r\n", "\n", " \r\n", ""} {
			if got := read(line + end); got != 1 {
				t.Errorf("%q: %d records", line+end, got)
			}
		}
	}
	lines := func(n int) func() { return func() { read(strings.Repeat("web-1  | \n", n)) } }
	fine := func(short, long time.Duration) bool { return long < 30*short }
	if short, long := testkit.LeastCPU(lines(500), lines(5000), fine); !fine(short, long) {
		t.Errorf("500 empty lines took %v, and 5,000 took %v", short, long)
	}
}
