package layers

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRootFolders ensures that the root has few folders.
func TestRootFolders(t *testing.T) {
	ignored, err := os.ReadFile(filepath.Join(root, ".gitignore"))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for _, e := range entries {
		name := e.Name()
		info, err := os.Stat(filepath.Join(root, name)) // node_modules may be a link
		if err != nil || !info.IsDir() || strings.HasPrefix(name, ".") || strings.Contains("\n"+string(ignored), "\n/"+name+"/\n") {
			continue
		}
		folders = append(folders, name)
	}
	if n := len(folders); n > mostFolders {
		t.Errorf("the root has %d folders, and at most %d are allowed: %s\n"+
			"put the new one below the part that it belongs to, or raise mostFolders in the commit that says why", n, mostFolders, strings.Join(folders, " "))
	}
}

// listed is a package as go list shows it.
type listed struct {
	ImportPath, Name string
	Imports          []string
}

// product returns the packages of the product, with the packages of the product that each imports.
func product(t *testing.T) map[string][]string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Name,Imports", "./...")
	list.Dir = root
	var stderr strings.Builder
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	imports := map[string][]string{}
	for in := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := in.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		pkg := strings.TrimPrefix(p.ImportPath, module+"/")
		if _, ok := allowed[pkg]; !ok {
			continue // for tests or development
		}
		imports[pkg] = nil
		for _, imp := range p.Imports {
			if ours, ok := strings.CutPrefix(imp, module+"/"); ok {
				imports[pkg] = append(imports[pkg], ours)
			}
		}
	}
	if len(imports) < 50 {
		t.Fatalf("found %d packages: this is not the whole product", len(imports))
	}
	return imports
}

// folderOf returns the root folder of a package.
func folderOf(pkg string) string {
	folder, _, _ := strings.Cut(pkg, "/")
	return folder
}

// TestArrows ensures that few root folders import others, and that few of them do so in a circle.
func TestArrows(t *testing.T) {
	arrows := map[string]map[string][]string{} // from, to: imports
	count := 0
	imports := product(t)
	for _, pkg := range slices.Sorted(maps.Keys(imports)) {
		for _, imp := range imports[pkg] {
			from, to := folderOf(pkg), folderOf(imp)
			if from == to {
				continue
			}
			if arrows[from] == nil {
				arrows[from] = map[string][]string{}
			}
			if arrows[from][to] == nil {
				count++
			}
			arrows[from][to] = append(arrows[from][to], pkg+" imports "+imp)
		}
	}
	if count > mostArrows {
		t.Errorf("there are %d arrows between root folders, and at most %d are allowed. These have one import:\n%s\n"+
			"take the new one back, or raise mostArrows in the commit that says why", count, mostArrows, strings.Join(thin(arrows), "\n"))
	}
	var circled []string
	for folder := range arrows {
		if reaches(arrows, folder, folder) {
			circled = append(circled, folder)
		}
	}
	slices.Sort(circled)
	if len(circled) > mostCircled {
		var between []string
		for _, from := range circled {
			for _, to := range circled {
				if reaches(arrows, to, from) && arrows[from][to] != nil {
					between = append(between, fmt.Sprintf("%s -> %s: %s", from, to, strings.Join(arrows[from][to], ", ")))
				}
			}
		}
		t.Errorf("the root folders %s import each other in a circle, and at most %d may:\n%s\n"+
			"move a package to the side of its importers, or raise mostCircled in the commit that says why", strings.Join(circled, ", "), mostCircled, strings.Join(between, "\n"))
	}
}

// thin returns the arrows that rest on one import.
func thin(arrows map[string]map[string][]string) (out []string) {
	for _, from := range slices.Sorted(maps.Keys(arrows)) {
		for _, to := range slices.Sorted(maps.Keys(arrows[from])) {
			if of := arrows[from][to]; len(of) == 1 {
				out = append(out, fmt.Sprintf("%s -> %s: %s", from, to, of[0]))
			}
		}
	}
	return out
}

// reaches reports whether arrows lead from one folder to another.
func reaches(arrows map[string]map[string][]string, from, to string) bool {
	seen := map[string]bool{}
	next := []string{from}
	for len(next) > 0 {
		folder := next[0]
		next = next[1:]
		for other := range arrows[folder] {
			if other == to {
				return true
			}
			if !seen[other] {
				seen[other] = true
				next = append(next, other)
			}
		}
	}
	return false
}
