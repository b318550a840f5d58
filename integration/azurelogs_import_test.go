package integration_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"blobtail/internal/azurelogs/logstest"
	"blobtail/internal/dev/testkit"
)

// importing returns the command that imports a service into a store.
func importing(from, to place, service string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.Command(filepath.Join(shared.bin, "ingest"), "import", "--from", from.store, service, "--since", "30d", "--store", to.store)
	cmd.Env = slices.Concat(testkit.Environ(), from.env, to.env)
	errs := &bytes.Buffer{}
	cmd.Stderr = errs
	return cmd, errs
}

// imports runs an import that must exit with a code, and returns its notes.
func imports(t testing.TB, from, to place, service string, code int) string {
	t.Helper()
	cmd, errs := importing(from, to, service)
	got, most := killedAfter(t, testkit.Patience, cmd)
	if got != code {
		t.Fatalf("ingest import %s exits %d, want %d: %.4000s", service, got, code, errs)
	}
	for _, sign := range []string{"panic:", "DATA RACE", "fatal error:"} {
		if strings.Contains(errs.String(), sign) {
			t.Errorf("%s: %s", strings.Join(cmd.Args, " "), errs)
		}
	}
	if most > mostImporting {
		t.Errorf("ingest import %s has taken %d MiB, more than %d", service, most, mostImporting)
	} else {
		t.Logf("ingest import %s: %d MiB", service, most)
	}
	return errs.String()
}

// mostImporting bounds the memory of an import in MiB, however many lines it brings.
const mostImporting = 320

// killedAfter runs a command and returns its exit code, -1 if it had to be killed, and the
// most memory that it has taken in MiB. The system's own account of that (ru_maxrss) begins
// with the memory of the process that starts the command.
func killedAfter(t testing.TB, limit time.Duration, cmd *exec.Cmd) (code, most int) {
	t.Helper()
	if err := shared.start(cmd); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() }) // it may have ended
	defer timer.Stop()
	ended, peak := make(chan struct{}), make(chan int)
	go func() {
		ticks := time.NewTicker(20 * time.Millisecond)
		defer ticks.Stop()
		most := 0
		for {
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
			if m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status); err == nil && m != nil {
				kb, _ := strconv.Atoi(string(m[1]))
				most = max(most, kb>>10)
			}
			select {
			case <-ticks.C:
			case <-ended:
				peak <- most
				return
			}
		}
	}()
	var exit *exec.ExitError
	err := cmd.Wait()
	close(ended)
	most = <-peak
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), most
}

// imported compares a store with the expected records, and verifies its blobs.
func imported(t testing.TB, at place, service string, want []logstest.Record) {
	t.Helper()
	out, _ := readTo(t, at, 0, "read", service, "-o", "json")
	compareSet(t, out, service, want)
	if n := count(t, at, "read", service); n != len(want) {
		t.Errorf("--count prints %d, want %d", n, len(want))
	}
	if _, stderr, code := answered(t, at, "verify"); code != 0 {
		t.Errorf("verify exits %d: %s", code, stderr)
	}
}

// An import brings each line once into a store, however often it is repeated.
func TestImportTwice(t *testing.T) {
	t.Parallel()
	for _, k := range azureKinds() {
		t.Run(k.name, func(t *testing.T) {
			lines := sized("BLOBTAIL_IMPORT_LINES", 4000, 10_000)
			logs := k.compose(logstest.Options{Seed: newSeed(t), Hour: growingHour(), Lines: lines, BlobLines: lines * 3 / 10, Unfinished: true})
			from, _ := azureDir(t, logs.Blobs)
			to, _ := dirStore(t)
			for i := range 3 {
				imports(t, from, to, k.service, 0)
				if i != 1 || lines > 4000 {
					imported(t, to, k.service, logs.Want)
				} else if n := count(t, to, "read", k.service); n != len(logs.Want) {
					t.Errorf("%d records after the second import, want %d", n, len(logs.Want))
				}
			}
		})
	}
}

// An import of logs that have grown brings the new lines only. A last line without its newline
// is there once, and so are the lines behind it later.
func TestImportGrowth(t *testing.T) {
	t.Parallel()
	for _, k := range azureKinds() {
		t.Run(k.name, func(t *testing.T) {
			seed := newSeed(t)
			r := rand.New(rand.NewPCG(seed, 5))
			lines := sized("BLOBTAIL_IMPORT_LINES", 4050, 9000)
			logs := k.compose(logstest.Options{Seed: seed, Hour: growingHour(), Lines: lines, BlobLines: lines / 9, Unfinished: true})
			from, root := azureDir(t, nil)
			to, _ := dirStore(t)
			lengths := map[string]int{}
			for step := range 4 {
				for i, b := range logs.Blobs {
					switch {
					case step == 3 || k.name == "classic" && i <= 2*step+1:
						lengths[b.Key] = len(b.Body)
					case k.name == "classic": // its blobs do not grow: there are more of them
						continue
					default:
						lengths[b.Key] += r.IntN(len(b.Body) - lengths[b.Key])
						if line := bytes.LastIndexByte(b.Body[:lengths[b.Key]], '\n'); line > 0 && step%2 == 0 {
							lengths[b.Key] = line // a whole line that gets its newline later
						}
					}
					b.Body = b.Body[:lengths[b.Key]]
					if err := logstest.Write(root, []logstest.Blob{b}); err != nil {
						t.Fatal(err)
					}
				}
				want := written(logs.Want, lengths)
				if len(want) == 0 {
					continue
				}
				imports(t, from, to, k.service, 0)
				imported(t, to, k.service, want)
			}
		})
	}
}

// The classic blobs of an hour grow all at once, in a copy that is being made for instance,
// and imports in between see copies of lines before the lines. In the end each is there once.
func TestImportAnyOrder(t *testing.T) {
	t.Parallel()
	seed := newSeed(t)
	r := rand.New(rand.NewPCG(seed, 6))
	lines := sized("BLOBTAIL_IMPORT_LINES", 4500, 9000)
	logs := logstest.Classic(logstest.Options{
		Seed: seed, Hour: pastHour(), Lines: lines, BlobLines: lines / 6, Shares: map[logstest.Trap]int{logstest.FarDuplicate: 100},
	})
	from, root := azureDir(t, nil)
	to, _ := dirStore(t)
	lengths := map[string]int{}
	for step := range 5 {
		for _, b := range logs.Blobs {
			if step == 4 {
				lengths[b.Key] = len(b.Body)
			} else {
				lengths[b.Key] += r.IntN(len(b.Body) - lengths[b.Key])
			}
			for n := lengths[b.Key]; n > 0 && b.Body[n-1] == ';'; n = lengths[b.Key] { // a cut there may pass for the end of a line
				lengths[b.Key]++
			}
			for n := lengths[b.Key]; withinLines(b.Body[:n]); n = lengths[b.Key] { // and one there for a quote without an end
				lengths[b.Key]++
			}
			b.Body = b.Body[:lengths[b.Key]]
			if err := logstest.Write(root, []logstest.Blob{b}); err != nil {
				t.Fatal(err)
			}
		}
		imports(t, from, to, "logsamples.blob", 0)
	}
	imported(t, to, "logsamples.blob", logs.Want)
}

// withinLines reports whether a classic log ends within quotes of a record that has the end of
// a line in quotes: in these, or in earlier ones.
func withinLines(log []byte) (within bool) {
	quoted, several := false, false
	for _, c := range log {
		switch {
		case c == '"':
			quoted = !quoted
		case c == '\n':
			several = quoted
		}
	}
	return quoted && several
}

// An import names malformed lines, exits 3 and brings all others.
func TestImportMalformed(t *testing.T) {
	t.Parallel()
	for _, k := range azureKinds() {
		t.Run(k.name, func(t *testing.T) {
			logs := k.compose(logstest.Options{Seed: newSeed(t), Hour: pastHour(), Lines: 2000, Malformed: 5, Unfinished: true})
			logs.Malformed = append(logs.Malformed, logs.Cut...)
			from, _ := azureDir(t, logs.Blobs)
			to, _ := dirStore(t)
			for range 2 {
				named(t, imports(t, from, to, k.service, 3), logs.Malformed)
				imported(t, to, k.service, logs.Want)
			}
		})
	}
}

// An import is killed at any moment, again and again. The one that ends must leave each
// line in the store once.
func TestImportKilled(t *testing.T) {
	t.Parallel()
	for _, k := range azureKinds() {
		t.Run(k.name, func(t *testing.T) {
			seed := newSeed(t)
			r := rand.New(rand.NewPCG(seed, 9))
			lines, resources := testkit.Setting("BLOBTAIL_IMPORT_LINES", 15_000), sized("BLOBTAIL_IMPORT_LINES", 3, 8)
			logs := k.compose(logstest.Options{Seed: seed, Hour: growingHour(), Lines: lines, BlobLines: 5000, Resources: resources, Unfinished: true})
			from, _ := azureDir(t, logs.Blobs)
			to, _ := dirStore(t)
			killed := 0
			for range kills(t, 8) {
				cmd, errs := importing(from, to, k.service)
				switch code, _ := killedAfter(t, time.Duration(r.IntN(max(300, lines/100)))*time.Millisecond, cmd); code {
				case -1:
					killed++
				case 0:
				default:
					t.Errorf("exit code %d: %s", code, errs)
				}
			}
			if killed == 0 {
				t.Error("each import ended before it was killed")
			}
			t.Logf("%d killed", killed)
			imports(t, from, to, k.service, 0)
			imported(t, to, k.service, logs.Want)
		})
	}
}
