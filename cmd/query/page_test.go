package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"blobtail/internal/dev/testkit"
	"blobtail/storage/dir"
)

// TestPageCommands ensures that the terms of the page's search find the records that they should,
// and that the commands which the page shows print them as the reading API does, byte for byte.
func TestPageCommands(t *testing.T) {
	testkit.FullOnly(t, "processes of Node")
	t.Parallel()
	node, _ := needNode(t)
	made := func(to any, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), node, append([]string{"testdata/page.mjs"}, args...)...)
		cmd.Env = append(os.Environ(), "NODE_NO_WARNINGS=1")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err == nil {
			err = json.Unmarshal(out, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	path := t.TempDir()
	store, err := dir.Open(path, dir.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	made(&files)
	for i, lines := range files {
		if err := addBlob(store, []byte(lines), i+1); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	s := serveFrom(t, path)
	var views []pageView
	made(&views, s.url)
	for _, v := range views {
		v.check(t, s)
	}
}

// pageView is a view of the page: its commands, the URL of its answer, and the messages of its
// records.
type pageView struct {
	Name, Logquery, Curl, Answer, LogQL string
	Lossy                               bool // no argument of a command can have its text
	Leaves                              bool // the LogQL need not have all records, as it says
	Want                                []string
}

func (v pageView) check(t *testing.T, s *serving) {
	t.Helper()
	answer := s.body(v.Answer)
	var got []string
	for line := range strings.Lines(answer) {
		var r struct{ Msg string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Errorf("%s: %v: %s", v.Name, err, answer)
			return
		}
		got = append(got, r.Msg)
	}
	if !slices.Equal(got, v.Want) {
		t.Errorf("%s finds\n%q, want\n%q\n%s", v.Name, got, v.Want, v.Logquery)
	}
	count := struct{ Records int }{-1}
	if text := s.body(v.LogQL); json.Unmarshal([]byte(text), &count) != nil || count.Records < 0 || count.Records != len(v.Want) && !v.Leaves {
		t.Errorf("%s: LogQL finds %s, want %d\n%s", v.Name, text, len(v.Want), v.LogQL)
	}
	commands := []string{v.Logquery, v.Curl}
	if v.Lossy {
		commands = commands[1:]
	}
	for _, command := range commands {
		if strings.HasPrefix(command, "curl") {
			if _, err := exec.LookPath("curl"); err != nil {
				continue
			}
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
		cmd.Dir = t.TempDir()
		cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "TOKEN=none")
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if string(out) != answer || cmd.ProcessState.ExitCode() > 1 {
			t.Errorf("%s: %v\n%s\n%s\nthe command prints %q, the API\n%q", v.Name, err, command, &errs, out, answer)
		}
		if left, err := filepath.Glob(filepath.Join(cmd.Dir, "*")); err != nil || len(left) > 0 {
			t.Errorf("%s left %q, %v", command, left, err)
		}
	}
}

// body is the body of an answer.
func (s *serving) body(url string) string {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Errorf("%s: %v", url, err)
	}
	return string(body)
}
