package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"blobtail/internal/dev/bench/answers"
	"blobtail/internal/dev/bench/result"
	"blobtail/internal/dev/bench/rig"
)

// The same questions are measured on blobtail and on VictoriaLogs, in turn: each as a whole process, and
// server to server with 1, 8 and 32 clients at once.
//
// A question has variants, which a seed draws from the corpus: other times, services, words, tokens
// or expressions. A server that keeps records in memory would answer the same question again from
// there. So requests ask for variants in turn, and both sides are asked for the same ones in the same
// order. Some questions are also asked again and again, in rows of their own.
//
// No answer stays unchecked. Each is compared record by record, or number by number: times, messages
// and all other members, after the clock has stopped.

// reader measures questions.
type reader struct {
	*driver
	servers []*side // ours first
	http    http.Client
	bodies  []*bytes.Buffer // of the answers of a burst; their memory is used again
}

// measured is a question with its rows.
type measured struct {
	*answers.Question
	rows []*readRow
	next int // of variants, for requests to servers
}

// readRow is a row that is measured round by round.
type readRow struct {
	result.Row
	clients int           // 0: whole processes
	cpu     *result.Row   // of the server meanwhile; nil: it is no row
	slower  time.Duration // that a request took the slower side
}

// memoryOfReads is a row that needs all questions.
const memoryOfReads = "memory.reads"

// chosen reports whether -rows asks for a question.
func (d *driver) chosen(q *answers.Question) bool {
	ids := []string{memoryOfReads}
	for _, kind := range []string{"process", "cpu", "server.1", "server.8", "server.32"} {
		ids = append(ids, "read."+q.ID+"."+kind)
	}
	return d.rows.Choose(ids...)
}

// reading reports whether -rows may ask for any question.
func (d *driver) reading() bool {
	return len(d.rows) == 0 || slices.ContainsFunc(d.rows, func(glob string) bool {
		return !strings.HasPrefix(glob, "ingest") && !strings.HasPrefix(glob, "storage")
	})
}

// reads measures the reads of the reference corpus, as it was flushed.
func (d *driver) reads(ctx context.Context, v *rig.Victoria) {
	s := must(rig.Serve(ctx, d.sides[0].command("logquery"), d.env, "dir:"+d.sides[0].store))
	defer s.Kill()
	d.sides[0].server, d.sides[1].server = s, v.Server
	(&reader{driver: d, servers: d.sides}).all(ctx)
}

// all measures all rows of all questions, and then all of them again. So the rounds of a row are
// minutes apart: a machine that is slow for a while makes one of them slow, and not their median.
func (r *reader) all(ctx context.Context) {
	r.http.Transport = &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true, ReadBufferSize: 64 << 10}
	defer r.http.CloseIdleConnections()
	questions := must(r.index.Questions(r.form(&side{}, "ndjson")))
	var all []*measured
	for _, q := range questions {
		if r.chosen(q) {
			all = append(all, &measured{Question: q, rows: r.begin(q)})
		}
	}
	begun, least := time.Now(), map[bool]int{true: 1, false: leastRounds}[r.quick]
	last, budget := begun, r.left()
	for round := range r.size.reads {
		now := time.Now()
		if round >= least && now.Add(now.Sub(last)).Sub(begun) > budget {
			break // it would take longer, as the one before did
		}
		last = now
		for _, q := range all {
			r.say("read: %s (%d)", q.Title, round+1)
			r.question(ctx, q, round)
		}
	}
	for _, q := range all {
		for _, row := range q.rows {
			if r.add(row.Row); row.cpu != nil {
				r.add(*row.cpu)
			}
		}
	}
	memory := result.Row{ID: memoryOfReads, Group: "memory", Title: "peak memory of a server that answered all reads", Unit: "MB", Corpus: "reference",
		Note: mapped, OursCommand: "grep VmHWM /proc/PID/status", TheirsCommand: "grep VmHWM /proc/PID/status"}
	for _, s := range r.servers {
		_, peak := s.usage()
		s.add(&memory, peak)
	}
	if len(all) == len(questions) {
		r.add(memory)
	}
}

// usage returns the CPU seconds and the peak memory in MB of a side's server.
func (s *side) usage() (cpu, peak float64) {
	cpu, peak, err := s.server.Usage()
	check(err)
	return cpu, peak
}

// begin makes the rows of a question, which have no figures yet.
func (r *reader) begin(q *answers.Question) (rows []*readRow) {
	row := func(id, title, unit string, clients int) result.Row {
		return result.Row{ID: "read." + q.ID + "." + id, Group: "read", Title: q.Title + title, Unit: unit, Corpus: "reference", Clients: clients, Note: q.Note,
			OursCommand: shell([]string{"curl", "-sS", urlOf("http://127.0.0.1:8516", false, q, q.Variants[0])}), TheirsCommand: shell(curl("http://127.0.0.1:9428", q, q.Variants[0]))}
	}
	if !q.Again {
		process := row("process", ", the whole process", "ms", 0)
		process.OursCommand = shell(append([]string{"logquery"}, q.Variants[0].Args...))
		rows = append(rows, &readRow{Row: process})
	}
	for _, clients := range []int{1, 8, 32} {
		if q.Again && clients > 8 {
			break
		}
		title := ", server to server"
		if clients > 1 {
			title = fmt.Sprintf(", server to server, %d at once", clients)
		}
		served := &readRow{Row: row(fmt.Sprintf("server.%d", clients), title, "ms", clients), clients: clients}
		if clients == 8 {
			served.cpu = new(row("cpu", ", CPU of the server a request", "CPU ms", 0))
		}
		rows = append(rows, served)
	}
	return rows
}

// urlOf is the URL of a variant of a question to a server.
func urlOf(base string, theirs bool, q *answers.Question, v *answers.Variant) string {
	if !theirs {
		return base + "/api/v1/" + q.Ours.Route + "?" + v.Ours.Encode()
	}
	query := url.Values{}
	for _, part := range v.Theirs {
		name, value, _ := strings.Cut(part, "=")
		query.Add(name, value)
	}
	return base + "/select/logsql/" + q.Theirs.Route + "?" + query.Encode()
}

// curl is the command of VictoriaLogs' documentation.
func curl(base string, q *answers.Question, v *answers.Variant) []string {
	args := []string{"curl", "-sS", "--fail-with-body", base + "/select/logsql/" + q.Theirs.Route}
	for _, part := range v.Theirs {
		args = append(args, "--data-urlencode", part)
	}
	return args
}

// format is that of the answers of a server.
func (s *side) format(q *answers.Question) answers.Format {
	if s.theirs {
		return q.Theirs.Format
	}
	return q.Ours.Format
}

// question measures a round of all rows of a question. Before the first round, requests and processes
// that do not count warm up both sides and show how long a request takes.
func (r *reader) question(ctx context.Context, q *measured, round int) {
	if round == 0 {
		var slower time.Duration
		for _, s := range r.servers {
			if q.rows[0].clients == 0 {
				r.process(ctx, q, -1, s)
			}
			slower = max(slower, r.burst(ctx, s, q.Question, q.Variants[:1], 1)[0])
		}
		for _, row := range q.rows {
			row.slower = slower
		}
		q.next = len(r.corpus.Services) // behind the first ones of all services
	}
	for _, row := range q.rows {
		if row.clients > 0 {
			r.bursts(ctx, q, row, round)
		} else {
			inTurn(round, r.servers, func(s *side) { s.add(&row.Row, r.process(ctx, q, round, s)) })
		}
	}
}

// process runs a whole command, and returns its wall time in ms. The variants are of one service, so
// that rounds differ little.
func (r *reader) process(ctx context.Context, q *measured, round int, s *side) float64 {
	v := q.Variants[(round+1)*len(r.corpus.Services)%len(q.Variants)]
	args, format := curl(s.server.URL(), q.Question, v), q.Theirs.Format
	if !s.theirs {
		args, format = slices.Concat([]string{s.command("logquery"), "--store", "dir:" + s.store, "--quiet"}, v.Args), q.Printed
	}
	out, u, errs, err := r.runner.Run(ctx, r.env, args...)
	if err == nil && u.Code != 0 {
		err = fmt.Errorf("exit code %d: %.500s", u.Code, errs)
	}
	if err == nil {
		err = v.Want.Check(format, bytes.NewReader(out))
	}
	check(s.wrong(shell(args), err))
	return u.WallMS
}

// wrong says which request got a wrong answer, if err is not nil.
func (s *side) wrong(request string, err error) error {
	if err != nil {
		err = fmt.Errorf("the answer of %s to %s: %w", s.name, request, err)
	}
	return err
}

// requests is the number of requests of a burst: those that the slower side answers in a short time,
// if a request takes it as long as before. It is a multiple of the number of services, so that each
// burst has all services alike.
func (r *reader) requests(clients int, slower time.Duration) int {
	const most = 128
	span := map[bool]time.Duration{true: 150, false: 500}[r.quick] * time.Millisecond
	services := len(r.corpus.Services)
	n := max(clients, int(min(most, span/max(1, slower))))
	return (n + services - 1) / services * services
}

// bursts measures requests of clients that ask at once. A figure is the median of a round. When all
// variants were asked, the first ones come again.
func (r *reader) bursts(ctx context.Context, q *measured, row *readRow, round int) {
	var variants []*answers.Variant
	for range r.requests(row.clients, row.slower) {
		variants = append(variants, q.Variants[q.next%len(q.Variants)])
		q.next++
	}
	row.slower = 0
	inTurn(round, r.servers, func(s *side) {
		refused, after := s.refused.Load(), 0.0
		before, _ := s.usage()
		begun, n := time.Now(), len(variants)
		took := r.burst(ctx, s, q.Question, variants, row.clients, func() {
			row.slower = max(row.slower, time.Since(begun)/time.Duration(n))
			after, _ = s.usage()
		})
		slices.Sort(took)
		s.add(&row.Row, float64((took[(n-1)/2]+took[n/2]).Microseconds())/2000)
		if row.cpu != nil {
			s.add(row.cpu, (after-before)*1000/float64(n))
		}
		note := fmt.Sprintf("%s refused requests as busy, with %d clients: they waited as told and asked again, within their time", s.name, row.clients)
		if s.refused.Load() > refused && !strings.Contains(row.Note, note) {
			row.Note = strings.TrimPrefix(row.Note+"; "+note, "; ")
		}
	})
}

// burst has clients ask for variants at once, each for the next one that was not asked for yet.
// When all answers are there it calls ended, and then it checks them. It returns the times of all
// requests.
func (r *reader) burst(ctx context.Context, s *side, q *answers.Question, variants []*answers.Variant, clients int, ended ...func()) []time.Duration {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	each := func(workers int, f func(i int) error) {
		var all sync.WaitGroup
		var next atomic.Int64
		for range workers {
			all.Go(func() {
				for i := int(next.Add(1)) - 1; i < len(variants) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
					if err := f(i); err != nil {
						cancel(s.wrong(urlOf(s.server.URL(), s.theirs, q, variants[i]), err))
					}
				}
			})
		}
		all.Wait()
		check(context.Cause(ctx))
	}
	for i, v := range variants { // the memory of an answer is there before its request
		if i == len(r.bodies) {
			r.bodies = append(r.bodies, &bytes.Buffer{})
		}
		if most := 512 * v.Want.Len(); q.Ours.Counts == nil && r.bodies[i].Cap() < most {
			r.bodies[i] = bytes.NewBuffer(bytes.Repeat([]byte{1}, most))
		}
	}
	took := make([]time.Duration, len(variants))
	each(clients, func(i int) (err error) {
		took[i], err = r.ask(ctx, s, urlOf(s.server.URL(), s.theirs, q, variants[i]), r.bodies[i])
		return err
	})
	for _, f := range ended {
		f()
	}
	each(2, func(i int) error { return variants[i].Want.Check(s.format(q), bytes.NewReader(r.bodies[i].Bytes())) })
	return took
}

// ask sends a request, and reads the body of its answer. A server that is busy with other clients may
// refuse it: then ask counts the refusal, waits as long as it is told to and asks again, as clients do.
// The time goes on.
func (r *reader) ask(ctx context.Context, s *side, url string, body *bytes.Buffer) (time.Duration, error) {
	begun := time.Now()
	for {
		busy, err := r.once(ctx, url, body)
		if err == nil || busy == 0 || time.Since(begun) > 2*time.Minute {
			return time.Since(begun), err
		}
		s.refused.Add(1)
		select {
		case <-time.After(busy):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// once is ask without further requests. busy is how long a server that is busy wants a client to wait.
func (r *reader) once(ctx context.Context, url string, body *bytes.Buffer) (busy time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	res, err := r.http.Do(request)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	body.Reset()
	if _, err := io.Copy(body, res.Body); err != nil {
		return 0, err
	}
	if res.StatusCode != http.StatusOK {
		if res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable {
			seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
			busy = time.Duration(max(1, seconds)) * time.Second
		}
		return busy, fmt.Errorf("%s: %.500s", res.Status, body.Bytes())
	}
	return 0, nil
}
