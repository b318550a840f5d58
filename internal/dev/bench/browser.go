package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"blobtail/internal/dev/bench/report"
)

// opened is how often the page is opened for a row.
const opened = 5

// browser measures the first rows of the page in a browser, over the store of the reference corpus.
func (b *bench) browser(ctx context.Context) error {
	v, err := b.startServer(ctx, b.sides[0].store)
	if err != nil {
		return err
	}
	defer v.Kill()
	return b.firstRows(ctx, v, "page", b.o.records, 0)
}

// firstRows opens the page over all records of a server, and adds a row with the times until the
// first records can be seen. Without Chromium or the packages of npm it says so, and adds none.
func (b *bench) firstRows(ctx context.Context, v *server, id string, records int, reach float64) error {
	if !b.o.rows.Choose(id) {
		return nil
	}
	chromium, err := exec.LookPath("chromium")
	if err == nil {
		_, err = os.Stat(filepath.Join("node_modules", "playwright-core"))
	}
	if err != nil {
		b.say("%s is left out: %v", id, err)
		return nil
	}
	from, err := stampOf(v.from)
	if err != nil {
		return err
	}
	to, err := stampOf(v.to)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "node", filepath.Join("integration", "page", "firstrows.mjs"), v.Base+"/#from="+from+"&to="+to, strconv.Itoa(opened))
	cmd.Env = append(os.Environ(), "PAGE_CHROMIUM="+chromium)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", id, err, errs.String())
	}
	row := report.Row{ID: id, Name: fmt.Sprintf("first rows of the page in Chromium, over %d records", records), Unit: "ms", Reach: reach, Records: records,
		Note: "from the request for the page until a record can be seen"}
	var figures []float64
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var one struct {
			MS      float64
			Records int // those that the page counts
		}
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return fmt.Errorf("%s: %w: %s", id, err, lines.Bytes())
		}
		if one.Records != records {
			row.Wrong = fmt.Sprintf("the page counts %d records, not %d", one.Records, records)
		}
		figures = append(figures, one.MS)
	}
	if len(figures) == 0 {
		return fmt.Errorf("%s: the browser measured nothing: %s", id, errs.String())
	}
	row.Measured = report.Measured{Runs: len(figures), Figure: report.SpreadOf(figures)}
	b.add(row)
	return nil
}

// stampOf is a time in ns as the fragment of the page has it.
func stampOf(ns string) (string, error) {
	n, err := strconv.ParseInt(ns, 10, 64)
	return time.Unix(0, n).UTC().Format(time.RFC3339), err
}
