package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"blobtail/internal/dev/bench/answers"
	"blobtail/internal/dev/bench/rig"
)

// served measures logquery serve over the store of the reference corpus. It is one process for
// all rows, as its users run it; each row has a request that does not count before.
func (d *driver) served(ctx context.Context) {
	if !d.rows.Choose("serve-metric", "serve-lines", "serve-lines-all", "serve-first", "serve-panels", "serve-everything", "serve-memory") {
		return
	}
	s := must(rig.Serve(ctx, d.sides[0].command("logquery"), d.env, "dir:"+d.sides[0].store))
	defer s.Kill()
	v := &server{s, strconv.FormatInt(d.corpus.From.UnixNano(), 10), strconv.FormatInt(d.corpus.To.UnixNano(), 10)}
	metric := v.loki(`sum by (level) (count_over_time({service_name=~".+"}[1m]))`, "step", "60")
	d.timed("serve-metric", "counts by level and minute, LogQL over HTTP", 40, d.size.records, func() time.Duration {
		body, took := v.get(ctx, metric)
		check(answers.MinutesOf(d.corpus).Check(answers.Matrix(), bytes.NewReader(body)))
		return took
	})
	const records = 5000
	lines := func(id, selector string, reach float64) {
		query := v.loki(selector, "limit", strconv.Itoa(records), "direction", "backward")
		d.timed(id, "the newest 5,000 lines of "+selector+", LogQL over HTTP", reach, records, func() time.Duration {
			body, took := v.get(ctx, query)
			if n := bytes.Count(body, []byte(`["1`)); n != records { // the time of a line is its first text
				check(fmt.Errorf("%s: %d lines, not %d", id, n, records))
			}
			return took
		})
	}
	lines("serve-lines", `{service_name="`+d.corpus.LastService+`"}`, 30)
	lines("serve-lines-all", `{service_name=~".+"}`, 0)
	d.timed("serve-first", "first bytes of an export of everything", 50, 0, func() time.Duration { return v.first(ctx) })
	d.panels(ctx, v)
	d.everything(ctx, v)
}

// server is a running logquery serve over a corpus.
type server struct {
	*rig.Server
	from, to string // the range of the corpus, in ns
}

// export asks for all records in order.
const export = "/api/v1/records?service=*&from=2020-01-01&order=asc&limit=0"

// loki is the URL of a query of Loki's API over the range of the corpus.
func (v *server) loki(query string, more ...string) string {
	q := url.Values{"query": {query}, "start": {v.from}, "end": {v.to}}
	for i := 0; i < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	return "/loki/api/v1/query_range?" + q.Encode()
}

// get asks for a path and reads the answer.
func (v *server) get(ctx context.Context, path string) ([]byte, time.Duration) {
	begun := time.Now()
	body := must(rig.Fetch(ctx, http.MethodGet, v.URL()+path))
	return body, time.Since(begun)
}

// read asks for an export and writes it as it comes.
func (v *server) read(ctx context.Context, w io.Writer) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.URL()+export, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept-Encoding", "identity")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err = io.Copy(w, resp.Body); err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("an export: %s", resp.Status)
	}
	return err
}

// writer is a function as an io.Writer.
type writer func(p []byte)

// Write implements io.Writer.
func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

// first measures when the first bytes of an export come. The client goes away then.
func (v *server) first(ctx context.Context) (first time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begun := time.Now()
	err := v.read(ctx, writer(func(p []byte) {
		if first == 0 && p[0] == '{' {
			first = time.Since(begun)
		}
		cancel()
	}))
	if first == 0 {
		check(fmt.Errorf("an export began with no record: %w", err))
	}
	return first
}

// timed measures a request of a row 20 times, and adds the row.
func (d *driver) timed(id, title string, reach float64, records int, once func() time.Duration) {
	if !d.rows.Choose(id) {
		return
	}
	row := tableRow(id, title, "ms", reach, records)
	once()
	for range 20 {
		d.sides[0].add(&row, float64(once().Microseconds())/1000)
	}
	d.add(row)
}

// everything has eight clients ask for all records at once.
func (d *driver) everything(ctx context.Context, v *server) {
	row := tableRow("serve-everything", "all records to each of 8 clients at once", "s", 0, 8*d.size.records)
	memory := tableRow("serve-memory", "peak memory of the server with these 8 clients", "MB", 500, 0)
	if !d.rows.Choose(row.ID, memory.ID) {
		return
	}
	errs := make([]error, 8)
	var all sync.WaitGroup
	begun := time.Now()
	for i := range errs {
		all.Go(func() {
			lines := 0
			if errs[i] = v.read(ctx, writer(func(p []byte) { lines += bytes.Count(p, []byte("\n")) })); errs[i] == nil && lines != d.size.records {
				errs[i] = fmt.Errorf("%d records, not %d", lines, d.size.records)
			}
		})
	}
	all.Wait()
	check(errors.Join(errs...))
	d.sides[0].add(&row, time.Since(begun).Seconds())
	_, peak, err := v.Usage()
	check(err)
	d.sides[0].add(&memory, peak)
	d.add(row, memory)
}

// panels refreshes a dashboard of twelve panels of two services. A test of package reading counts its
// LISTs: a directory has none to count.
func (d *driver) panels(ctx context.Context, v *server) {
	row := tableRow("serve-panels", "a refresh of a dashboard of 12 panels, CPU", "s", 0.3, 0)
	if !d.rows.Choose(row.ID) {
		return
	}
	for run := range 7 {
		before, _, err1 := v.Usage()
		check(v.refresh(ctx))
		time.Sleep(200 * time.Millisecond) // the rest of its work
		after, _, err2 := v.Usage()
		if check(errors.Join(err1, err2)); run > 0 {
			d.sides[0].add(&row, after-before)
		}
	}
	d.add(row)
}

// refresh asks for all panels at once, over six connections, as a browser does.
func (v *server) refresh(ctx context.Context) error {
	panels := []string{
		`sum by (level) (count_over_time({service_name="checkout"}[1m]))`,
		`sum by (level, detected_level) (count_over_time({service_name="checkout"} |= "" | drop __error__[1m]))`,
		`sum(rate({service_name="checkout"}[5m]))`,
		`sum(rate({service_name="checkout"} | level="error" [5m])) / sum(rate({service_name="checkout"}[5m]))`,
		`sum by (service_name) (count_over_time({service_name="auth"}[1m]))`,
		`sum by (level) (count_over_time({service_name="auth"}[1m]))`,
		`sum(count_over_time({service_name=~"checkout|auth", level="error"}[1m]))`,
		`topk(3, sum by (service_name) (rate({service_name=~"checkout|auth"}[5m])))`,
		`{service_name="checkout"}`,
		`{service_name="checkout"} | detected_level="error"`,
		`{service_name="auth"}`,
		`{service_name="auth"} | level=~"warn|error"`,
	}
	work := make(chan int)
	errs := make([]error, len(panels))
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			for i := range work {
				_, errs[i] = rig.Fetch(ctx, http.MethodGet, v.URL()+v.loki(panels[i], "step", "60000ms", "limit", "1000"))
			}
		})
	}
	for i := range panels {
		work <- i
	}
	close(work)
	all.Wait()
	return errors.Join(errs...)
}

// page opens the page over all records of a store, and adds a row with the times until the first
// records can be seen. Without Chromium or the packages of npm it says so, and adds none.
func (d *driver) page(ctx context.Context, store, id string, reach float64, parts ...*rig.Corpus) {
	if !d.rows.Choose(id) {
		return
	}
	chromium, err := exec.LookPath("chromium")
	if err == nil {
		_, err = os.Stat(filepath.Join("node_modules", "playwright-core"))
	}
	if err != nil {
		d.say("%s is left out: %v", id, err)
		return
	}
	v := must(rig.Serve(ctx, d.sides[0].command("logquery"), d.env, "dir:"+store))
	defer v.Kill()
	at := v.URL() + "/#from=" + parts[0].From.Format(time.RFC3339) + "&to=" + parts[len(parts)-1].To.Format(time.RFC3339)
	cmd := exec.CommandContext(ctx, "node", filepath.Join("integration", "page", "firstrows.mjs"), at, "5")
	cmd.Env, cmd.Stderr = append(os.Environ(), "PAGE_CHROMIUM="+chromium), os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	records := answers.MinutesOf(parts...).Len()
	row := tableRow(id, fmt.Sprintf("first rows of the page in Chromium, over %d records", records), "ms", reach, records)
	row.Note = "from the request for the page until a record can be seen"
	for line := range bytes.Lines(must(cmd.Output())) {
		var one struct {
			MS      float64
			Records int // those that the page counts
		}
		if err := json.Unmarshal(line, &one); err != nil || one.Records != records {
			check(fmt.Errorf("%s: the page counts %d records, not %d: %s, %w", id, one.Records, records, line, err))
		}
		d.sides[0].add(&row, one.MS)
	}
	d.add(row)
}
