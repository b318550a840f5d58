package docs_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"blobtail/internal/dev/bench/result"
)

// TestComparePage ensures that the measured part of docs/COMPARISON.md, and docs/compare.svg, are
// those of the newest result in docs/compare. make compare writes all three.
func TestComparePage(t *testing.T) {
	r, err := result.Latest("compare")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no result is kept")
	} else if err != nil {
		t.Fatal(err)
	}
	if r.Quick {
		t.Error("the result is one of -quick, which has too few rounds for a page")
	}
	old, err := os.ReadFile("COMPARISON.md")
	if err != nil {
		t.Fatal(err)
	}
	page, err := result.Place(string(old), r)
	if err != nil {
		t.Fatal(err)
	}
	plot, err := result.Draw(r)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := errors.Join(os.WriteFile("COMPARISON.md", []byte(page), 0o644), os.WriteFile("compare.svg", plot, 0o644)); err != nil {
			t.Fatal(err)
		}
		return
	}
	const how = "go test ./docs -run TestComparePage -update"
	if page != string(old) {
		t.Errorf("the tables of docs/COMPARISON.md are not those of the result of %s: %s", r.Date, how)
	}
	if drawn, err := os.ReadFile("compare.svg"); err != nil || !bytes.Equal(drawn, plot) {
		t.Errorf("docs/compare.svg is not that of the result of %s: %s (%v)", r.Date, how, err)
	}
}

// TestPictureOfBench ensures that docs/performance.svg is drawn from a result in docs/bench, the
// latest that measured growth.
func TestPictureOfBench(t *testing.T) {
	names, err := filepath.Glob("bench/*.json")
	if err != nil || len(names) == 0 {
		t.Skip("no result is kept: ", err)
	}
	var latest result.Result
	for _, name := range names {
		r, err := result.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		if want := r.Date[:len(time.DateOnly)] + "-" + r.Commit + ".json"; filepath.Base(name) != want {
			t.Errorf("%s should be %s", name, want)
		}
		if len(r.Growth) > 0 && r.Date > latest.Date {
			latest = r
		}
	}
	want, err := result.DrawGrowth(latest)
	if err == nil && *update {
		err = os.WriteFile("performance.svg", want, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if picture, err := os.ReadFile("performance.svg"); err != nil || !bytes.Equal(picture, want) {
		t.Errorf("docs/performance.svg is not that of commit %s: go test ./docs -run TestPictureOfBench -update (%v)", latest.Commit, err)
	}
}
