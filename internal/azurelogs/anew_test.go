package azurelogs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/azurelogs"
	"blobtail/internal/dev/testkit"
	"blobtail/storage"
)

// account is a container with one blob that is written anew while it is read.
type account struct {
	key    string
	states []string // that the blob had, the last of them now
	// move is called before each part of a body; it may write the blob anew.
	move func(read int)
	// pinned bodies go on with the state that they began; others fail, as those of Azure do.
	pinned bool
	gets   int
}

func (a *account) write(text string) { a.states = append(a.states, text) }

func (a *account) List(_ context.Context, prefix, after string) iter.Seq2[storage.Blob, error] {
	return func(yield func(storage.Blob, error) bool) {
		if strings.HasPrefix(a.key, prefix) && a.key > after {
			yield(storage.Blob{Key: a.key, Size: int64(len(a.states[len(a.states)-1]))}, nil)
		}
	}
}

func (a *account) Dirs(_ context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if rest, ok := strings.CutPrefix(a.key, prefix); ok {
			if dir, _, below := strings.Cut(rest, "/"); below {
				yield(dir, nil)
			}
		}
	}
}

func (a *account) Get(_ context.Context, _ string, off, n int64) (io.ReadCloser, error) {
	a.gets++
	text := a.states[len(a.states)-1][off:]
	if n >= 0 && n < int64(len(text)) {
		text = text[:n]
	}
	return io.NopCloser(&body{a, len(a.states), text, 0}), nil
}

type body struct {
	a     *account
	state int
	text  string
	at    int
}

func (b *body) Read(p []byte) (int, error) {
	if b.a.move != nil {
		b.a.move(b.at)
	}
	switch {
	case b.at == len(b.text):
		return 0, io.EOF
	case len(b.a.states) != b.state && !b.a.pinned:
		return 0, fmt.Errorf("get %s: %w", b.a.key, storage.ErrChanged)
	}
	n := copy(p[:min(len(p), 16<<10)], b.text[b.at:])
	b.at += n
	return n, nil
}

func (a *account) source() *azurelogs.Source {
	return azurelogs.New(azurelogs.Options{Account: "acct", Find: func(context.Context) ([]azurelogs.Container, error) {
		return []azurelogs.Container{{Name: "insights-logs-c", Objects: a}}, nil
	}})
}

const (
	resourceKey = "resourceId=/x/y=2026/m=11/d=22/h=03/m=00/PT1H.json"
	classicKey  = "blob/2026/11/22/0300/000000.log"
)

// A form makes a blob of numbered records.
type form struct {
	key, service string
	text         func(ids []int) string
}

func forms() map[string]form {
	record := func(id int) string {
		return fmt.Sprintf(`{"time":"2026-11-22T03:00:01Z","correlationId":"c%d","n":"<%d>"}`, id, id)
	}
	join := func(ids []int, one func(int) string, between string) string {
		var parts []string
		for _, id := range ids {
			parts = append(parts, one(id))
		}
		return strings.Join(parts, between)
	}
	return map[string]form{
		"array":  {resourceKey, "c", func(ids []int) string { return `{"records":[` + join(ids, record, ",") + `]}` }},
		"indent": {resourceKey, "c", func(ids []int) string { return "{\n \"records\": [\n" + join(ids, record, ",\n") + "\n]\n}" }},
		"lines":  {resourceKey, "c", func(ids []int) string { return join(ids, record, "\n") + "\n" }},
		"classic": {classicKey, "acct.blob", func(ids []int) string {
			return join(ids, func(id int) string { return classic("2026-11-22T03:00:01Z", "acct", fmt.Sprintf("a<%d>", id)) }, "")
		}},
	}
}

// numbers are the numbers of from to to.
func numbers(from, to int) (out []int) {
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}

// readIDs reads the blob of a service, and returns the numbers of its records.
func readIDs(t *testing.T, b *azurelogs.Blob, seen azurelogs.Seen) (ids []int, identities map[string]int, errs []error) {
	t.Helper()
	identities = make(map[string]int)
	for c, err := range azurelogs.Read(t.Context(), b, seen) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, bad := range c.Malformed {
			errs = append(errs, bad)
		}
		for n := range c.Lines {
			var id int
			line := string(c.Line(n))
			if _, err := fmt.Sscanf(line[strings.Index(line, "<"):], "<%d>", &id); err != nil {
				t.Fatal(line)
			}
			place := fmt.Sprintf("%s/%d", c.Origin, c.Index(uint32(n)))
			if other, twice := identities[place]; twice {
				t.Fatalf("%s is %d and %d", place, other, id)
			}
			ids, identities[place] = append(ids, id), id
		}
	}
	return ids, identities, errs
}

func only(t *testing.T, s *azurelogs.Source, service string) *azurelogs.Blob {
	t.Helper()
	blobs, err := s.Blobs(t.Context(), service, azurelogs.Span{})
	if err != nil || len(blobs) != 1 {
		t.Fatal(blobs, err)
	}
	return &blobs[0]
}

// A resource log that was written anew, longer or shorter, since it was listed is read as it is
// now. A classic log is read up to its listed size.
func TestWrittenAnewSinceListed(t *testing.T) {
	for name, f := range forms() {
		for _, after := range []int{1, 9, 10, 11, 5000, 20_000} {
			a := &account{key: f.key, states: []string{f.text(numbers(0, 10))}}
			b := only(t, a.source(), f.service)
			a.write(f.text(numbers(0, after)))
			want := after
			if name == "classic" {
				want = min(after, 10)
			}
			ids, _, errs := readIDs(t, b, make(azurelogs.Seen))
			shorter := after < 10 && (name == "lines" || name == "classic") // they only grow, so records are missing
			if !slices.Equal(ids, numbers(0, want)) || len(errs) > 0 != shorter {
				t.Errorf("%s, %d records: %d, %v", name, after, len(ids), errs)
			}
			if shorter && !strings.Contains(errs[0].Error(), "shorter") {
				t.Errorf("%s: %v", name, errs)
			}
		}
	}
}

// A blob that is written anew while it is read gives the records of one of its states, from
// the one at the first request on, each once and under the identities of an undisturbed read.
// Otherwise the read fails.
func TestWrittenAnewWhileRead(t *testing.T) {
	seeds, failed, disturbed := testkit.Share(60, 3), 0, 0
	for name, f := range forms() {
		for seed := range uint64(seeds) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			n := 1 + rnd.IntN(2*4096)
			states := [][]int{numbers(0, n)}
			a := &account{key: f.key, states: []string{f.text(states[0])}, pinned: rnd.IntN(4) == 0}
			changes, other := rnd.IntN(9), rnd.IntN(2) == 0
			wait := 0
			a.move = func(int) {
				if wait--; wait > 0 || changes == 0 {
					return
				}
				changes--
				wait = 1 + rnd.IntN(25)
				next := slices.Clone(states[len(states)-1])
				switch {
				case other && rnd.IntN(3) == 0: // its records move
					at := rnd.IntN(len(next))
					next = slices.Insert(next, at, 1_000_000*len(states))
				case other && rnd.IntN(3) == 0:
					next = next[:1+rnd.IntN(len(next))]
				default:
					next = append(next, numbers(len(next), len(next)+1+rnd.IntN(2000))...)
				}
				states = append(states, next)
				a.write(f.text(next))
			}
			b := only(t, a.source(), f.service)
			wait, states, a.states = 1+rnd.IntN(12), states[len(states)-1:], a.states[len(a.states)-1:]
			listed := int64(len(a.states[0]))
			b.Size = listed
			synctest.Test(t, func(t *testing.T) {
				seen := make(azurelogs.Seen)
				ids, identities, errs := readIDs(t, b, seen)
				if len(states) > 1 {
					disturbed++
				}
				if len(errs) > 0 {
					failed++
					if !other && len(states) < 7 {
						t.Errorf("%s, seed %d: %v", name, seed, errs)
					}
				}
				if name == "classic" {
					return // it is cut at its listed size
				}
				match := func(state []int) bool {
					return slices.Equal(ids, state) || len(errs) > 0 && len(ids) <= len(state) && slices.Equal(ids, state[:len(ids)])
				}
				if !slices.ContainsFunc(states, match) {
					t.Fatalf("%s, seed %d: %d records are of none of %d states; %v", name, seed, len(ids), len(states), errs)
				}
				a.move = nil
				calm := *b
				_, again, _ := readIDs(t, &calm, nil)
				for place, id := range identities {
					if now, ok := again[place]; ok && now != id && !other {
						t.Fatalf("%s, seed %d: %s is %d, and %d in an undisturbed read", name, seed, place, id, now)
					}
				}
			})
		}
	}
	if disturbed < seeds || failed == 0 && seeds > 15 || failed > disturbed/2 {
		t.Errorf("%d reads were disturbed, %d failed", disturbed, failed)
	}
}

// A blob that never rests fails after a while, with a remedy.
func TestNeverAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := forms()["array"]
		a := &account{key: f.key, states: []string{f.text(numbers(0, 500))}}
		a.move = func(read int) {
			if read > 0 {
				a.write(f.text(numbers(0, 500+len(a.states))))
			}
		}
		begun := time.Now()
		ids, _, errs := readIDs(t, only(t, a.source(), "c"), nil)
		if len(ids) != 0 || len(errs) != 1 || !errors.Is(errs[0], storage.ErrChanged) || !strings.Contains(errs[0].Error(), "read it when nobody writes it") || a.gets > 10 || time.Since(begun) > 2*time.Second {
			t.Errorf("%d records, %v after %d requests and %v", len(ids), errs, a.gets, time.Since(begun))
		}
	})
}

// A file that is written anew in place while it is read is read once more. One that a rename
// replaces is read as it was opened.
func TestFileWrittenAnew(t *testing.T) {
	for name, f := range forms() {
		if name == "classic" {
			continue
		}
		for _, rename := range []bool{false, true} {
			dir := t.TempDir()
			file := filepath.Join(dir, "insights-logs-c", filepath.FromSlash(f.key))
			write(t, dir, "insights-logs-c/"+f.key, f.text(numbers(0, 9000)))
			b := only(t, dirSource(dir), "c")
			next := f.text(numbers(0, 12_000))
			if err := errors.Join(os.WriteFile(file+".new", []byte(next), 0o644), os.Chtimes(file, time.Now(), time.Now().Add(-time.Hour))); err != nil {
				t.Fatal(err)
			}
			total, chunks := 0, 0
			for c, err := range azurelogs.Read(t.Context(), b, nil) {
				if err != nil || len(c.Malformed) > 0 {
					t.Fatalf("%s: %v, %v", name, err, c.Malformed)
				}
				total += len(c.Lines)
				if chunks++; chunks > 1 {
					continue
				}
				write := func() error { return os.WriteFile(file, []byte(next), 0o644) }
				if rename {
					write = func() error { return os.Rename(file+".new", file) }
				}
				if err := write(); err != nil {
					t.Fatal(err)
				}
			}
			want := 12_000
			if rename || name == "lines" { // lines in place are as if they had grown
				want = 9000
			}
			if total != want {
				t.Errorf("%s, rename %v: %d records, want %d", name, rename, total, want)
			}
		}
	}
}

// A file that was cut while it was read is no whole blob: the read fails, or has its new state.
func TestFileCutWhileRead(t *testing.T) {
	for name, f := range forms() {
		dir := t.TempDir()
		container := "insights-logs-c/"
		file := filepath.Join(dir, container, filepath.FromSlash(f.key))
		write(t, dir, container+f.key, f.text(numbers(0, 20_000)))
		service := f.service
		b := only(t, dirSource(filepath.Join(dir, container)), service)
		failed := false
		for c, err := range azurelogs.Read(t.Context(), b, nil) {
			if err != nil {
				failed = true
			} else if c.Origin[15] == 0 {
				if err := os.Truncate(file, 3000); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !failed {
			t.Errorf("%s: no error", name)
		}
	}
}

// A record that is too long takes no other along. An array without its end is a problem.
func TestLongAndOpenArrays(t *testing.T) {
	testkit.FullOnly(t, "many MB in one goroutine")
	record := func(id int, fill int) string {
		return fmt.Sprintf(`{"time":"2026-11-22T03:00:01Z","n":"<%d>","p":%q}`, id, strings.Repeat("x", fill))
	}
	all := []string{record(0, 0), record(99, 9_000_000), record(1, 0), record(99, 2_500_000), record(2, 0)}
	for text, wants := range map[string][]string{
		`{"records":[` + strings.Join(all, ",") + `]}`:                          {"line 1: record 2: longer than 1 MiB", "line 1: record 4: longer than 1 MiB"},
		strings.Join(all, "\n") + "\n":                                          {"line 2: longer than 1 MiB", "line 4: longer than 1 MiB"},
		`{"records":[` + record(0, 0) + "," + record(1, 0) + "," + record(2, 0): {"line 1: record 3: the blob ends here"},
	} {
		a := &account{key: resourceKey, states: []string{text}}
		ids, _, errs := readIDs(t, only(t, a.source(), "c"), make(azurelogs.Seen))
		if !slices.Equal(ids, numbers(0, 3)) || len(errs) != len(wants) {
			t.Errorf("%v, %v", ids, errs)
			continue
		}
		for i, want := range wants {
			if !strings.Contains(errs[i].Error(), want) {
				t.Errorf("%v, want %s", errs[i], want)
			}
		}
	}
}

// Read may open a file while a program writes it. It reads the file when it is whole. One that
// stays as it is gets an error.
func TestFileBeingWritten(t *testing.T) {
	for name, f := range forms() {
		for _, ends := range []bool{true, false} {
			dir := t.TempDir()
			const container = "insights-logs-c/"
			file := filepath.Join(dir, container, filepath.FromSlash(f.key))
			whole := f.text(numbers(0, 1000))
			write(t, dir, container+f.key, whole)
			b := only(t, dirSource(filepath.Join(dir, container)), f.service)
			write(t, dir, container+f.key, whole[:len(whole)/3])
			if ends {
				later := time.AfterFunc(50*time.Millisecond, func() {
					if err := os.WriteFile(file, []byte(whole), 0o644); err != nil {
						t.Error(err)
					}
				})
				defer later.Stop()
			}
			ids, _, errs := readIDs(t, b, make(azurelogs.Seen))
			if ends && (len(ids) != 1000 || len(errs) > 0) || !ends && (len(ids) < 300 || len(ids) > 340 || len(errs) != 1) {
				t.Errorf("%s, %v: %d records, %v", name, ends, len(ids), errs)
			}
		}
	}
}
