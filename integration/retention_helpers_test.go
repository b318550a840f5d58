package integration_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/catalog/closed"
	"blobtail/catalog/horizon"
	"blobtail/internal/dev/testkit"
	"blobtail/internal/storeid"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/azure"
	"blobtail/storage/dir"
	"blobtail/storage/storagetest"
)

// estate is a store with logs of many days, and its retention policy.
type estate struct {
	t      testing.TB
	at     place
	prefix string        // of the tail's tables
	flag   string        // --config
	now    time.Time     // the days are counted back from it; --now of the runs
	gap    time.Duration // between two records of a day
	want   map[string]map[horizon.Day]int
}

// newEstate returns an estate without logs. Its tables have a name of their own: in
// Azure they belong to an account, and other tests have their tables in the same one.
func newEstate(t testing.TB, at place, policy string) *estate {
	t.Helper()
	testkit.WithinDay(t) // a day that ends meanwhile is closed by the next run
	prefix := []byte("tail")
	for range 12 {
		prefix = append(prefix, byte('a'+rand.IntN(26)))
	}
	e := &estate{
		prefix: string(prefix), t: t, at: at, now: time.Now().UTC(), gap: time.Millisecond, want: map[string]map[horizon.Day]int{},
	}
	e.policy(policy)
	return e
}

// policy changes the policy, which is YAML.
func (e *estate) policy(text string) {
	e.flag = config(e.t, fmt.Sprintf("tail: {prefix: %s}\nclose: {after: 24h}\nretention: {%s}\n", e.prefix, text))
}

// day returns the day that many days ago.
func (e *estate) day(ago int) horizon.Day { return horizon.DayOf(e.now) - horizon.Day(ago) }

// lines returns records of a service, n for each of some days ago. Their times are at
// the start of the day, so that those of today are not in the future.
func (e *estate) lines(service string, n int, ago ...int) []byte {
	var body []byte
	if e.want[service] == nil {
		e.want[service] = map[horizon.Day]int{}
	}
	for _, a := range ago {
		d := e.day(a)
		for range n {
			e.want[service][d]++
			at := d.Start().Add(time.Duration(e.want[service][d]-1)*e.gap + time.Millisecond).UnixNano()
			body = appendRecord(body, at, fmt.Sprintf("%s-%s-%d", service, d, e.want[service][d]), "was here")
		}
	}
	return body
}

// fill sends records of some days ago and puts them into blobs.
func (e *estate) fill(p *ingester, service string, n int, ago ...int) {
	e.t.Helper()
	p.mustPost("/ingest/"+service, e.lines(service, n, ago...))
	p.mustFlush()
}

// run runs retention with the estate's config and the estate's now.
func (e *estate) run(args ...string) (stdout, stderr string, code int) {
	e.t.Helper()
	if args[0] == "plan" || args[0] == "apply" {
		args = append(args, "--now", e.now.Format(time.RFC3339))
	}
	if args[0] != "plan" {
		return retain(e.t, e.at, append(args, e.flag)...)
	}
	// A plan changes nothing, so it may be made again while the machine is too slow for it.
	testkit.Until(e.t, "retention plan has its answers in time", func() bool {
		stdout, stderr, code = retain(e.t, e.at, append(args, e.flag)...)
		return !tooSlow(stderr, code)
	})
	return stdout, stderr, code
}

// must runs retention, which has to exit with a code.
func (e *estate) must(code int, args ...string) (stdout, stderr string) {
	e.t.Helper()
	out, errs, got := e.run(args...)
	// A run goes on where one ended that the machine was too slow for. A plan to confirm would
	// be another one then.
	for begun := time.Now(); code == 0 && args[0] == "apply" && !slices.Contains(args, "--confirm") && tooSlow(errs, got) && time.Since(begun) < testkit.Patience; {
		out, errs, got = e.run(args...)
	}
	if got != code {
		e.t.Fatalf("retention %s exits %d, want %d\nstdout: %s\nstderr: %s", strings.Join(args, " "), got, code, out, errs)
	}
	return out, errs
}

// confirm applies, with the hash that retention asks for.
func (e *estate) confirm(args ...string) (stdout, stderr string) {
	e.t.Helper()
	out, _ := e.must(0, "plan")
	return e.must(0, append([]string{"apply", "--confirm", planHash(e.t, out)}, args...)...)
}

// close closes all days that are over, for compaction.
func (e *estate) close() {
	e.t.Helper()
	if out, errs, code := e.run("close"); code > 1 {
		e.t.Fatalf("retention close exits %d: %s%s", code, out, errs)
	}
}

// sweep deletes hidden blobs, without a grace.
func (e *estate) sweep() (stdout, stderr string) {
	e.t.Helper()
	return e.must(0, "apply", "--grace", "0s")
}

// counts compares the readers' count with the expected records of a service from a
// day on.
func (e *estate) counts(service string, from horizon.Day) {
	e.t.Helper()
	want := 0
	for d, n := range e.want[service] {
		if d >= from {
			want += n
		}
	}
	if got := count(e.t, e.at, service); got != want {
		e.t.Errorf("%s: %d records, want %d from %s on", service, got, want, from)
	}
}

// knows waits until an ingester has seen that a day has expired.
func (e *estate) knows(p *ingester, service string, d horizon.Day) {
	e.t.Helper()
	testkit.Until(e.t, "the ingester knows of the day", func() bool {
		return p.expired("/ingest/"+service, appendRecord(nil, d.Start().UnixNano(), "probe", "of nothing")).Expired == 1
	})
}

var planLine = regexp.MustCompile(`(?m)^plan ([0-9a-f]{64})\n\z`)

func planHash(t testing.TB, out string) string {
	t.Helper()
	m := planLine.FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no hash in the last line:\n%s", out)
	}
	return m[1]
}

// retain runs the command retention to its end.
func retain(t testing.TB, at place, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	var out bytes.Buffer
	stderr, code = ran(t, retention(ctx, at, args...), &out)
	for _, sign := range []string{"panic:", "DATA RACE", "fatal error:"} {
		if strings.Contains(stderr, sign) {
			t.Errorf("retention %s: %s", strings.Join(args, " "), stderr)
		}
	}
	return out.String(), stderr, code
}

func retention(ctx context.Context, at place, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(shared.bin, "retention"), append([]string{"--store", at.store}, args...)...)
	cmd.Env = append(testkit.Environ(), at.env...)
	return cmd
}

// blobsOfPlace opens the blobs of a place.
func blobsOfPlace(t testing.TB, at place) storage.BlobStore {
	t.Helper()
	if root, ok := strings.CutPrefix(at.store, "dir:"); ok {
		s, err := dir.Open(root, dir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s, err := azure.Open(strings.TrimPrefix(at.store, "azure:"), azure.Options{Getenv: shared.Azurite(t).Getenv})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// keys returns the names of all objects with a prefix, sorted, without roots: each run leaves one.
func keys(t testing.TB, at place, prefix string) []string {
	t.Helper()
	return slices.DeleteFunc(storagetest.KeysOf(t, blobsOfPlace(t, at), prefix), func(k string) bool {
		return k == storeid.Key || strings.HasPrefix(k, closed.RootPrefix)
	})
}

// logs returns the names of blobs, without the objects of retention.
func logs(t testing.TB, at place) []string {
	return slices.DeleteFunc(keys(t, at, ""), func(k string) bool {
		_, part := closed.ParseName(k)
		return part || strings.HasPrefix(k, "_") && !strings.HasPrefix(k, record.RejectedService+"/")
	})
}

// of returns the names that belong to some days of a service.
func of(names []string, service string, days func(d horizon.Day) bool) []string {
	return slices.DeleteFunc(slices.Clone(names), func(k string) bool {
		parts := strings.Split(k, "/")
		if parts[0] != service {
			return true
		}
		d, err := horizon.ParseDay(strings.Join(parts[1:4], "-"))
		return err != nil || !days(d)
	})
}
