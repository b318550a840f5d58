package meaning_test

import (
	"strings"
	"testing"

	"blobtail/record/meaning"
)

// A record that has one key many times costs a few allocations, not some for each: a sender may send
// ten such records a second.
func TestManyRepeats(t *testing.T) {
	for name, src := range map[string]string{
		"fields": "{" + strings.Repeat(`"k":1,`, 99_999) + `"k":1}`,
		"nested": `{"o":{` + strings.Repeat(`"k":1,`, 99_999) + `"k":1}}`,
	} {
		var line []byte
		allocs := testing.AllocsPerRun(1, func() {
			p := meaning.NewReader()
			if _, err := p.Scan([]byte(src)); err != nil {
				t.Fatal(err)
			}
			line, _ = p.AppendLine(line[:0], &meaning.Defaults{})
		})
		if !strings.Contains(string(line), `"k.100000":1}`) {
			t.Errorf("%s: the line ends in %s", name, line[len(line)-100:])
		}
		if allocs > 1000 {
			t.Errorf("%s: %.0f allocations for 100,000 fields", name, allocs)
		}
	}
}
