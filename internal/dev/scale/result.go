package scale

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Ingest is the part of a result that tells of one ingester, whose numbers are counted times
// Ingesters. The numbers are of VirtualSeconds in the midst of a run: the start, the first
// minutes and the flush at the end are not among them.
type Ingest struct {
	Services         int     `json:"services"` // of the ingester
	Ingesters        int     `json:"ingesters"`
	RecordsPerSecond float64 `json:"records_per_second_pair"`
	VirtualSeconds   int     `json:"virtual_seconds"`
	Flush            Flush   `json:"flush"`
	TailEvery        string  `json:"tail_every"` // as measured
	Records          int64   `json:"records"`
	RawBytes         int64   `json:"raw_bytes"`    // lines with their newlines
	StoredBytes      int64   `json:"stored_bytes"` // of new blobs
	TailBytes        int64   `json:"tail_bytes"`   // of rows, as Azure charges them
	TailRows         int64   `json:"tail_rows"`
	Requests         Counts  `json:"requests"`
	Refused          int64   `json:"refused"` // requests beyond a limit
	// Detail has the requests by the part of the store that they were for.
	Detail map[string]int64 `json:"detail"`
}

// Flush are the settings of the flush that were in force.
type Flush struct {
	Size   string `json:"size"`
	Min    string `json:"min"`
	Age    string `json:"age"`
	MaxAge string `json:"max_age"`
}

// Apart shows whether ingesters have an effect on each other: the requests of one, and those of
// all at once. What should be Ingesters times as much and is not has its name in Exceptions.
type Apart struct {
	Services   int                 `json:"services"`
	Ingesters  int                 `json:"ingesters"`
	One        Counts              `json:"one"`
	All        Counts              `json:"all"`
	Exceptions map[string][2]int64 `json:"exceptions"` // requests of one, and of all
}

// Update writes parts of a result, such as "a" and "b", into the file of today in a directory. It
// keeps the other parts of that file if they are of the same commit.
func Update(dir string, parts map[string]any) (file string, err error) {
	now := time.Now()
	file = filepath.Join(dir, now.Format(time.DateOnly)+".json")
	all := map[string]any{}
	commit := commit()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return file, fmt.Errorf("read the results of today: %w", err)
	}
	if all["commit"] != commit {
		all = map[string]any{}
	}
	all["version"], all["date"], all["commit"] = 1, now.Format(time.DateOnly), commit
	all["machine"] = fmt.Sprintf("%d cores, %s/%s, %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	for name, part := range parts {
		all[name] = part
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(all); err != nil {
		return file, fmt.Errorf("write the results: %w", err)
	}
	return file, os.WriteFile(file, b.Bytes(), 0o644)
}

// commit is that of the working copy; "" outside of one.
func commit() string {
	out, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
