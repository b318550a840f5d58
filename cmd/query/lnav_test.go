package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// atHome runs logquery with a home directory.
func atHome(home string, args ...string) (code int, stdout, stderr string) {
	var out, errs strings.Builder
	code = run(context.Background(), environment{
		args: args, stdout: &out, stderr: &errs, now: time.Now(), local: time.UTC, isFile: func(string) bool { return false },
		getenv: func(name string) string { return map[string]string{"HOME": home}[name] },
	})
	return code, out.String(), errs.String()
}

// The real lnav reads times, levels, services, messages and fields of the lines that are printed.
func TestLnav(t *testing.T) {
	if _, err := exec.LookPath("lnav"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("no lnav: apt-get install lnav")
	}
	const lines = `{"ts":"2026-11-10T15:04:05.120000000Z","level":"info","service":"web","msg":"GET /basket","status":200,"took_ms":12.5}
{"ts":"2026-11-10T15:04:06.300000000Z","level":"error","service":"web","msg":"GET /basket","status":502,"upstream":{"host":"orders-1"}}
{"ts":"2026-11-10T15:04:06.400000000Z","level":"critical","service":"orders","msg":"out of disk\n  at line 2"}
{"ts":"2026-11-10T15:04:06.500000000Z","level":"warn","service":"orders","msg":"queue is 90 % full"}
{"ts":"2026-11-10T15:04:06.600000000Z","level":"trace","service":"orders","msg":"tracing","time":1,"pid":"x"}
{"ts":"2026-11-10T15:04:06.700000000Z","level":"debug","service":"orders","msg":""}
`
	home := t.TempDir()
	file := filepath.Join(home, "records.json")
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	lnav := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("lnav", append(args, file)...)
		cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TERM=dumb", "TZ=UTC", "LANG=C.UTF-8"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("lnav %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	// Both ways to install it leave one file.
	format := filepath.Join(home, "blobtail.json")
	if code, out, stderr := atHome(home, "lnav"); code != 0 || stderr != "" || os.WriteFile(format, []byte(out), 0o600) != nil {
		t.Fatal(code, stderr)
	}
	install := exec.Command("lnav", "-i", format)
	install.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	installed := filepath.Join(home, ".lnav", "formats", "installed", "blobtail.json")
	if code, out, stderr := atHome(home, "lnav", "--install"); code != 0 || out != installed+"\n" {
		t.Fatal(code, out, stderr)
	}
	if all, err := filepath.Glob(filepath.Join(filepath.Dir(installed), "*")); err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	const query = `;SELECT log_time, log_level, service, json_extract(log_raw_text, '$.status') AS status, log_body FROM blobtail`
	want := `log_time,log_level,service,status,log_body
2026-11-10 15:04:05.120,info,web,200,GET /basket
2026-11-10 15:04:06.300,error,web,502,GET /basket
2026-11-10 15:04:06.400,critical,orders,<NULL>,"out of disk
  at line 2"
2026-11-10 15:04:06.500,warning,orders,<NULL>,queue is 90 % full
2026-11-10 15:04:06.600,trace,orders,<NULL>,tracing
2026-11-10 15:04:06.700,debug,orders,<NULL>,
`
	if got := lnav("-n", "-c", query, "-c", ":write-csv-to -"); got != want {
		t.Errorf("lnav has\n%s\nnot\n%s", got, want)
	}
	// A person sees the fields below the line.
	want = `2026-11-10 15:04:05.120 info     web GET /basket
  status: 200
  took_ms: 12.500000
2026-11-10 15:04:06.300 error    web GET /basket
  status: 502
  upstream: {"host":"orders-1"}
`
	if got := lnav("-n"); len(got) < len(want) || got[:len(want)] != want {
		t.Errorf("lnav shows\n%s\nnot\n%s", got, want)
	}
}

// The format is installed where lnav looks for it, which depends on the directories that there are.
func TestLnavHome(t *testing.T) {
	for _, c := range []struct {
		name string
		dirs []string
		xdg  string
		want string
	}{
		{"nothing", nil, "", ".lnav"},
		{"a directory of configurations", []string{".config"}, "", ".config/lnav"},
		{"its own directory", []string{".config", ".lnav"}, "/elsewhere", ".lnav"},
		{"XDG_CONFIG_HOME", []string{".config"}, "/elsewhere", "/elsewhere/lnav"},
	} {
		home := t.TempDir()
		for _, dir := range c.dirs {
			if err := os.Mkdir(filepath.Join(home, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		want := c.want
		if !filepath.IsAbs(want) {
			want = filepath.Join(home, want)
		}
		a := &app{env: environment{getenv: func(name string) string { return map[string]string{"HOME": home, "XDG_CONFIG_HOME": c.xdg}[name] }}}
		if got := a.lnavHome(); got != want {
			t.Errorf("%s: %s, not %s", c.name, got, want)
		}
	}
	if code, _, stderr := atHome("", "lnav", "--install"); code != 2 || !strings.Contains(stderr, "HOME is not set") {
		t.Error(code, stderr)
	}
}
