package meaning

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blobtail/record"
	"blobtail/record/text"
)

// The full readers of times, levels and traces find in a sentence no more than the level of its
// first word.
func TestSentence(t *testing.T) {
	for line, want := range map[string]bool{
		"GET /orders took 12 ms": true, "order 7 is stored": true, "the error is gone": true, "user \"ann\" logged in": true,
		"Segmentation fault": false, "error while reading": false, "ERROR disk is full": true, "ERROR: disk is full": false,
		"LOG of the day": false, "Nov 20 is over": false, "disk: full": false, "done": false, "level=error x": false,
		"no [error] here": false, "one\ntwo": false, "one  two": false, "INFO": false, "a b": false, "x": false, "": false,
		"SIGQUIT was sent": false, "INFO - x": false, "GET 1795168806.257, x": false, "GET 17 is over": true, "web - ERROR x": false,
	} {
		if _, ok := text.Sentence([]byte(line)); ok != want {
			t.Errorf("%q is a sentence: %v", line, !want)
		}
	}
	files, err := filepath.Glob("../../source/body/loggers/testdata/*.txtar")
	if err != nil || len(files) < 100 {
		t.Fatal(len(files), err)
	}
	var words [][]byte
	p := NewReader()
	p.Seek(nil, &Defaults{Arrived: time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC).UnixNano()}, false)
	s := &p.seeker
	check := func(line []byte) (found bool) {
		line = bytes.TrimSpace(line)
		level, ok := text.Sentence(line)
		if !ok {
			return false
		}
		if ns, l := s.text(line); ns != 0 || l != record.ParseLevel(level) {
			t.Fatalf("%q is called a sentence of level %q: %d %v", line, level, ns, l)
		}
		return true
	}
	for _, name := range append(files, "../../source/body/testdata/traces.txt") {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			check(line)
			words = append(words, bytes.Fields(line)...)
		}
	}
	found := 0
	for until := time.Now().Add(300 * time.Millisecond); time.Now().Before(until); {
		var text []string
		for range 1 + rand.IntN(6) {
			text = append(text, string(words[rand.IntN(len(words))]))
		}
		if check([]byte(strings.Join(text, []string{" ", " ", "  ", " - ", ", "}[rand.IntN(5)]))) {
			found++
		}
	}
	if found == 0 {
		t.Error("no sentence was made")
	}
}
