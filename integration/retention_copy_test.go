package integration_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"blobtail/internal/dev/testkit"
	"blobtail/record"
)

// copied is a store with a copy in Azurite, of which there is one in a directory.
type copied struct {
	*estate
	p             *ingester
	copies        [2]place
	root, last    string // directories of the store and of the last copy
	wal           string
	second        func() []stored
	seed          uint64
	mu            sync.Mutex
	n, erased     int
	sent          map[string]time.Time // the texts of acknowledged records that stay, and their times
	killed, ended [2]int
}

func newCopied(t *testing.T) *copied {
	at, root := dirStore(t)
	second, client := azureStore(t)
	last := filepath.Join(t.TempDir(), "last")
	at.env = second.env // a run needs both
	c := &copied{copies: [2]place{second, {store: "dir:" + last, env: second.env}}, root: root, last: last,
		second: func() []stored { return azureBlobs(t, client) }, sent: map[string]time.Time{}}
	c.estate = newEstate(t, at, "default: 5d")
	c.seed = newSeed(t)
	c.wal = t.TempDir()
	c.p = start(t, at, c.wal, c.flag)
	return c
}

// send sends records of some days ago, and one of a person who is erased later.
func (c *copied) send(ago, n int) {
	c.mu.Lock()
	service, person := []string{"web", "app"}[c.n/10%2], c.erased+1
	first := c.n
	c.n += n
	c.mu.Unlock()
	var body []byte
	texts, at := map[string]time.Time{}, time.Now().UTC().Add(-time.Duration(ago)*24*time.Hour)
	for i := range n {
		when := at.Add(-time.Duration(i) * time.Millisecond)
		text := fmt.Sprintf("record-%d.", first+i)
		texts[text] = when
		body = appendRecord(body, when.UnixNano(), text, "is here")
	}
	body = appendRecord(body, at.UnixNano(), fmt.Sprintf("of-person-%d.", person), "is here too")
	code, a, _, err := c.p.post("/ingest/"+service, body)
	if err != nil || code != 200 || a.Accepted != n+1 {
		c.t.Errorf("POST: %d %+v, %v", code, a, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.Copy(c.sent, texts)
}

var confirmHash = regexp.MustCompile(`--confirm ([0-9a-f]+)`)

// confirmed runs retention, and again with the confirmation that it asks for.
func (c *copied) confirmed(args ...string) {
	out, errs, code := c.run(args...)
	if m := confirmHash.FindStringSubmatch(errs); code == 2 && m != nil {
		out, errs, code = c.run(append(args, "--confirm", m[1])...)
	}
	if code > 1 {
		c.t.Errorf("retention %s exits %d: %s%s", strings.Join(args, " "), code, out, errs)
	}
}

// load sends records and keeps house until a context ends.
func (c *copied) load(ctx context.Context) *sync.WaitGroup {
	var all sync.WaitGroup
	all.Go(func() {
		rnd := rand.New(rand.NewPCG(c.seed, 2))
		for ctx.Err() == nil {
			ago := 0
			if rnd.IntN(4) == 0 {
				ago = 1 + rnd.IntN(4)
			}
			c.send(ago, 10+rnd.IntN(20))
			_, _, _ = c.p.flush("?timeout=10s") // the next one does what this one could not
			time.Sleep(50 * time.Millisecond)
		}
	})
	all.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			c.confirmed("close")
			c.confirmed("compact", "--grace", "1s")
			c.confirmed("apply", "--grace", "0s")
			if i == 0 {
				c.confirmed("release", "case")
				c.confirmed("apply", "--grace", "0s")
				c.confirmed("drop", "dropped", "--day", c.day(3).String())
				day := c.day(2).String()
				c.confirmed("hold", "other", "--service", "dropped", "--from", day, "--to", day, "--reason", "it stays")
			}
			c.mu.Lock()
			c.erased++ // none of this person is sent any more, but for what is on its way
			person := c.erased
			c.mu.Unlock()
			time.Sleep(300 * time.Millisecond)
			c.confirmed("erase", "--where", fmt.Sprintf(`msg startsWith "of-person-%d."`, person), "--grace", "1s")
		}
	})
	return &all
}

// from is the original of a copy.
func (c *copied) from(leg int) place { return [2]place{c.at, c.copies[0]}[leg] }

// kill kills copies at any moment until a context ends, and fifteen at least.
func (c *copied) kill(ctx context.Context, leg int) {
	rnd, took := rand.New(rand.NewPCG(c.seed, uint64(leg))), 500*time.Millisecond
	for ctx.Err() == nil || c.killed[leg] < 15 {
		e := *c.estate
		e.at = c.from(leg)
		begun := time.Now()
		if killRetention(c.t, &e, time.Duration(rnd.Int64N(int64(took))), "copy", "--to", c.copies[leg].store) {
			c.killed[leg]++
			took += took / 8
		} else {
			c.ended[leg]++
			took = max(time.Since(begun)/2, 20*time.Millisecond)
		}
	}
}

// objects are those of a store that its copies have, by their names.
func objects(all []stored) map[string]stored {
	named := map[string]stored{}
	for _, o := range all {
		if o.contentType == "application/octet-stream" {
			o.contentType = "" // the default of the service
		}
		if o.name != "_store" && o.name != "_promoted" && !strings.HasPrefix(o.name, "_copy/") {
			named[o.name] = o
		}
	}
	return named
}

// filesOf reads the files of a directory as docs/reference/format.md describes them. Others are those that are no
// objects.
func filesOf(t testing.TB, root string) (all, others []stored) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && d.Name() == ".tables" {
				return fs.SkipDir
			}
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.HasPrefix(d.Name(), ".") {
			others = append(others, stored{name: path, body: b})
			return nil
		}
		key, err := filepath.Rel(root, path)
		end := len(b) - 20
		if err != nil || end < 0 {
			return fmt.Errorf("%s has no frame: %w", path, err)
		}
		o := stored{name: key, metadata: map[string]string{}, size: int64(binary.LittleEndian.Uint64(b[end:]))}
		o.body = b[:o.size]
		for line := range strings.Lines(string(b[end-int(binary.LittleEndian.Uint32(b[end+8:])) : end])) {
			switch name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "="); name {
			case "content-type":
				o.contentType = value
			case "content-encoding":
				o.contentEncoding = value
			default:
				o.metadata[name] = value
			}
		}
		all = append(all, o)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, others
}

func shown(o stored) string {
	return fmt.Sprintf("%q %q %v %q", o.contentType, o.contentEncoding, o.metadata, o.body)
}

// same compares a copy with its original.
func same(t testing.TB, what string, is, want map[string]stored) {
	t.Helper()
	for name, w := range want {
		if g, ok := is[name]; !ok {
			t.Errorf("%s: %s is missing", what, name)
		} else if got, want := shown(g), shown(w); got != want {
			t.Errorf("%s: %s has %.500s, want %.500s", what, name, got, want)
		}
	}
	for name := range is {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: %s is there, and not in the original", what, name)
		}
	}
}

// without fails if an object has a text, compressed or not.
func without(t testing.TB, what string, all []stored, text *regexp.Regexp) {
	t.Helper()
	for _, o := range all {
		r, err := zstd.NewReader(bytes.NewReader(o.body))
		if err != nil {
			t.Fatal(err)
		}
		plain, _ := io.ReadAll(r) // of a part of an object too
		r.Close()
		if m := text.Find(append(plain, o.body...)); m != nil {
			t.Errorf("%s: %s has %s", what, o.name, m)
		}
	}
}

// A store is copied to Azurite, and from there to a directory, while records come, also late ones, and
// days are closed, compacted, hidden, deleted, dropped, held and erased in it. The copies are killed at
// any moment. In the end all three have the same objects; the copies show what they promise.
func TestCopiesUnderLoad(t *testing.T) {
	t.Parallel()
	shared.emulated <- struct{}{}
	t.Cleanup(func() { <-shared.emulated })
	c := newCopied(t)
	c.fill(c.p, "dropped", 3, 2, 3)
	c.fill(c.p, "old", 3, 4, 6, 7)
	for ago := range 5 {
		c.send(ago, 50)
		c.p.mustFlush()
	}
	c.confirmed("hold", "case", "--service", "old", "--from", c.day(7).String(), "--to", c.day(7).String(), "--reason", "a test")
	c.confirmed("apply", "--grace", "0s") // the policy counts from now on

	// A first run that is killed leaves a copy of which nobody knows what it lacks.
	killRetention(t, c.estate, 2*time.Second, "copy", "--to", c.copies[0].store, "--bandwidth", "1KB")
	out, errs, code := answered(t, c.copies[0], "*", "--count")
	if code != 3 || !strings.Contains(errs, "no run of retention copy has come to its end") {
		t.Errorf("a half copy: exit %d, %s, %s", code, out, errs)
	}
	if out, errs, code := answered(t, c.copies[0], "*", "--count", "--live", "off"); code > 1 {
		t.Errorf("the blobs of a half copy: exit %d, %s, %s", code, out, errs)
	}

	ctx, cancel := context.WithTimeout(t.Context(), lasting(t, 20*time.Second))
	defer cancel()
	house := c.load(ctx)
	var killers sync.WaitGroup
	for leg := range 2 {
		killers.Go(func() { c.kill(ctx, leg) })
	}
	killers.Wait()
	house.Wait()
	t.Logf("copies killed %v, ended %v; %d records, %d persons erased", c.killed, c.ended, len(c.sent), c.erased)
	c.p.mustFlush()
	c.p.stop() // or copies are whole before its floor, which is some minutes behind

	whole := time.Time{}
	for leg := range 2 {
		testkit.Until(t, "all records are in the copy", func() bool {
			out, errs, code := retain(t, c.from(leg), "copy", "--to", c.copies[leg].store, c.flag)
			_, text, ok := strings.Cut(strings.TrimSpace(out), "whole before ")
			if !ok || code != 0 && !tooSlow(errs, code) {
				t.Fatalf("copy %d exits %d: %s%s", leg, code, out, errs)
			}
			whole, _ = time.Parse(time.RFC3339, text)
			for _, at := range c.sent {
				if !at.Before(whole) {
					return false
				}
			}
			return true
		})
	}
	first, _ := filesOf(t, c.root)
	want := objects(first)
	third, others := filesOf(t, c.last)
	second := c.second()
	same(t, "Azurite", objects(second), want)
	same(t, "the last one", objects(third), want)
	gone := regexp.MustCompile(`of-person-(` + numbers(c.erased) + `)\.`)
	for what, all := range map[string][]stored{"the original": first, "Azurite": second, "the last one": append(third, others...)} {
		without(t, what, all, gone)
	}
	t.Logf("%d objects; %d other files in the last one", len(want), len(others))
	for i, at := range []place{c.at, c.copies[0], c.copies[1]} {
		lines := string(query(t, at, "web", "app", "--from", "-30d", "--to", whole.Format(time.RFC3339), "-o", "json"))
		seen := map[string]int{}
		for line := range strings.Lines(lines) {
			text, _ := record.Lookup([]byte(line), "msg")
			seen[strings.Fields(strings.Trim(string(text), `"`))[0]]++
		}
		for text := range c.sent {
			if seen[text] != 1 {
				t.Errorf("store %d shows %s %d times", i, text, seen[text])
			}
		}
		for text := range seen {
			if _, ok := c.sent[text]; !ok && (gone.MatchString(text) || !strings.HasPrefix(text, "of-person-")) {
				t.Errorf("store %d shows %s", i, text)
			}
		}
	}
	for _, service := range []string{"dropped", "old"} { // one day of each is left
		if n := count(t, c.copies[1], service, "--to", whole.Format(time.RFC3339)); n != 3 {
			t.Errorf("%d records of %s, want 3", n, service)
		}
	}
	c.answers(t)
}

func numbers(to int) string {
	var all []string
	for n := range to {
		all = append(all, fmt.Sprint(n+1))
	}
	return strings.Join(all, "|")
}

// answers checks what the last copy does and refuses, and that it can be promoted.
func (c *copied) answers(t *testing.T) {
	last := c.copies[1]
	_, errs, code := answered(t, last, "*", "--count")
	if code != 3 || !strings.Contains(errs, "this store is a copy that is whole before") {
		t.Errorf("a read of all: exit %d, %s", code, errs)
	}
	n := count(t, last, "*", "--live", "off")
	for code, verbs := range map[int][][]string{
		0: {{"plan"}, {"holds"}},
		2: {
			{"apply"}, {"close"}, {"compact"}, {"hold", "case", "--service", "*", "--reason", "no"}, {"release", "case"},
			{"drop", "web", "--day", c.day(1).String()}, {"erase", "--where", `msg == "x"`}, {"accept-loss", "web", c.day(3).String()},
		},
	} {
		for _, args := range verbs {
			out, errs, got := retain(t, last, append(args, c.flag)...)
			if got != code || code == 2 && !strings.Contains(errs, "retention promote makes it a store of its own") {
				t.Errorf("retention %s of a copy exits %d: %s%s", args[0], got, out, errs)
			}
		}
	}
	// A run without news: lists, and who the stores are.
	through, blobs, _ := metered(t, c.copies[0])
	at := place{c.at.store, through.env}
	var others []string
	testkit.Until(t, "a run has no news", func() bool { // the service may be asked twice
		blobs.Take()
		out, errs, code := retain(t, at, "copy", "--to", through.store, c.flag)
		if others = nil; code != 0 || !strings.HasPrefix(out, "copied 0 objects with 0 bytes, deleted 0 objects") {
			t.Fatalf("copy exits %d: %s%s", code, out, errs)
		}
		for _, r := range blobs.Take() {
			if !strings.Contains(r.Query, "comp=list") {
				others = append(others, r.Method+" "+r.Path)
			}
		}
		return len(others) <= 10
	})
	for _, r := range others {
		_, key, object := strings.Cut(r, strings.TrimPrefix(through.store, "azure:")+"/")
		if object && key != "_store" && key != "_promoted" && !strings.HasPrefix(key, "_copy/") { // others are of the container: its clock
			t.Errorf("a run without news makes the request %s", r)
		}
	}
	t.Logf("requests that are no lists: %q", others)

	before, _ := filesOf(t, c.root)
	if out, errs, code := retain(t, last, "promote", c.flag); code != 0 {
		t.Fatalf("promote exits %d: %s%s", code, out, errs)
	}
	p := start(t, last, t.TempDir(), c.flag)
	p.mustPost("/ingest/web", appendRecord(nil, time.Now().UnixNano(), "afterwards", "is here"))
	if got := count(t, last, "*"); got != n+1 {
		t.Errorf("the promoted copy has %d records, want %d", got, n+1)
	}
	p.mustFlush()
	p.stop()
	if got := count(t, last, "*"); got != n+1 {
		t.Errorf("the promoted copy has %d records, want %d", got, n+1)
	}
	if _, errs, code := retain(t, last, "plan", c.flag); code != 0 {
		t.Errorf("plan of the promoted copy exits %d: %s", code, errs)
	}
	for leg, to := range []string{c.at.store, last.store} {
		_, errs, code := retain(t, c.from(leg), "copy", "--to", to, c.flag)
		if code != 2 || !strings.Contains(errs, "it is a store of its own") && !strings.Contains(errs, "is the same directory") {
			t.Errorf("a copy to %s exits %d: %s", to, code, errs)
		}
	}
	after, _ := filesOf(t, c.root)
	same(t, "the original afterwards", objects(after), objects(before))
	c.p = start(t, c.at, c.wal, c.flag)
	c.send(0, 5)
	if n := count(t, c.at, "*", "-F", "record-"); n != len(c.sent) {
		t.Errorf("the original shows %d records, want %d", n, len(c.sent))
	}
	if slices.Contains(keys(t, c.at, ""), "_promoted") {
		t.Error("the original is promoted")
	}
}
