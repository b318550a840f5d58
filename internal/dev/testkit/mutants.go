package testkit

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Edit has a file, named by its path from the root of the repository, a text of it, and
// the text to replace that with. The file must have the first text exactly once, so that
// a mutant cannot outlive the rule that it leaves out.
type Edit [3]string

// Mutant is the production code without one of its rules.
type Mutant struct {
	Name  string
	Edits []Edit
	Test  string // that must notice; "": that of the simulation
	First int    // seed to begin with: one that notices, for it is tried several times
	Seeds int    // within which the test must notice; 0: 2,000
}

// Simulation is a package with a test that goes through worlds of many seeds.
type Simulation struct {
	Package string         // path from the root of the repository
	Test    string         // that must notice, unless a mutant has its own
	Prefix  string         // of the variables _SEEDS, _FIRST and _MUTANT
	Env     []string       // more variables for the tests of mutants
	Seeds   int            // of `make test`; 0: 2,000
	Few     int            // seeds with -short; 0: 25
	Broken  *regexp.Regexp // matches the report of a broken promise; its first group is logged
}

// Catch makes each mutant and runs it until its test reports a broken promise. A
// mutant fails t when it is not caught within its seeds; so does a build that fails, a
// panic, and a simulation that gets stuck. The variable Prefix_MUTANT chooses the mutants with its
// value in their names.
//
// Most mutants are in one binary, and a variable of the environment chooses among them:
// to build one for each took two thirds of the time.
func (s Simulation) Catch(t *testing.T, mutants []Mutant) {
	only := os.Getenv(s.Prefix + "_MUTANT")
	root, err := filepath.Abs(strings.Repeat("../", 1+strings.Count(s.Package, "/")))
	if err != nil {
		t.Fatal(err)
	}
	mutants = slices.DeleteFunc(slices.Clone(mutants), func(m Mutant) bool { return !strings.Contains(m.Name, only) })
	together := newOverlay(root)
	apart := make(map[string]*overlay)
	for _, m := range mutants {
		switched, err := together.choose(m)
		if err == nil && !switched {
			apart[m.Name] = newOverlay(root)
			err = apart[m.Name].apply(m.Edits)
		}
		if err != nil {
			t.Fatalf("%s: %v", m.Name, err)
		}
	}
	binary := s.build(t, together)
	places := make(chan struct{}, 2)
	for _, m := range mutants {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			places <- struct{}{}
			defer func() { <-places }()
			binary := binary
			if own := apart[m.Name]; own != nil {
				binary = s.build(t, own)
			}
			s.run(t, m, binary)
		})
	}
}

// build makes the test binary of the package with an overlay.
func (s Simulation) build(t *testing.T, o *overlay) string {
	t.Helper()
	dir := t.TempDir()
	file, err := o.write(dir)
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "mutant.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", file, "-o", binary, "./"+s.Package)
	build.Dir = o.root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the mutant does not build: %v\n%s", err, out)
	}
	return binary
}

// run looks for the promise that the mutant breaks. The seed that is known to notice
// the mutant does so nearly always. Its neighbours may need thousands of worlds, so it
// gets a few tries before the search.
func (s Simulation) run(t *testing.T, m Mutant, binary string) {
	t.Helper()
	seeds := cmp.Or(m.Seeds, 2000)
	start := time.Now()
	caught := false
	for try := 0; try < 5 && m.First > 0 && !caught && !t.Failed(); try++ {
		caught = s.try(t, m, binary, 1)
	}
	if caught || s.try(t, m, binary, seeds) {
		t.Logf("caught after %s", time.Since(start).Round(time.Millisecond))
	} else if !t.Failed() {
		t.Errorf("not caught within %d seeds", seeds)
	}
}

// try runs the mutant with some seeds and reports whether its test reports a broken
// promise. Any other failure fails t.
func (s Simulation) try(t *testing.T, m Mutant, binary string, seeds int) (caught bool) {
	t.Helper()
	run := exec.CommandContext(t.Context(), binary, "-test.run", "^"+cmp.Or(m.Test, s.Test)+"$")
	run.Dir = t.TempDir()
	run.Env = append(os.Environ(), "GOMAXPROCS=1", fmt.Sprint(s.Prefix, "_SEEDS=", seeds), fmt.Sprint(s.Prefix, "_FIRST=", m.First))
	run.Env = append(append(run.Env, s.Env...), chosenEnv+"="+m.Name)
	out, err := run.CombinedOutput()
	var failed *exec.ExitError
	switch found := s.Broken.FindSubmatch(out); {
	case errors.As(err, &failed) && failed.ExitCode() == 1 && found != nil:
		t.Logf("%s", found[1])
		return true
	case err != nil:
		t.Errorf("no broken promise was found, but: %v\n%.3000s", err, out)
	}
	return false
}
