package times

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// The quick way reads the times that the scan reads, and no others.
func TestISOPrefix(t *testing.T) {
	heads := []string{"2026-11-20T15:04:05", "2026-11-20 15:04:05", "2026-02-30T15:04:05", "2026-11-20T24:00:00", "2026-11-20T15:04:60", "2026/11/20 15:04:05", "2026-11-20  15:04:05", "2026-11-20T15:04"}
	fractions := []string{"", ".257", ",257", ".", ",", ".1234567890123", ".257.1", "7"}
	tails := []string{"", "Z", "z", " Z", "+01:00", " +0100", " UTC", " GMT+1", " CET", " CE", " INFO", " [x]", "] x", "\t+0100", "\tINFO", " PM", " am", " Europe/Vienna x", " EST5", " x", " Info:", "  x", " EDT]", ";x", "-x", " -5", "Zulu", " 12", " ERROR/x", " WET+1", ", x", "\"", "|a", " |"}
	quick := 0
	for range 50_000 {
		text := heads[rand.IntN(len(heads))] + fractions[rand.IntN(len(fractions))] + tails[rand.IntN(len(tails))]
		if rand.IntN(4) == 0 {
			at := rand.IntN(len(text))
			text = text[:at] + string(rune(" :-TZ0+9/a"[rand.IntN(10)])) + text[at:]
		}
		ns, n := new(Reader).isoPrefix([]byte(text), true)
		if n == 0 {
			continue
		}
		quick++
		r := Reader{}
		c := scan{r: &r, s: []byte(text)}
		if !c.time() {
			t.Fatalf("%q is no time for the scan, and %s for the quick way", text, time.Unix(0, ns).UTC())
		}
		if want, part := c.value(); part != Full || want != ns || c.at != n {
			t.Fatalf("%q: %d bytes, %d; the scan says %d bytes, %d, part %d", text, n, ns, c.at, want, part)
		}
		if strings.HasPrefix(text[n:], "+") && text[n-1] != 'Z' { // behind Z the scan leaves it out too
			t.Fatalf("%q: an offset is left out", text)
		}
	}
	if quick < 1000 {
		t.Errorf("%d texts were read quickly", quick)
	}
}
