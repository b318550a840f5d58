package config_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"blobtail/internal/config"
	"blobtail/internal/dev/testkit"
	"blobtail/tailindex"
)

// TestMaxAge ensures that flush.max-age is longer only where readers can ask the ingester for what
// is in no blob, and that print-config says why.
func TestMaxAge(t *testing.T) {
	t.Parallel()
	const dir, azure = "store: dir:/x\n", "store: azure:logs\n"
	const advertised = "ingest: {listen: '0.0.0.0:8514', advertise: 'http://10.0.0.5:8514'}\n"
	for name, tc := range map[string]struct {
		text string
		want time.Duration
		why  string // "": the value is set
	}{
		"the defaults":                    {"", 10 * time.Minute, "readers of a dir store"},
		"a dir store":                     {dir, 10 * time.Minute, "ingest.listen"},
		"a dir store without a row":       {dir + "ingest: {announce: best-effort}\n", 5 * time.Minute, "best-effort"},
		"a remote store":                  {azure, 5 * time.Minute, "ingest.advertise is empty"},
		"a remote store, open listener":   {azure + "ingest: {listen: '0.0.0.0:8514'}\n", 5 * time.Minute, "ingest.advertise is empty"},
		"advertised":                      {azure + advertised, 10 * time.Minute, "at ingest.advertise"},
		"advertised, announced if it can": {azure + strings.Replace(advertised, "}", ", announce: best-effort}", 1), 5 * time.Minute, "best-effort"},
		"advertised, and never asked":     {azure + advertised + "live: 'off'\n", 5 * time.Minute, "live is off"},
		"advertised, and one is asked":    {azure + advertised + "live: 'http://10.0.0.4:8514'\n", 10 * time.Minute, "at ingest.advertise"},
		"auto":                            {azure + "flush: {max-age: auto}\n", 5 * time.Minute, "ingest.advertise is empty"},
		"nothing":                         {dir + "flush: {max-age: ''}\n", 10 * time.Minute, "ingest.listen"},
		"set":                             {azure + advertised + "flush: {max-age: 90s}\n", 90 * time.Second, ""},
		"set to a value of auto":          {dir + "flush: {max-age: 5m}\n", 5 * time.Minute, ""},
	} {
		c, err := load(t, tc.text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		age, why := c.MaxAge()
		if age != tc.want || (why == "") != (tc.why == "") || !strings.Contains(why, tc.why) {
			t.Errorf("%s: %v because %q, want %v and %q", name, age, why, tc.want, tc.why)
		}
		text, err := c.YAML()
		line := regexp.MustCompile(`(?m)^  max-age: (.*)$`).FindSubmatch(text)
		want := config.Duration(tc.want).String()
		if tc.why != "" {
			want = "auto # " + want + ": " + why
		}
		if err != nil || line == nil || string(line[1]) != want {
			t.Errorf("%s: printed as %q, not %q (%v)", name, line, want, err)
		}
		if again, err := load(t, string(text)); err != nil || again.Flush != c.Flush {
			t.Errorf("%s: read back as %+v (%v), printed from %+v", name, again.Flush, err, c.Flush)
		}
	}
	for text, want := range map[string]string{"never": "is no duration; want", "0": "is too short; want more than 0", "0s": "is too short; want more than 0"} {
		want = `line 1: flush.max-age: "` + text + `" ` + want
		if _, err := load(t, "flush: {max-age: "+text+"}\n"); err == nil || !strings.Contains(err.Error(), want) || !strings.HasSuffix(err.Error(), "or auto") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestOldMinimum ensures that a file with the least size of earlier versions stays sound: their
// print-config wrote it beside any size.
func TestOldMinimum(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"flush: {size: 512KiB, min: 1MiB}", "flush: {size: 512KiB}", "flush: {size: 512KiB, min: 2MiB}"} {
		c, err := load(t, text)
		if err == nil {
			err = c.Validate()
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The bounds of tail.every are those that readers rely on.
func TestTailEveryBounds(t *testing.T) {
	t.Parallel()
	for every, ok := range map[time.Duration]bool{
		tailindex.LeastEvery: true, tailindex.MostEvery: true,
		tailindex.LeastEvery - time.Millisecond: false, tailindex.MostEvery + time.Millisecond: false,
	} {
		c := config.Default()
		c.Tail.Every = config.Auto(every)
		if err := c.Validate(); (err == nil) != ok {
			t.Errorf("%v: %v", every, err)
		}
	}
}

// Each rule of flush.max-age is needed: without it TestMaxAge fails.
func TestMaxAgeMutants(t *testing.T) {
	testkit.FullOnly(t, "the mutants are built without the race detector")
	const file = "internal/config/live.go"
	testkit.Simulation{
		Package: "internal/config", Test: "TestMaxAge", Prefix: "BLOBTAIL_MAXAGE", Broken: regexp.MustCompile(`(live_test\.go:\d+: .*)`),
	}.Catch(t, []testkit.Mutant{
		{Name: "long where nobody can be asked", Edits: []testkit.Edit{{file, `	if can {
`, `	if can || why != "" {
`}}},
		{Name: "long for an ingester that readers may not know", Edits: []testkit.Edit{{file, `	case c.Ingest.Announce == "best-effort":
`, `	case c.Ingest.Announce == "best-effort" && c.LiveOff():
`}}},
		{Name: "long though readers read blobs alone", Edits: []testkit.Edit{{file, `	case c.LiveOff():
`, `	case c.LiveOff() && c.Ingest.Advertise == "":
`}}},
		{Name: "short though an address is advertised", Edits: []testkit.Edit{{file, `	case c.Ingest.Advertise != "":
`, `	case c.Ingest.Advertise != "" && !c.Store.Remote():
`}}},
		{Name: "a value that is set is passed over", Edits: []testkit.Edit{{file, `	if c.Flush.MaxAge != 0 {
`, `	if c.Flush.MaxAge > Auto(maxAgeBlobs) {
`}}},
	})
}
