package integration_test

import (
	"strings"
	"testing"

	"blobtail/internal/cli"
	"blobtail/internal/dev/testkit"
)

// A service that is in no blob yet exists for every verb, also under the name that its
// sender writes.
func TestFreshService(t *testing.T) {
	t.Parallel()
	at, _ := dirStore(t)
	in := start(t, at, t.TempDir())
	in.mustPost("/ingest/FreshSvc", []byte(`{"msg":"x y","level":"info"}`))
	for _, tt := range []struct {
		args   string
		code   int
		stdout string
		stderr string
	}{
		{"FreshSvc -o raw", cli.OK, "x y\n", ""},
		{"freshsvc --level error", cli.Nothing, "", "freshsvc has records in no blob yet, and none that match"},
		{"freshsvc --from 2026-11-01 --to 2026-11-02", cli.Nothing, "", ""},
		{"tail FreshSvc -o raw", cli.OK, "x y\n", ""},
		{"tail freshsvc --level error", cli.Nothing, "", ""},
		{"hist FreshSvc --by 1h -o csv", cli.OK, "", ""},
		{"hist freshsvc --level error", cli.Nothing, "", ""},
		{"top msg FreshSvc -o csv", cli.OK, "msg,records\nx y,1\n", ""},
		{"ls", cli.OK, "freshsvc\t0\t0\t0\t0\t", ""},
		{"ls FreshSvc", cli.OK, "\t0\t0\t0\t0\t", ""},
		{"verify FreshSvc", cli.Nothing, "", "freshsvc has no blob yet"},
		{"bill FreshSvc", cli.Nothing, "", "freshsvc has no blob yet"},
		{"freshsvc --live-url " + in.admin, cli.Incomplete, "", "is it an ingester's listener for records"},
		{"nosuch", cli.Usage, "", `no service "nosuch"; to search text: logquery `},
	} {
		if strings.Contains(tt.args, "--live-url") { // then the newest records alone know the service, a second later
			testkit.Until(t, "the newest records have the service", func() bool {
				out, _, _ := logquery(t, at, "tail", "FreshSvc", "--live", "off", "-o", "raw")
				return len(out) > 0
			})
		}
		out, errs, code := logquery(t, at, strings.Fields(tt.args)...)
		if code != tt.code || !strings.Contains(string(out), tt.stdout) || !strings.Contains(errs, tt.stderr) ||
			tt.args != "nosuch" && strings.Contains(errs, "no service") {
			t.Errorf("logquery %s: exit %d, %q, %s", tt.args, code, out, errs)
		}
	}
}
