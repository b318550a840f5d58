package main

import (
	"context"
	"fmt"
	"io"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/dev/testkit"
	"blobtail/storage/dir"
)

// The values that flags make of records are bounded, and a read that would make more exits with the
// figures. Many long lines take little memory.
func TestMade(t *testing.T) {
	testkit.FullOnly(t, "it makes many bytes, and counts them")
	path := t.TempDir() + "/data"
	store, err := dir.Open(path, dir.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for i := range 40 {
		fmt.Fprintf(&text, `{"ts":%d,"service":"web","level":"error","msg":"%d %s","n":1}`+"\n", 1795183200+i, i, strings.Repeat("x", 1_000_000))
	}
	if err := addBlob(store, []byte(text.String()), 1); err != nil {
		t.Fatal(err)
	}
	many := strings.TrimSuffix(strings.Repeat("msg,", 1000), ",")
	const over = "the query makes too much at once (query: "
	for _, c := range []struct {
		code  int
		words string
		args  []string
	}{
		{cli.Usage, over, []string{"web", "-n", "1", "--template", strings.Repeat(`{{$a := printf "%s" .msg}}`, 400) + "z"}},
		{cli.Usage, over, []string{"web", "-n", "1", "--template", `{{range $i := 10000000}}{{$a := printf "%999d" $i}}{{end}}`}},
		{cli.Incomplete, "more than 64 MiB for one record", []string{"web", "-n", "1", "--template", `{{range $i := 10000000}}{{printf "%999d" $i}}{{end}}`}},
		{cli.Incomplete, "a width of more than 999", []string{"web", "-n", "1", "--template", `{{printf "%99999999d" 1}}`}},
		{cli.Usage, over, []string{"web", "-n", "1", "--fields", many}},
		{cli.Usage, over, []string{"web", "-n", "1", "-o", "csv", "--fields", many}},
		{cli.Usage, over, []string{"web", "-n", "1", "-o", "logfmt", "--fields", many}},
		{cli.Usage, over, []string{"web", "-n", "1", "-o", "pretty", "--fields", many}},
		{cli.Usage, over, []string{"web", "-n", "1", "--where", `replace(msg, "", msg) == "x"`}},
		{cli.OK, "", []string{"web", "-n", "1", "--template", `{{.ts}} {{printf "%s %d" .level 5}} {{html .msg}}`}},
		{cli.OK, "", []string{"web", "-n", "40"}},
		{cli.OK, "", []string{"web", "-n", "40", "-o", "raw"}},
		{cli.OK, "", []string{"web", "-F", "39 xxx", "-B", "35"}},
	} {
		before := made()
		var errs strings.Builder
		code := run(context.Background(), environment{
			args: append([]string{"--store", "dir:" + path, "-q", "--live", "off"}, c.args...), stdout: io.Discard, stderr: &errs,
			isFile: func(string) bool { return false }, getenv: func(string) string { return "" }, now: time.Now(), local: time.UTC,
		})
		if code != c.code || !strings.Contains(errs.String(), c.words) {
			t.Errorf("%.100q: exit %d, want %d: %.300s", c.args, code, c.code, errs.String())
		}
		if n := made() - before; n > 2<<30 {
			t.Errorf("%.100q makes %d bytes", c.args, n)
		}
	}
}

// made is how many bytes the process has allocated.
func made() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}
