// Package docs checks the pages against the programs. It runs the commands of each
// page and compares their output. It checks that linked files exist, and prints the
// pages that the code knows.
package docs

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
)

const root = ".."

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// need looks for a program that is not ours. If it is missing, the test fails in CI
// and is skipped elsewhere.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err == nil {
			continue
		} else if os.Getenv("CI") != "" {
			t.Fatal(err)
		} else {
			t.Skip(err)
		}
	}
}

// build makes the commands and returns their directory.
func build(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	for _, name := range []string{"ingest", "logquery", "retention"} {
		if err := testkit.Build(root, bin, name); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}

// environment returns this process's environment without settings of blobtail or
// Azure, and without the contexts of its user.
func environment(extra ...string) []string {
	env := slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "BLOBTAIL_") || strings.HasPrefix(s, "AZURE_")
	})
	return append(append(env, "XDG_CONFIG_HOME=/nonexistent"), extra...)
}

func freePorts(t *testing.T, n int) []string {
	t.Helper()
	ports, err := testenv.FreePorts(n)
	if err != nil {
		t.Fatal(err)
	}
	return ports
}

// portsOfPage are three of ours and three of the emulator.
const portsOfPage = 6

// TestPages runs the commands of each page one after another in one shell, in an
// empty directory, and compares the stdout of each block with the block below it.
// Only the three ports differ.
func TestPages(t *testing.T) {
	need(t, "bash", "curl", "zstd", "jq", "openssl")
	bin, ran := build(t), 0
	all := pages(t)
	ports := freePorts(t, portsOfPage*len(all)) // at once, or a page gets one that another is about to use
	for i, page := range all {
		run := slices.DeleteFunc(blocks(t, page), func(b block) bool {
			return b.skip == "" && lacks(t, b, "lnav") || b.skip != "" && (os.Getenv("ENGINES_PYTHON") == "" || !strings.HasPrefix(b.skip, "make engines "))
		})
		if len(run) == 0 {
			continue
		}
		ran += len(run)
		t.Run(page, func(t *testing.T) {
			need(t, programsOf[page]...)
			t.Parallel()
			bin := bin
			switch page {
			case otherTools:
				bin += ":" + standIns(t)
			case azureTry:
				bin += ":" + emulator(t)
			}
			runPage(t, page, run, bin, ports[portsOfPage*i:])
		})
	}
	if ran < 130 {
		t.Errorf("found %d blocks to run: this is not all of them", ran)
	}
}

// lacks reports whether a block calls a program that is missing. In CI the test fails then.
func lacks(t *testing.T, b block, program string) bool {
	t.Helper()
	if !strings.Contains(b.text, program) {
		return false
	}
	_, err := exec.LookPath(program)
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal(err)
	}
	return err != nil
}

// otherTools shows commands of databases. Programs of Node stand in for them.
const otherTools = "docs/read/other-tools.md"

// standIns is the directory of the programs that stand in for commands of others.
func standIns(t *testing.T) string {
	t.Helper()
	need(t, "node")
	if _, err := os.Stat(filepath.Join(root, "node_modules", "@duckdb", "node-api")); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("no DuckDB: npm ci --ignore-scripts")
	}
	dir, err := filepath.Abs("testdata/tools")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// azureTry starts an emulator of Azure Storage.
const azureTry = "docs/start/azure.md"

// emulator is the directory of the emulator's command.
func emulator(t *testing.T) string {
	t.Helper()
	need(t, "node")
	dir, err := filepath.Abs(filepath.Join(root, "node_modules", ".bin"))
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, "azurite"))
	}
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("no Azurite: npm ci --ignore-scripts")
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// onPorts are replacements that move the emulator to free ports. The short form of its address
// names the usual ones.
func onPorts(ports []string) []string {
	const short = "UseDevelopmentStorage=true\n"
	long := fmt.Sprintf("'AccountName=devstoreaccount1;AccountKey=%s;BlobEndpoint=http://127.0.0.1:%s/devstoreaccount1;TableEndpoint=http://127.0.0.1:%s/devstoreaccount1'\n", testenv.Key, ports[0], ports[2])
	return []string{"10000", ports[0], "10001", ports[1], "10002", ports[2], short, long}
}

// runPage runs the blocks of a page.
func runPage(t *testing.T, page string, run []block, bin string, ports []string) {
	const mark = "@@ end of block"
	var script strings.Builder
	// After a failure, no process is left running.
	script.WriteString("set -euo pipefail\ntrap 'kill -9 $(jobs -p) 2>/dev/null || true' EXIT\n" + follow)
	for _, b := range run {
		fmt.Fprintf(&script, "%secho '%s'\n", ended(b), mark)
	}
	moved := []string{"127.0.0.1:8514", "127.0.0.1:" + ports[0], "127.0.0.1:8515", "127.0.0.1:" + ports[1], "127.0.0.1:8516", "127.0.0.1:" + ports[2]}
	if page == azureTry {
		moved = append(moved, onPorts(ports[3:])...)
	}
	text := strings.NewReplacer(moved...).Replace(script.String())

	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	dir := t.TempDir()
	cmd := exec.CommandContext(ctx, "bash", "-c", text)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader("")
	cmd.Env = environment("PATH="+bin+":"+os.Getenv("PATH"), "TZ=UTC", "HOME="+dir, "XDG_CONFIG_HOME=",
		"GOCACHE="+goCache(t), "BLOBTAIL_LISTEN=127.0.0.1:"+ports[0], "BLOBTAIL_ADMIN=127.0.0.1:"+ports[1])
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()

	printed := strings.Split(stdout.String(), mark+"\n")
	for i, b := range run {
		if i >= len(printed)-1 {
			t.Errorf("%s:%d: the commands failed here:\n%s", page, b.line, b.text)
			break
		}
		if b.shown && !match(b.output, printed[i]) {
			t.Errorf("%s:%d: the block below says\n%s\nbut printed was\n%s", page, b.line, b.output, printed[i])
		}
	}
	if err != nil || t.Failed() {
		t.Errorf("%v\nstderr: %s", err, stderr.String())
		logs, _ := filepath.Glob(filepath.Join(dir, "*.log"))
		for _, name := range logs {
			log, _ := os.ReadFile(name)
			t.Errorf("%s: %.20000s", filepath.Base(name), log)
		}
	}
}

// goCache is the cache of the compiler: a program on a page needs the standard library, which takes
// half a minute to compile.
func goCache(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// follow LINES COMMAND... is a function of the shell. It runs an endless command until that has
// printed so many lines, for two minutes at most, and ends it with Ctrl-C.
const follow = `follow() {
	local lines=$1 out pid tries code=0
	shift
	out=$(mktemp)
	"$@" >"$out" &
	pid=$!
	for tries in $(seq 1200); do
		[ "$(wc -l <"$out")" -lt "$lines" ] || break
		sleep 0.1
	done
	kill -INT $pid
	wait $pid || code=$?
	cat "$out"
	rm "$out"
	[ $code = 0 ] || [ $code = 130 ]
}
`

// ended ends each endless command of a block when it has printed as many lines as the page shows.
func ended(b block) string {
	endless := regexp.MustCompile(`(?m)^(logquery tail .*-f .*?) +# until Ctrl-C$`)
	return endless.ReplaceAllString(b.text, fmt.Sprintf("follow %d $1", strings.Count(b.output, "\n")))
}

// match compares text with a page's, in which "..." matches any text on its line.
func match(shown, got string) bool {
	expr := strings.ReplaceAll(regexp.QuoteMeta(shown), regexp.QuoteMeta("..."), `[^\n]*`)
	return regexp.MustCompile(`\A` + expr + `\z`).MatchString(got)
}

// TestSkippedCommands ensures that CI runs the commands that are skipped here because
// CI runs them, and that every make target on a page exists.
func TestSkippedCommands(t *testing.T) {
	ci, makefile := read(t, filepath.Join(".ci", "run")), read(t, "Makefile")
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			for line := range strings.Lines(b.text) {
				line = strings.TrimSpace(line)
				if strings.Contains(b.skip, ".ci/run") && !strings.Contains(ci, "\n"+line+"\n") {
					t.Errorf("%s:%d: .ci/run does not run %q", page, b.line, line)
				}
			}
		}
		for _, m := range regexp.MustCompile("`make ([a-z]+)`").FindAllStringSubmatch(read(t, page), -1) {
			if !strings.Contains(makefile, "\n"+m[1]+":") {
				t.Errorf("%s: there is no make %s", page, m[1])
			}
		}
	}
}

// pages returns all pages of the repository, from its root.
func pages(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, pattern := range []string{"*.md", "*/*.md", "*/*/*.md"} {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			rel, err := filepath.Rel(root, name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(rel, "node_modules") {
				out = append(out, rel)
			}
		}
	}
	if len(out) < 3 {
		t.Fatalf("found %v", out)
	}
	return out
}

// TestLinks ensures that the files and headings that pages link to exist, and those that alerts name.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`(?m)(?:\]\(|^\[\w+\]: )([^)#\s]*)(?:#([^)\s]*))?(?:\)|$)`)
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target := page
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(page), m[1])
			}
			checkLink(t, page, target, m[2])
		}
	}
	named := regexp.MustCompile(`(?m)^ +page: ([^#\s]+)(?:#(\S+))?$`)
	for _, file := range []string{"deploy/prometheus/alerts.yaml", "deploy/vmalert/rules.yaml"} {
		found := named.FindAllStringSubmatch(read(t, file), -1)
		for _, m := range found {
			checkLink(t, file, m[1], m[2])
		}
		if len(found) == 0 {
			t.Errorf("no alert of %s names a page", file)
		}
	}
}

// checkLink ensures that a file has a heading, unless heading is "".
func checkLink(t *testing.T, from, target, heading string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, target)); err != nil {
		t.Errorf("%s links to %s: %v", from, target, err)
	} else if heading != "" && !slices.Contains(anchors(read(t, target)), heading) {
		t.Errorf("%s links to %s#%s: no such heading", from, target, heading)
	}
}

// anchors returns the headings of a page in the form in which links name them.
func anchors(page string) (out []string) {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		text := regexp.MustCompile(`[^\pL\pN_ -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		out = append(out, strings.ReplaceAll(text, " ", "-"))
	}
	return out
}

// TestWidth ensures that README.md has at most 130 lines, and that prose wraps at 100
// characters. Tables, code, pictures, lines with a link and printed pages may be longer.
func TestWidth(t *testing.T) {
	if n := strings.Count(read(t, "README.md"), "\n"); n > 130 {
		t.Errorf("README.md has %d lines", n)
	}
	definition := regexp.MustCompile(`^\[\w+\]: \S+$`) // of a link
	for _, page := range pages(t) {
		if strings.Contains(read(t, page), "\n"+printedBy) {
			continue
		}
		fenced := false
		for i, line := range strings.Split(read(t, page), "\n") {
			if strings.HasPrefix(line, "```") {
				fenced = !fenced
			}
			free := fenced || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "<!--") || strings.Contains(line, "](") || definition.MatchString(line)
			if n := utf8.RuneCountInString(line); n > 100 && !free {
				t.Errorf("%s:%d: %d characters", page, i+1, n)
			}
		}
	}
}

// TestNamedTests ensures that each test that docs/measured/tests.md, or another page, names
// exists.
func TestNamedTests(t *testing.T) {
	declared := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(text, -1) {
			declared[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages(t) {
		named := regexp.MustCompile(`\bTest[A-Z]\w*`).FindAllString(read(t, page), -1)
		if page == filepath.Join("docs", "measured", "tests.md") && len(named) < 50 {
			t.Errorf("%s names %d tests", page, len(named))
		}
		for _, name := range named {
			if !declared[name] {
				t.Errorf("%s names %s, and there is no such test", page, name)
			}
		}
	}
}

// TestNamedPages ensures that each page that a program, a unit, a manifest or a setting names is
// there, with its heading.
func TestNamedPages(t *testing.T) {
	named := regexp.MustCompile(`(?:^|[^\w/.-])((?:\.\./)*(?:(?:docs|deploy|configs)/[\w/-]+|[A-Z][A-Z-]+)\.md)(?:#([a-z0-9-]+))?`)
	found := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && path != root && (name == "node_modules" || name == "testdata" || name == "bin" || strings.HasPrefix(name, ".")):
			return filepath.SkipDir
		case !d.Type().IsRegular() || strings.HasSuffix(name, ".md") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			found++
			checkLink(t, path, strings.TrimLeft(m[1], "./"), m[2])
		}
		return err
	})
	if err != nil || found < 150 {
		t.Errorf("%d names, %v", found, err)
	}
}
