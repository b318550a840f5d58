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
	"slices"
	"strconv"
	"sync"
	"time"

	"blobtail/internal/dev/bench/report"
	"blobtail/internal/dev/bench/rig"
)

// served measures logquery serve over the store of the reference corpus. It is one process for
// all rows, as its users run it; each row has a request that does not count before.
func (b *bench) served(ctx context.Context) error {
	if !b.o.rows.Choose("serve-metric", "serve-lines", "serve-lines-all", "serve-first", "serve-everything", "serve-memory", "serve-panels") {
		return nil
	}
	v, err := b.startServer(ctx, b.sides[0].store)
	if err != nil {
		return err
	}
	defer v.Kill()
	for _, row := range []func(context.Context, *server) error{b.servedMetric, b.servedLines, b.servedFirst, b.servedPanels, b.servedEverything} {
		if err := row(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

// server is a running logquery serve over a corpus.
type server struct {
	*rig.Server
	from, to string // the range of the corpus, in ns
}

// startServer starts logquery serve for a store with the reference corpus.
func (b *bench) startServer(ctx context.Context, store string) (*server, error) {
	from, to, err := b.reference.Span()
	if err != nil {
		return nil, err
	}
	v, err := rig.Serve(ctx, b.sides[0].logquery, b.env, "dir:"+store)
	return &server{v, from, to}, err
}

// get asks for a path and reads the answer. first is when its first byte came.
func (v *server) get(ctx context.Context, path string, query url.Values) (body []byte, first, whole time.Duration, err error) {
	var buf bytes.Buffer
	first, whole, err = v.into(ctx, &buf, path, query)
	return buf.Bytes(), first, whole, err
}

// into is get with the answer written to w.
func (v *server) into(ctx context.Context, w io.Writer, path string, query url.Values) (first, whole time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.Base+path+"?"+query.Encode(), nil)
	if err != nil {
		return 0, 0, err
	}
	r.Header.Set("Accept-Encoding", "identity")
	begun := time.Now()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, 0, err
	}
	defer resp.Body.Close()
	one := make([]byte, 1)
	if _, err = io.ReadFull(resp.Body, one); err == nil {
		first = time.Since(begun)
		if _, err = w.Write(one); err == nil {
			_, err = io.Copy(w, resp.Body)
		}
	}
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: status %d", path, resp.StatusCode)
	}
	return first, time.Since(begun), err
}

// timed measures a request of a row, and adds the row.
func (b *bench) timed(id, name string, reach float64, records, runs int, once func() (time.Duration, error)) error {
	if !b.o.rows.Choose(id) {
		return nil
	}
	row := report.Row{ID: id, Name: name, Unit: "ms", Reach: reach, Records: records}
	var figures []float64
	for run := range runs + 1 {
		took, err := once()
		if wrong := (*wrongError)(nil); errors.As(err, &wrong) {
			row.Wrong = wrong.Error()
		} else if err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		if run > 0 {
			figures = append(figures, float64(took.Microseconds())/1000)
		}
	}
	row.Measured = report.Measured{Runs: runs, Figure: report.SpreadOf(figures)}
	b.add(row)
	return nil
}

// servedRuns is how often a row of a server is measured.
const servedRuns = 20

// servedMetric asks for the numbers by level and minute, which the indexes have.
func (b *bench) servedMetric(ctx context.Context, v *server) error {
	query := url.Values{"query": {`sum by (level) (count_over_time({service_name=~".+"}[1m]))`}, "start": {v.from}, "end": {v.to}, "step": {"60"}}
	return b.timed("serve-metric", "counts by level and minute, LogQL over HTTP", 40, b.o.records, servedRuns, func() (time.Duration, error) {
		body, _, took, err := v.get(ctx, "/loki/api/v1/query_range", query)
		if err == nil {
			err = checkMatrix(body, b.reference.PerMinute)
		}
		return took, err
	})
}

// matrix is an answer of Loki's API with numbers.
type matrix struct {
	Data struct {
		Result []struct {
			Metric map[string]string `json:"metric"`
			Values [][2]any          `json:"values"`
		} `json:"result"`
	} `json:"data"`
}

// checkMatrix holds counts by level and minute against the generator's. The point of a minute
// counts the minute before.
func checkMatrix(body []byte, want map[string][5]int) error {
	var m matrix
	if err := json.Unmarshal(body, &m); err != nil {
		return &wrongError{err}
	}
	got := map[string][5]int{}
	for _, series := range m.Data.Result {
		level := slices.Index([]string{"debug", "info", "warn", "error", "critical"}, series.Metric["level"])
		if level < 0 {
			return &wrongError{fmt.Errorf("a series of %v", series.Metric)}
		}
		for _, v := range series.Values {
			at, _ := v[0].(float64)
			text, _ := v[1].(string)
			n, err := strconv.Atoi(text)
			if err != nil {
				return &wrongError{err}
			}
			minute := time.Unix(int64(at), 0).UTC().Add(-time.Minute).Format(time.RFC3339)
			counts := got[minute]
			counts[level] = n
			got[minute] = counts
		}
	}
	for minute, levels := range want {
		if got[minute] != levels {
			return &wrongError{fmt.Errorf("%s has %v, not %v", minute, got[minute], levels)}
		}
	}
	return nil
}

// servedLines asks for the newest 5,000 lines of one service, and of all.
func (b *bench) servedLines(ctx context.Context, v *server) error {
	err := b.linesOf(ctx, v, "serve-lines", `{service_name="`+b.queries.service+`"}`, 30)
	if err == nil {
		err = b.linesOf(ctx, v, "serve-lines-all", `{service_name=~".+"}`, 0)
	}
	return err
}

func (b *bench) linesOf(ctx context.Context, v *server, id, text string, reach float64) error {
	const lines = 5000
	query := url.Values{"query": {text}, "start": {v.from}, "end": {v.to}, "limit": {strconv.Itoa(lines)}, "direction": {"backward"}}
	return b.timed(id, "the newest 5,000 lines of "+text+", LogQL over HTTP", reach, lines, servedRuns, func() (time.Duration, error) {
		body, _, took, err := v.get(ctx, "/loki/api/v1/query_range", query)
		if err != nil {
			return 0, err
		}
		var m matrix
		if err := json.Unmarshal(body, &m); err != nil {
			return took, &wrongError{err}
		}
		n := 0
		for _, stream := range m.Data.Result {
			n += len(stream.Values)
		}
		if n != lines {
			err = &wrongError{fmt.Errorf("%d lines, not %d", n, lines)}
		}
		return took, err
	})
}

// counter counts lines.
type counter struct{ lines int }

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	c.lines += bytes.Count(p, []byte("\n"))
	return len(p), nil
}

// servedFirst measures when the first bytes of an export come. The client goes away then.
func (b *bench) servedFirst(ctx context.Context, v *server) error {
	query := url.Values{"service": {"*"}, "from": {"2020-01-01"}, "order": {"asc"}, "limit": {"0"}}
	return b.timed("serve-first", "first bytes of an export of everything", 50, 0, servedRuns, func() (time.Duration, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var first time.Duration
		begun := time.Now()
		_, _, err := v.into(ctx, writerFunc(func(p []byte) (int, error) {
			if first == 0 {
				first = time.Since(begun)
				cancel()
			}
			return len(p), nil
		}), "/api/v1/records", query)
		if first > 0 {
			err = nil // the client went away
		}
		return first, err
	})
}

// writerFunc is a function as an io.Writer.
type writerFunc func(p []byte) (int, error)

// Write implements io.Writer.
func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// servedEverything has eight clients ask for all records at once.
func (b *bench) servedEverything(ctx context.Context, v *server) error {
	if !b.o.rows.Choose("serve-everything", "serve-memory") {
		return nil
	}
	query := url.Values{"service": {"*"}, "from": {"2020-01-01"}, "order": {"asc"}, "limit": {"0"}}
	const clients = 8
	var all sync.WaitGroup
	errs := make([]error, clients)
	begun := time.Now()
	for i := range clients {
		all.Go(func() {
			var n counter
			if _, _, errs[i] = v.into(ctx, &n, "/api/v1/records", query); errs[i] == nil && n.lines != b.o.records {
				errs[i] = fmt.Errorf("%d records, not %d", n.lines, b.o.records)
			}
		})
	}
	all.Wait()
	took := time.Since(begun)
	row := report.Row{ID: "serve-everything", Name: "all records to each of 8 clients at once", Unit: "s", Records: clients * b.o.records,
		Measured: report.Measured{Runs: 1, Figure: report.SpreadOf([]float64{took.Seconds()})}}
	if err := errors.Join(errs...); err != nil {
		row.Wrong = err.Error()
	}
	b.add(row)
	_, peak, err := v.Usage()
	if err != nil {
		return err
	}
	b.add(report.Row{ID: "serve-memory", Name: "peak memory of the server with these 8 clients", Unit: "MB", Reach: 500,
		Measured: report.Measured{Runs: 1, Figure: report.SpreadOf([]float64{peak})}})
	return nil
}

// panels are the queries of a dashboard.
func panels() []string {
	return []string{
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
}

// servedPanels refreshes a dashboard of twelve panels of two services. A test of package reading
// counts its LISTs: a directory has none to count.
func (b *bench) servedPanels(ctx context.Context, v *server) error {
	if !b.o.rows.Choose("serve-panels") {
		return nil
	}
	const refreshes = 6
	var cpus []float64
	for run := range refreshes + 1 {
		before, _, err := v.Usage()
		if err != nil {
			return err
		}
		if err := v.refresh(ctx); err != nil {
			return err
		}
		time.Sleep(200 * time.Millisecond) // the rest of its work
		after, _, err := v.Usage()
		if err != nil {
			return err
		}
		if run > 0 {
			cpus = append(cpus, after-before)
		}
	}
	b.add(report.Row{ID: "serve-panels", Name: "a refresh of a dashboard of 12 panels, CPU", Unit: "s", Reach: 0.3,
		Measured: report.Measured{Runs: refreshes, Figure: report.SpreadOf(cpus)}})
	return nil
}

// refresh asks for all panels at once, over six connections, as a browser does.
func (v *server) refresh(ctx context.Context) error {
	work := make(chan string)
	errs := make(chan error, 12)
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			for q := range work {
				_, _, _, err := v.get(ctx, "/loki/api/v1/query_range", url.Values{"query": {q}, "start": {v.from}, "end": {v.to}, "step": {"60000ms"}, "limit": {"1000"}})
				errs <- err
			}
		})
	}
	for _, q := range panels() {
		work <- q
	}
	close(work)
	all.Wait()
	close(errs)
	var failed []error
	for err := range errs {
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}
