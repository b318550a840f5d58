package layers

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// agpl are projects under the GNU Affero General Public License. No module of the repository may
// need a module of theirs, not for a test and not as a tool. A name has all names below it too.
var agpl = []string{
	"github.com/grafana/alerting", "github.com/grafana/grafana", "github.com/grafana/k6",
	"github.com/grafana/loki", "github.com/grafana/mimir", "github.com/grafana/oncall", "github.com/grafana/phlare",
	"github.com/grafana/pyroscope", "github.com/grafana/tempo", "github.com/minio/console", "github.com/minio/dperf",
	"github.com/minio/kes", "github.com/minio/madmin-go", "github.com/minio/mc", "github.com/minio/minio",
	"github.com/minio/operator", "github.com/minio/pkg", "github.com/minio/sidekick", "github.com/minio/warp",
	"github.com/photoprism/photoprism", "github.com/trufflesecurity/trufflehog", "github.com/zitadel/zitadel", "go.k6.io/k6",
}

// forbidden reports whether a module is of one of agpl.
func forbidden(name string) bool {
	return slices.ContainsFunc(agpl, func(a string) bool { return name == a || strings.HasPrefix(name, a+"/") })
}

// affero is the title of the license in a file, or its name in a statement of a license. Other
// licenses name it in small letters, as one that a work may be combined with.
var affero = regexp.MustCompile(`GNU\s+AFFERO\s+GENERAL|AGPL`)

// manifests are the files of a name in the whole repository, those of other modules too.
func manifests(t *testing.T, name string) (all []string) {
	t.Helper()
	root := filepath.Join("..", "..", "..")
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != root && (d.Name() == "node_modules" || d.Name() == "bin" || d.Name() == "dist" || strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.Name() == name:
			all = append(all, file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// escaped is a name of a module as the module cache writes it: ! and a small letter for a capital.
func escaped(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte('!')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// isLicense tells files for licenses by their names.
var isLicense = regexp.MustCompile(`(?i)^(un)?(licen[sc]e|copying)`)

// licensedAGPL names the file with the license of a module that is under the AGPL. The folder may
// be missing: not all modules of tools are downloaded.
func licensedAGPL(t *testing.T, dir string) string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return ""
	} else if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.IsDir() || !isLicense.MatchString(f.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if affero.Match(text) {
			return f.Name()
		}
	}
	return ""
}

// TestNoAGPL ensures that no Go module of the repository, of the product or of a tool, needs a
// module under the AGPL, directly or through others. go.sum names all of them. The module cache
// has the licenses of those that were downloaded.
func TestNoAGPL(t *testing.T) {
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	mods, sums := manifests(t, "go.mod"), manifests(t, "go.sum")
	if len(mods) < 3 || len(sums) < 3 {
		t.Fatalf("found %d go.mod and %d go.sum: this is not the whole repository", len(mods), len(sums))
	}
	for _, file := range slices.Concat(mods, sums) {
		needed := map[string]string{} // the folder in the cache of each module with code
		for line := range strings.Lines(readFile(t, file)) {
			line, _, _ = strings.Cut(line, "//") // a comment
			words := strings.Fields(line)
			for _, word := range words {
				if forbidden(word) {
					t.Errorf("%s needs %s, of a project under the AGPL", file, word)
				}
			}
			if len(words) == 3 && filepath.Base(file) == "go.sum" && !strings.HasSuffix(words[1], "/go.mod") {
				module := words[0] + "@" + words[1]
				needed[module] = filepath.Join(strings.TrimSpace(string(cache)), filepath.FromSlash(escaped(module)))
			}
		}
		for _, module := range slices.Sorted(maps.Keys(needed)) {
			if license := licensedAGPL(t, needed[module]); license != "" {
				t.Errorf("%s needs %s, whose %s is the AGPL", file, module, license)
			}
		}
	}
}

// TestNoAGPLOfNode ensures the same of packages of npm, by the licenses of lockfiles.
func TestNoAGPLOfNode(t *testing.T) {
	locks := manifests(t, "package-lock.json")
	if named := manifests(t, "package.json"); len(locks) != len(named) {
		t.Errorf("%d package.json have %d lockfiles", len(named), len(locks))
	}
	for _, file := range locks {
		var lock struct {
			Packages map[string]struct {
				Version string
				License any // a text; an object in old packages
			}
		}
		if err := json.Unmarshal([]byte(readFile(t, file)), &lock); err != nil || len(lock.Packages) < 2 {
			t.Fatalf("%s: %d packages, %v", file, len(lock.Packages), err)
		}
		for name, p := range lock.Packages {
			text, err := json.Marshal(p.License)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(strings.ToUpper(string(text)), "AGPL") || strings.Contains(strings.ToUpper(string(text)), "AFFERO") {
				t.Errorf("%s needs %s %s, its license is %s", file, name, p.Version, text)
			}
		}
	}
}

// TestAffero tells the AGPL from licenses that only name it.
func TestAffero(t *testing.T) {
	for text, want := range map[string]bool{
		"                    GNU AFFERO GENERAL PUBLIC LICENSE\n Version 3":              true,
		"SPDX-License-Identifier: AGPL-3.0-only":                                         true,
		"13. Use with the GNU Affero General Public License.":                            false,
		"Secondary License means ... the GNU Affero General Public License, Version 3.0": false,
		"Apache License\nVersion 2.0":                                                    false,
		"GNU AFFERO\nGENERAL PUBLIC LICENSE":                                             true,
	} {
		if got := affero.MatchString(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	for name, want := range map[string]bool{
		"github.com/grafana/loki/v3": true, "github.com/grafana/loki/pkg/push": true, "github.com/minio/minio": true, "go.k6.io/k6": true,
		"github.com/grafana/regexp": false, "github.com/minio/minio-go/v7": false, "github.com/minio/highwayhash": false, "github.com/grafana/lokitool": false,
	} {
		if got := forbidden(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if got := escaped("github.com/Azure/go-NTLM@v1.0.0"); got != "github.com/!azure/go-!n!t!l!m@v1.0.0" {
		t.Error(got)
	}
}

func readFile(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
