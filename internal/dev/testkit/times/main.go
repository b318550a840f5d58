// Command times tells where the time of the tests goes. `make test-times` calls it: it runs
// each `go test` of `make test` through this command, and prints the tables at the end.
//
//	times run DIR NAME go test ARGS...   runs the tests, and keeps their costs as DIR/NAME.json
//	times report [-alone=false] DIR      prints the tables of the costs in DIR
//
// The seconds of a package are those of its test process and of the processes that it waited
// for. `go test` tells the wall seconds of a test, but not its processor time. So the report
// runs each of the longest tests once more, alone, and takes the time of that process.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// cost is the time that a process and its children took, in seconds.
type cost struct {
	CPU, Wall float64
}

func (c cost) plus(d cost) cost { return cost{c.CPU + d.CPU, c.Wall + d.Wall} }

// spent is the cost of the children of this process that have ended, and the time since begun.
func spent(begun time.Time) cost {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
		return cost{}
	}
	cpu := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	return cost{CPU: cpu.Seconds(), Wall: time.Since(begun).Seconds()}
}

// tier is one `go test` of `make test`.
type tier struct {
	Name     string
	Args     []string // of go test
	Dir      string
	Env      []string // beside that of the report
	All      cost     // with compiling and linking
	Packages map[string]cost
	Tests    []test
}

// test is a test function, without its subtests.
type test struct {
	Package, Name string
	Wall          float64
}

// event is a line of `go test -json`.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

func main() {
	if len(os.Args) < 2 {
		fail(2, errors.New("usage: times run DIR NAME go test ARGS | times report DIR"))
	}
	var err error
	switch os.Args[1] {
	case "run":
		err = run(os.Args[2:])
	case "under":
		err = under(os.Args[2:])
	case "report":
		flags := flag.NewFlagSet("report", flag.ExitOnError)
		alone := flags.Bool("alone", true, "run each of the longest tests alone")
		_ = flags.Parse(os.Args[2:]) // ends the process
		err = report(os.Stdout, flags.Arg(0), *alone)
	default:
		err = fmt.Errorf("no verb %q", os.Args[1])
	}
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		os.Exit(max(1, ended.ExitCode()))
	case err != nil:
		fail(1, err)
	}
}

func fail(code int, err error) {
	fmt.Fprintln(os.Stderr, "times:", err)
	os.Exit(code)
}

// run runs `go test`, prints its output, and keeps the costs.
func run(args []string) error {
	if len(args) < 4 || args[2] != "go" || args[3] != "test" {
		return errors.New("usage: times run DIR NAME go test ARGS")
	}
	dir, name, args := args[0], args[1], args[4:]
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	costs, err := os.CreateTemp(dir, name+"-*.costs")
	if err != nil {
		return err
	}
	defer os.Remove(costs.Name())
	defer costs.Close()
	t := tier{Name: name, Args: args, Packages: map[string]cost{}}
	if t.Dir, err = os.Getwd(); err != nil {
		return err
	}
	for _, name := range []string{"CGO_ENABLED", "GOFLAGS", "GOGC", "BLOBTAIL_BIN"} {
		if value, ok := os.LookupEnv(name); ok {
			t.Env = append(t.Env, name+"="+value)
		}
	}
	begun := time.Now()
	cmd := exec.Command("go", slices.Concat([]string{"test", "-json", "-exec", self + " under " + costs.Name()}, args)...)
	cmd.Stdin, cmd.Stderr = os.Stdin, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	t.read(out)
	failed := cmd.Wait()
	t.All = spent(begun)
	if err := t.addCosts(costs); err != nil {
		return err
	}
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name+".json"), text, 0o644); err != nil {
		return err
	}
	return failed
}

// read takes the tests out of the events, and prints the lines of packages and of failed tests.
func (t *tier) read(events io.Reader) {
	said := map[string]*bytes.Buffer{} // by package and test
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) != nil {
			os.Stdout.Write(line) // go test itself has something to say
		} else {
			t.take(e, said)
		}
		if err != nil {
			return
		}
	}
}

func (t *tier) take(e event, said map[string]*bytes.Buffer) {
	key := e.Package + " " + e.Test
	top := e.Test != "" && !slices.Contains([]byte(e.Test), '/')
	switch e.Action {
	case "output", "build-output":
		if e.Test == "" {
			if e.Output != "PASS\n" { // without -v, go test does not print it
				fmt.Print(e.Output)
			}
			return
		}
		if said[key] == nil {
			said[key] = &bytes.Buffer{}
		}
		said[key].WriteString(e.Output)
	case "pass", "skip", "fail":
		if out := said[key]; e.Action == "fail" && out != nil {
			os.Stdout.Write(out.Bytes())
		}
		delete(said, key)
		for other, out := range said {
			if e.Action == "fail" && e.Test == "" && strings.HasPrefix(other, key) { // it did not end
				os.Stdout.Write(out.Bytes())
			}
		}
		if top {
			t.Tests = append(t.Tests, test{e.Package, e.Test, e.Elapsed})
		}
	}
}

// packageCost is a line of the file that the test processes write.
type packageCost struct {
	Dir string // of the package
	cost
}

// under runs a test process and adds a line with its cost to a file.
func under(args []string) error {
	// Such a signal of the terminal is for the tests. One that is ignored would be so in them too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGQUIT)
	begun := time.Now()
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	failed := cmd.Run()
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	line, err := json.Marshal(packageCost{dir, spent(begun)})
	if err != nil {
		return err
	}
	file, err := os.OpenFile(args[0], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Write(append(line, '\n')); err != nil {
		return err
	}
	return failed
}

func (t *tier) addCosts(costs io.Reader) error {
	lines := json.NewDecoder(costs)
	for {
		var p packageCost
		if err := lines.Decode(&p); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		rel, err := filepath.Rel(t.Dir, p.Dir)
		if err != nil {
			return err
		}
		t.Packages[filepath.ToSlash(rel)] = t.Packages[filepath.ToSlash(rel)].plus(p.cost)
	}
}
