// Command vuln looks for known vulnerabilities in binaries of Go, by govulncheck's own
// code: in the code that is linked into them, not merely in the modules they are of.
//
//	go run ./vuln [-db URL] [-release-go go1.26.11] BINARY...
//
// Without -db the database is the module golang.org/x/vulndb, in the version of
// vulndb/go.mod: vuln.go.dev is not reachable everywhere, the Go proxy mostly is.
//
// It exits with 1 if a vulnerability is in a module, or in the standard library and not
// fixed in the Go that releases are built with; with 2 if it could not look.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/version"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/vuln/scan"
)

func main() {
	db := flag.String("db", "", "URL of the database; without it the module golang.org/x/vulndb")
	release := flag.String("release-go", "", "the Go that releases are built with; without it that of each binary counts")
	flag.Parse()
	bad, err := check(context.Background(), *db, *release, flag.Args(), os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "vuln:", err)
		os.Exit(2)
	}
	if bad {
		os.Exit(1)
	}
}

// check prints the findings in the binaries, and reports whether it has to be acted upon.
func check(ctx context.Context, db, release string, binaries []string, out io.Writer) (bad bool, err error) {
	if len(binaries) == 0 {
		return false, errors.New("no binary is given: make build, then vuln bin/ingest")
	}
	if db == "" {
		m, err := database(ctx)
		if err != nil {
			return false, err
		}
		fmt.Fprintln(out, "the database is", m)
		db = "file://" + filepath.ToSlash(filepath.Join(m.Dir, "data", "osv"))
	}
	for _, file := range binaries {
		found, err := look(ctx, db, file)
		if err != nil {
			return bad, fmt.Errorf("%s: %w", file, err)
		}
		linked := 0
		for _, f := range found {
			if !f.linked {
				continue
			}
			linked++
			fmt.Fprintf(out, "%s: %s in %s %s, fixed in %s: %s", file, f.id, f.module, f.version, orNone(f.fixed), f.summary)
			if f.harmless(release) {
				fmt.Fprintf(out, " (releases are built with %s)", release)
			} else {
				bad = true
			}
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "%s: %d vulnerabilities in linked code, %d more in other code of its modules\n", file, linked, len(found)-linked)
	}
	return bad, nil
}

func orNone(version string) string {
	if version == "" {
		return "no version"
	}
	return version
}

// module is a version of the database.
type module struct{ Version, Dir, Error string }

// String tells the version and its age, in words: the version of a commit has its time.
func (m module) String() string {
	text := "golang.org/x/vulndb " + m.Version
	if parts := strings.Split(m.Version, "-"); len(parts) == 3 {
		if at, err := time.Parse("20060102150405", parts[1]); err == nil {
			text += fmt.Sprintf(", %d days old", int(time.Since(at).Hours()/24))
		}
	}
	return text
}

// database fetches the database from the Go proxy, unless it is there already.
func database(ctx context.Context) (module, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", "golang.org/x/vulndb")
	cmd.Dir = "vulndb"
	out, err := cmd.Output()
	var m module
	if json.Unmarshal(out, &m) == nil && m.Error != "" {
		err = errors.New(m.Error)
	}
	if err != nil {
		return m, fmt.Errorf("the database cannot be fetched from the Go proxy: %w; where vuln.go.dev can be reached, give its URL: make vuln VULNDB=https://vuln.go.dev", err)
	}
	return m, nil
}

// finding is a vulnerability of a module that a binary is made of.
type finding struct {
	id, module, version, fixed, summary string
	linked                              bool // its code is in the binary
}

// harmless reports whether the release is built with a Go that has it fixed.
func (f finding) harmless(release string) bool {
	return f.module == "stdlib" && release != "" && f.fixed != "" &&
		version.Compare("go"+strings.TrimPrefix(f.fixed, "v"), release) <= 0
}

// message is a part of the messages of govulncheck -format json.
type message struct {
	OSV *struct{ ID, Summary string }
	// A finding is told once for each level: the module, the package, the symbol.
	Finding *struct {
		OSV          string
		FixedVersion string `json:"fixed_version"`
		Trace        []struct{ Module, Version, Function string }
	}
}

// look has govulncheck scan a binary, and returns the findings in the order of their ids.
func look(ctx context.Context, db, file string) ([]finding, error) {
	cmd := scan.Command(ctx, "-mode", "binary", "-format", "json", "-db", db, file)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("govulncheck: %w %s", err, stderr.String())
	}
	return read(&stdout)
}

func read(stdout io.Reader) ([]finding, error) {
	found, summaries := map[string]finding{}, map[string]string{}
	for d := json.NewDecoder(stdout); ; {
		var m message
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("govulncheck's output: %w", err)
		}
		if m.OSV != nil {
			summaries[m.OSV.ID] = m.OSV.Summary
		}
		if f := m.Finding; f != nil && len(f.Trace) > 0 {
			old, t := found[f.OSV], f.Trace[0]
			found[f.OSV] = finding{id: f.OSV, module: t.Module, version: t.Version, fixed: f.FixedVersion, linked: old.linked || t.Function != ""}
		}
	}
	sorted := make([]finding, 0, len(found))
	for _, id := range slices.Sorted(maps.Keys(found)) {
		f := found[id]
		f.summary = summaries[id]
		sorted = append(sorted, f)
	}
	return sorted, nil
}
