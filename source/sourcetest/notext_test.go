package sourcetest_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"blobtail/source/datadog"
	"blobtail/source/httpsource"
	"blobtail/source/sourcetest"
	"blobtail/source/splunk"
)

// Doors that take text refuse binary bodies with the reason, and keep nothing of them.
func TestNoText(t *testing.T) {
	rng := rand.New(rand.NewPCG(rand.Uint64(), 3))
	random := make([]byte, 5000)
	for i := range random {
		random[i] = byte(rng.Uint32())
	}
	for _, door := range []struct {
		path, kind string
		protocol   httpsource.Protocol
	}{
		{"/ingest/a", "text/plain", splunk.New()}, {"/ingest/a", "", splunk.New()}, {"/ingest/a", "application/octet-stream", splunk.New()},
		{"/services/collector/raw", "", splunk.New()}, {"/api/v2/logs", "text/plain", datadog.New()},
	} {
		for text, want := range map[string]string{
			"BZh91AY&SY" + strings.Repeat("x", 50): "bzip2", string(random): "is no text", "a log\nof some words\n": "",
		} {
			for _, encoding := range []string{"", "gzip"} {
				var log sourcetest.Log
				b := sourcetest.Encode(t, encoding, []byte(text))
				w := sourcetest.Send(log.Source(door.protocol), "POST", door.path, strings.NewReader(string(b)), "Content-Type", door.kind, "Content-Encoding", encoding)
				if want == "" {
					if w.Code >= 300 || len(log.Lines()) != 2 {
						t.Errorf("%s: %q: %d %s", door.path, text, w.Code, w.Body)
					}
				} else if w.Code < 400 || w.Code >= 500 || !strings.Contains(w.Body.String(), want) || len(log.Lines()) > 0 {
					t.Errorf("%s: %.20q: %d %s, %d records", door.path, text, w.Code, w.Body, len(log.Lines()))
				}
			}
		}
	}
}
