package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// longest is how many tests the report lists.
const longest = 50

// report prints the times of the tiers in a directory.
func report(to io.Writer, dir string, alone bool) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("%s has no times: run make test-times", dir)
	}
	var tiers []tier
	for _, file := range files {
		var t tier
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(text, &t); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		tiers = append(tiers, t)
	}
	printTests(to, tiers, alone)
	printPackages(to, tiers)
	printTiers(to, tiers)
	return nil
}

// races reports whether the tests have the race detector.
func (t *tier) races() bool { return slices.Contains(t.Args, "-race") }

func (t *tier) mode() string {
	if t.races() {
		return "race"
	}
	return "plain"
}

func printTiers(to io.Writer, tiers []tier) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\ntests of\t\tCPU s\twall s\tCPU s to build\t")
	var sum cost
	build := 0.0
	for _, t := range tiers {
		var tests cost
		for _, c := range t.Packages {
			tests = tests.plus(c)
		}
		fmt.Fprintf(w, "%s\t%s\t%.0f\t%.0f\t%.0f\t\n", t.Name, t.mode(), t.All.CPU, t.All.Wall, t.All.CPU-tests.CPU)
		sum, build = sum.plus(t.All), build+t.All.CPU-tests.CPU
	}
	fmt.Fprintf(w, "sum\t\t%.0f\t%.0f\t%.0f\t\n", sum.CPU, sum.Wall, build)
	w.Flush()
}

func printPackages(to io.Writer, tiers []tier) {
	all := map[string][2]cost{} // without and with the race detector
	for _, t := range tiers {
		for name, c := range t.Packages {
			both := all[name]
			if t.races() {
				both[1] = both[1].plus(c)
			} else {
				both[0] = both[0].plus(c)
			}
			all[name] = both
		}
	}
	names := slices.Collect(maps.Keys(all))
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(all[b][0].CPU+all[b][1].CPU, all[a][0].CPU+all[a][1].CPU), strings.Compare(a, b))
	})
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\npackage\tCPU s\twall s\tCPU s, race\twall s, race\t")
	for _, name := range names {
		c := all[name]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t\n", name, seconds(c[0].CPU), seconds(c[0].Wall), seconds(c[1].CPU), seconds(c[1].Wall))
	}
	w.Flush()
}

func seconds(s float64) string {
	if s == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", s)
}

// printTests prints the longest tests by their wall time beside others.
func printTests(to io.Writer, tiers []tier, alone bool) {
	type row struct {
		test
		of *tier
	}
	var rows []row
	for i := range tiers {
		for _, t := range tiers[i].Tests {
			rows = append(rows, row{t, &tiers[i]})
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(b.Wall, a.Wall) })
	rows = rows[:min(longest, len(rows))]
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\ntest\t\twall s beside others\tCPU s alone\twall s alone\t")
	binaries := map[string]string{}
	defer func() {
		for _, b := range binaries {
			os.Remove(b)
		}
	}()
	for _, r := range rows {
		cpu, wall := "", ""
		if alone {
			switch c, err := r.of.alone(r.test, binaries); {
			case err != nil:
				cpu = strings.ReplaceAll(err.Error(), "\n", " ")
			default:
				cpu, wall = fmt.Sprintf("%.1f", c.CPU), fmt.Sprintf("%.1f", c.Wall)
			}
		}
		fmt.Fprintf(w, "%s %s\t%s\t%.1f\t%s\t%s\t\n", strings.TrimPrefix(r.Package, module()), r.Name, r.of.mode(), r.Wall, cpu, wall)
	}
	w.Flush()
}

// module returns the path of this module with a slash.
func module() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return info.Main.Path + "/"
}

// alone runs one test in a process of its own. binaries has those that were built before.
func (t *tier) alone(one test, binaries map[string]string) (cost, error) {
	key := t.mode() + " " + one.Package
	if binaries[key] == "" {
		file, err := os.CreateTemp("", "times-*.test")
		if err != nil {
			return cost{}, err
		}
		file.Close()
		args := []string{"test", "-c", "-vet=off", "-o", file.Name()}
		if t.races() {
			args = append(args, "-race")
		}
		build := exec.Command("go", append(args, one.Package)...)
		build.Dir, build.Env = t.Dir, append(os.Environ(), t.Env...)
		if out, err := build.CombinedOutput(); err != nil {
			return cost{}, fmt.Errorf("build: %w: %.200s", err, out)
		}
		binaries[key] = file.Name()
	}
	where := exec.Command("go", "list", "-f", "{{.Dir}}", one.Package)
	where.Dir = t.Dir
	dir, err := where.Output()
	if err != nil {
		return cost{}, err
	}
	cmd := exec.Command(binaries[key], "-test.run", "^"+one.Name+"$")
	cmd.Dir, cmd.Env = strings.TrimSpace(string(dir)), append(os.Environ(), t.Env...)
	begun := time.Now()
	before := spent(begun)
	err = cmd.Run()
	c := spent(begun)
	c.CPU -= before.CPU
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return c, errors.New("failed alone")
	}
	return c, err
}
