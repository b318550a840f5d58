package page_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
)

var update = flag.Bool("update", false, "take the pictures of docs/ anew (`make picture`)")

// atOnce is how many stories run beside each other. They wait for drawing and for servers. More of them
// on two cores run out of the time that a reader would wait for the page.
const atOnce = 3

// told is what the runner says of a story.
type told struct {
	Story   string
	OK      bool
	Error   string
	MS      int
	Console []string
	CSP     []string
	Errors  []string // of the page
	Foreign []string // requests to other hosts
	Files   []string // pictures and a trace of a failure
	Figures map[string]any
}

// story is a row of the runner's list.
type story struct {
	Name    string
	World   string
	Alone   bool   // it measures time or memory of the browser, so nothing runs beside it
	Waits   bool   // it waits most of the time, so it takes no place of others
	Todo    string // why it fails so far
	Picture bool   // it makes a picture of docs/
}

// TestStories runs the stories, those that measure one by one, and the others beside each other.
func TestStories(t *testing.T) {
	play(t, func(s story) bool { return !s.Picture })
}

// play runs some stories.
func play(t *testing.T, which func(story) bool) {
	t.Helper()
	chromium := browser(t)
	if err := shared.build(); err != nil {
		t.Fatal(err)
	}
	a := &atlas{t: t, worlds: make(map[string]*entry)}
	if err := a.serveControl(); err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, chromium, a.control)
	// Places bound how many stories are beside each other, whatever -parallel says.
	places := make(chan struct{}, atOnce)
	for _, s := range r.stories {
		if !which(s) {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			if !s.Alone {
				t.Parallel()
			}
			if !s.Waits {
				places <- struct{}{}
				defer func() { <-places }()
			}
			w, err := a.of(s.World)
			if err != nil {
				t.Fatal(err)
			}
			r.run(t, s, w)
		})
	}
}

// browser finds Chromium and the driver.
func browser(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(shared.root, "node_modules", "playwright-core", "package.json")); err != nil {
		missing(t, "no playwright-core in node_modules: make node_modules/.package-lock.json")
	}
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	missing(t, "no Chromium: apt-get install chromium, or set CHROMIUM to its path")
	return ""
}

// runner is the process with the browser.
type runner struct {
	stories []story
	in      io.WriteCloser

	mu      sync.Mutex
	waiting map[string]chan told
}

// newRunner starts the browser, and takes the list of the stories.
func newRunner(t *testing.T, chromium, control string) *runner {
	t.Helper()
	out := os.Getenv("PAGE_SHOTS")
	if out == "" {
		out = filepath.Join(os.TempDir(), "blobtail-page")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	cmd := exec.CommandContext(ctx, "node", "runner.mjs")
	cmd.Dir = filepath.Join(shared.root, "integration", "page")
	cmd.Env = append(environ(), "PAGE_CHROMIUM="+chromium, "PAGE_CONTROL="+control, "PAGE_SHOTS="+out,
		"PAGE_DOCS="+filepath.Join(shared.root, "docs", "read"))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	lines, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shared.start(cmd); err != nil {
		t.Fatal(err)
	}
	r := &runner{in: in, waiting: make(map[string]chan told)}
	listed, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		r.follow(lines, listed)
	}()
	t.Cleanup(func() {
		in.Close() // it closes the browser and ends
		<-ended
		_ = cmd.Wait() // how it ends does not matter
		cancel()
	})
	select {
	case <-listed:
	case <-ended:
		t.Fatal("the runner has ended")
	case <-time.After(testkit.Patience):
		t.Fatal("the runner does not list its stories")
	}
	return r
}

// follow takes the lines of the runner.
func (r *runner) follow(from io.Reader, listed chan<- struct{}) {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var list struct{ Stories []story }
		if json.Unmarshal(line, &list) == nil && list.Stories != nil {
			r.stories = list.Stories
			close(listed)
			continue
		}
		var of told
		if err := json.Unmarshal(line, &of); err != nil {
			fmt.Fprintf(os.Stderr, "runner: %s", line)
			continue
		}
		r.mu.Lock()
		to := r.waiting[of.Story]
		r.mu.Unlock()
		to <- of
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, to := range r.waiting {
		select {
		case to <- told{Error: "the runner has ended"}:
		default:
		}
	}
}

// run has the runner play a story in a world.
func (r *runner) run(t *testing.T, s story, w *world) {
	t.Helper()
	to := make(chan told, 1)
	r.mu.Lock()
	r.waiting[s.Name] = to
	line, err := json.Marshal(map[string]any{"story": s.Name, "world": s.World, "url": w.url, "facts": w.facts})
	if err == nil {
		_, err = r.in.Write(append(line, '\n'))
	}
	r.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	of := testkit.Await(t, "the end of the story", to)
	var wrong []string
	for what, texts := range map[string][]string{"console": of.Console, "content security policy": of.CSP, "error of the page": of.Errors, "request to another host": of.Foreign} {
		for _, text := range texts {
			wrong = append(wrong, what+": "+text)
		}
	}
	if !of.OK {
		wrong = append(wrong, of.Error)
	}
	if len(of.Figures) > 0 {
		t.Logf("%v", of.Figures)
	}
	t.Logf("%d ms", of.MS)
	switch {
	case s.Todo != "" && len(wrong) == 0:
		t.Errorf("the story passes: take its todo away (%s)", s.Todo)
	case s.Todo != "":
		t.Skipf("todo: %s\n%s", s.Todo, strings.Join(wrong, "\n"))
	case len(wrong) > 0:
		t.Errorf("%s\n%s", strings.Join(wrong, "\n"), strings.Join(of.Files, "\n"))
	}
}
