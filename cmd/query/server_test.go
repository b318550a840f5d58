package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha512"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"blobtail/internal/cli"
	"blobtail/internal/dev/testkit"
	"blobtail/storage/dir"
)

// TestServerScripts runs the reading verbs over a server, on a store that a real ingester
// writes to.
func TestServerScripts(t *testing.T) {
	testkit.FullOnly(t, "tables of texts, in hundreds of processes")
	s := serverScripts{testkit.Command(t, "../..", "ingest")}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/server",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exit": testkit.Exits, "shorten": shorten, "both": both, "serve": s.serve, "ingester": s.ingester, "post": post, "halt": s.halt, "follow": begin, "await": await, "after": after, "bulk": bulk, "cutoff": s.cutoff,
		},
		Setup: func(e *testscript.Env) error {
			e.Vars = append(e.Vars, testkit.EndsAtOnce)
			e.Setenv("TZ", "UTC")
			e.Setenv("BLOBTAIL_STORE", "dir:data")
			e.Values["running"] = map[string]*exec.Cmd{}
			return nil
		},
	})
}

// serverScripts has the commands that start programs.
type serverScripts struct{ ingest string }

// both ARGS... runs logquery on the store and over the server: the outputs and the exit codes
// must be equal, and the messages too, but for the name of the place. With ! before it the
// messages may differ. stdout and stderr are those of the run over the server.
//
// Ages grow between the two, and are left out. The two answers must be of one state otherwise,
// also where an age makes a column wider: if they differ, and the store's own answer has changed
// since, they are taken anew.
func both(ts *testscript.TestScript, neg bool, args []string) {
	url, ages := ts.Getenv("SERVER"), regexp.MustCompile(`[0-9hm]+s ago|"unflushed_seconds":[0-9.]+`)
	over := func(place ...string) (a answered) {
		cmd := exec.Command(lookup(ts, "logquery"), slices.Concat(place, args)...)
		cmd.Dir, cmd.Env = ts.MkAbs("."), environ(ts)
		var out, errs strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); cmd.ProcessState == nil {
			ts.Check(err)
		}
		a = answered{code: cmd.ProcessState.ExitCode(), stdout: out.String()}
		if !neg {
			a.stderr = strings.ReplaceAll(errs.String(), url, "dir:data")
		}
		a.stdout = ages.ReplaceAllString(a.stdout, "...")
		return a
	}
	for range 10 {
		store, server := over(), over("--server", url)
		if store == server {
			ts.Logf("exit %d\n%s%s", store.code, store.stdout, store.stderr)
			ts.Check(os.WriteFile(ts.MkAbs("out"), fmt.Appendf(nil, "exit %d\n%s", server.code, server.stdout), 0o600))
			return
		}
		if again := over(); again == store {
			ts.Fatalf("--- store: exit %d\n%s%s--- server: exit %d\n%s%s", store.code, store.stdout, store.stderr, server.code, server.stdout, server.stderr)
		}
	}
	ts.Fatalf("the answers of the store never stay the same")
}

// answered is the result of a run of logquery.
type answered struct {
	code           int
	stdout, stderr string
}

func lookup(ts *testscript.TestScript, name string) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path
		}
	}
	ts.Fatalf("there is no command %s", name)
	return ""
}

func environ(ts *testscript.TestScript) (out []string) {
	for _, name := range []string{"PATH", "HOME", "TZ", "BLOBTAIL_STORE", "BLOBTAIL_TOKEN", "BLOBTAIL_TOKEN_FILE", "BLOBTAIL_LIVE", "XDG_CONFIG_HOME", "GORACE"} {
		if value := ts.Getenv(name); value != "" {
			out = append(out, name+"="+value)
		}
	}
	return out
}

// start starts a program under a name, and returns the part of its messages that a pattern
// matches.
func start(ts *testscript.TestScript, name string, cmd *exec.Cmd, ready string) string {
	cmd.Dir, cmd.Env = ts.MkAbs("."), environ(ts)
	messages, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	running := ts.Value("running").(map[string]*exec.Cmd)
	running[name] = cmd
	ts.Defer(func() {
		if running[name] == cmd {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	lines, found := bufio.NewScanner(messages), make(chan string, 1)
	go func() {
		pattern := regexp.MustCompile(ready)
		var all bytes.Buffer
		for lines.Scan() {
			fmt.Fprintln(&all, lines.Text())
			if m := pattern.FindStringSubmatch(lines.Text()); m != nil {
				found <- m[1]
			}
		}
		select {
		case found <- "":
		default:
		}
	}()
	select {
	case text := <-found:
		if text == "" {
			ts.Fatalf("%s ended at once", name)
		}
		return text
	case <-time.After(testkit.Patience):
		ts.Fatalf("%s does not start", name)
	}
	return ""
}

// serve ARGS... starts logquery serve, at the address of $ADDRESS from the second time on, and
// sets $SERVER.
func (serverScripts) serve(ts *testscript.TestScript, _ bool, args []string) {
	address := ts.Getenv("ADDRESS")
	if address == "" {
		address = "127.0.0.1:0"
	}
	url := start(ts, "server", exec.Command(lookup(ts, "logquery"), append([]string{"serve", "--listen", address}, args...)...), `"url":"(http[^"]+)"`)
	ts.Setenv("SERVER", url)
	_, host, _ := strings.Cut(url, "://")
	ts.Setenv("ADDRESS", host)
}

// ingester ARGS... starts an ingester of the store, and sets $INGESTER. However long the script
// takes, it stores no record unasked.
func (s serverScripts) ingester(ts *testscript.TestScript, _ bool, args []string) {
	flags := []string{"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--flush-max-age", "1h"}
	address := start(ts, "ingester", exec.Command(s.ingest, append(flags, args...)...), `"listen":"([^"]+)".*"message":"ready"`)
	ts.Setenv("INGESTER", "http://"+address)
}

// halt NAME [SIGNAL] ends a program that was started. It waits until the program has ended.
func (serverScripts) halt(ts *testscript.TestScript, _ bool, args []string) {
	running := ts.Value("running").(map[string]*exec.Cmd)
	cmd := running[args[0]]
	delete(running, args[0])
	signal := syscall.SIGTERM
	if len(args) > 1 {
		signal = map[string]syscall.Signal{"KILL": syscall.SIGKILL, "INT": syscall.SIGINT}[args[1]]
	}
	ts.Check(cmd.Process.Signal(signal))
	_ = cmd.Wait() // its code is in its state
	ts.Logf("%s: %v", args[0], cmd.ProcessState)
}

// begin, as the command follow NAME ARGS..., starts logquery with its output in the files NAME
// and NAME.err.
func begin(ts *testscript.TestScript, _ bool, args []string) {
	cmd := exec.Command(lookup(ts, "logquery"), args[1:]...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), environ(ts)
	for name, to := range map[string]*io.Writer{args[0]: &cmd.Stdout, args[0] + ".err": &cmd.Stderr} {
		file, err := os.Create(ts.MkAbs(name))
		ts.Check(err)
		defer file.Close()
		*to = file
	}
	ts.Check(cmd.Start())
	running := ts.Value("running").(map[string]*exec.Cmd)
	running[args[0]] = cmd
	ts.Defer(func() {
		if running[args[0]] == cmd {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
}

// await FILE PATTERN waits until a file has a text.
func await(ts *testscript.TestScript, _ bool, args []string) {
	pattern := regexp.MustCompile(args[1])
	for range 600 {
		if pattern.MatchString(ts.ReadFile(args[0])) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	ts.Fatalf("%s has no %s in half a minute:\n%s", args[0], args[1], ts.ReadFile(args[0]))
}

// post SERVICE FILE has the ingester accept the records of a file.
func post(ts *testscript.TestScript, _ bool, args []string) {
	r, err := http.NewRequest(http.MethodPost, ts.Getenv("INGESTER")+"/ingest/"+args[0], strings.NewReader(ts.ReadFile(args[1])))
	ts.Check(err)
	r.Header.Set("Content-Type", "application/x-ndjson")
	if token := ts.Getenv("SENDER"); token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(r)
	ts.Check(err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		ts.Fatalf("the ingester answers %s", resp.Status)
	}
}

// after FILE sets $AFTER to the cursor in the messages of a tail.
func after(ts *testscript.TestScript, _ bool, args []string) {
	m := regexp.MustCompile(`--after (\S+)`).FindStringSubmatch(ts.ReadFile(args[0]))
	if m == nil {
		ts.Fatalf("no cursor in %s", ts.ReadFile(args[0]))
	}
	ts.Setenv("AFTER", m[1])
}

// bulk DIR N makes a store with N records of web.
func bulk(ts *testscript.TestScript, _ bool, args []string) {
	store, err := dir.Open(ts.MkAbs(args[0]), dir.Options{Create: true})
	ts.Check(err)
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	const each = 10_000
	for at := 0; at < n; at += each {
		var text bytes.Buffer
		for i := at; i < min(at+each, n); i++ {
			fmt.Fprintf(&text, `{"ts":%d,"service":"web","level":"info","msg":"message %d","text":"%x"}`+"\n", 1795183200+at/each*3600+(i-at)*3600/each, i, sha512.Sum512([]byte{byte(i), byte(i >> 8)}))
		}
		ts.Check(addBlob(store, text.Bytes(), at/each))
	}
}

// cutoff ARGS... runs logquery over the server, kills that after the first bytes of the output,
// and checks that the output is a part of the stored records, and that logquery says so.
func (s serverScripts) cutoff(ts *testscript.TestScript, _ bool, args []string) {
	run := func(args ...string) *exec.Cmd {
		cmd := exec.Command(lookup(ts, "logquery"), args...)
		cmd.Dir, cmd.Env = ts.MkAbs("."), environ(ts)
		return cmd
	}
	all, err := run(args...).Output()
	ts.Check(err)
	cmd := run(append(args, "--server", ts.Getenv("SERVER"))...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	got := make([]byte, 1)
	_, err = io.ReadFull(out, got)
	ts.Check(err)
	s.halt(ts, false, []string{"server", "KILL"})
	rest, err := io.ReadAll(out)
	ts.Check(err)
	_ = cmd.Wait()
	got = append(got, rest...)
	if len(got) == len(all) {
		ts.Fatalf("all %d bytes came; the store is too small", len(all))
	}
	if code := cmd.ProcessState.ExitCode(); code != cli.Incomplete || !bytes.HasPrefix(all, got) || got[len(got)-1] != '\n' || !strings.Contains(errs.String(), "INCOMPLETE") {
		ts.Fatalf("exit %d with %d of %d bytes: %s", code, len(got), len(all), errs.String())
	}
	ts.Logf("%d of %d bytes: %s", len(got), len(all), errs.String())
}

// A refusal of a server becomes an exit code and advice.
func TestRefusal(t *testing.T) {
	for _, row := range []struct {
		status, code int
		says         string
	}{
		{400, cli.Usage, ""},
		{401, cli.Refused, "BLOBTAIL_TOKEN"},
		{403, cli.Refused, "more rights"},
		{404, cli.Nothing, ""},
		{421, cli.NoStore, "--host"},
		{429, cli.NoStore, "try again in a moment"},
		{502, cli.NoStore, ""},
		{503, cli.NoStore, "try again in a moment"},
		{504, cli.NoStore, "a shorter range"},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(row.status)
			fmt.Fprintf(w, `{"type":"about:blank","title":"T","status":%d,"detail":"why"}`, row.status)
		}))
		var out, errs strings.Builder
		code := run(context.Background(), environment{
			args: []string{"--server", srv.URL, "web"}, stdout: &out, stderr: &errs, isFile: func(string) bool { return false },
			getenv: func(string) string { return "" }, now: time.Now(), local: time.UTC,
		})
		srv.Close()
		if code != row.code || out.Len() > 0 || !strings.Contains(errs.String(), fmt.Sprintf("answers %d: why", row.status)) || !strings.Contains(errs.String(), row.says) {
			t.Errorf("%d: exit %d %s%s", row.status, code, out.String(), errs.String())
		}
	}
}
