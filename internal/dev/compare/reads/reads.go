// Package reads measures the same questions on blobtail and on VictoriaLogs, in turn: each as a
// whole process, and server to server with 1, 8 and 32 clients at once.
//
// A question has variants, which a seed draws from the corpus: other times, services, words, tokens
// or expressions. A server that keeps what it has read would answer the same question again from
// there. So requests ask for variants in turn, and both sides are asked for the same ones in the same
// order. Some questions are also asked again and again, in rows of their own.
//
// No answer stays unchecked. The expected answers come from the corpus itself, and the generator's
// own are held against them. Each answer is compared record by record, or number by number: times,
// messages and all other members, after the clock has stopped. The lines of answers with very many
// records are hashed as they arrive, at more than 1 GB/s, which costs both sides the same for a byte.
// At the end the question is asked once more, and an answer must have the lines of that one, which
// is compared record by record. A wrong answer ends the run.
package reads

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"blobtail/internal/dev/bench/rig"
	"blobtail/internal/dev/compare/result"
)

// Server is a running server.
type Server interface {
	URL() string // without a slash at the end
	PID() int
}

// Ours is a store of blobtail that has the corpus in blobs.
type Ours struct {
	Logquery string // the program
	Store    string // as its --store
	Env      []string
	// Server answers for the store. Without one, Run starts logquery serve.
	Server Server
}

// Config is for [Run].
type Config struct {
	Ours Ours
	// Theirs is a VictoriaLogs that has the corpus, with streams by service. If it is
	// nil, the rows have figures of ours alone.
	Theirs Server
	Corpus *rig.Corpus
	Rounds int // of each row, 0: 5
	Quick  bool
	// Budget is the time for all rounds, 0: no end. A round does not begin if it would take longer, as
	// the one before did. There are three all the same, or one of a quick run.
	Budget time.Duration
	Only   []string // the ids of questions, such as hour; none: all of them
	// Run runs the rows of whole processes, or nil for none.
	Run *rig.Runner
	// Say tells of the progress, or is nil.
	Say func(format string, args ...any)
}

// system is a side of the comparison.
type system struct {
	name, base, shown string // shown stands for base in commands for readers
	pid               int
	theirs            bool
	refused           atomic.Int64 // requests that were asked again
}

// run is a run of all rows.
type run struct {
	Config
	client  *client
	systems []*system // ours, and theirs if it is there
}

// row is a row that is measured round by round.
type row struct {
	*result.Row
	clients int           // 0: whole processes
	cpu     *result.Row   // of the server meanwhile; nil: it is no row
	slower  time.Duration // that a request took the slower side
	refused map[*system]int64
}

// Questions are the ids of all questions.
func Questions() (ids []string) {
	for _, q := range ask(&index{}) {
		ids = append(ids, q.id)
	}
	return ids
}

// Run measures all rows.
func Run(ctx context.Context, c Config) ([]result.Row, error) {
	if c.Say == nil {
		c.Say = func(string, ...any) {}
	}
	if c.Rounds == 0 {
		c.Rounds = 5
		if c.Quick {
			c.Rounds = 2
		}
	}
	c.Say("read the corpus for the expected answers")
	all, err := questionsOf(c.Corpus)
	if err != nil {
		return nil, fmt.Errorf("the expected answers: %w", err)
	}
	if c.Ours.Server == nil {
		s, err := rig.Serve(ctx, c.Ours.Logquery, c.Ours.Env, c.Ours.Store)
		if err != nil {
			return nil, err
		}
		defer s.Kill()
		c.Ours.Server = served{s}
	}
	r := &run{Config: c, client: newClient()}
	defer r.client.close()
	r.systems = []*system{{name: "blobtail", base: c.Ours.Server.URL(), shown: "http://127.0.0.1:8516", pid: c.Ours.Server.PID()}}
	if c.Theirs != nil {
		r.systems = append(r.systems, &system{name: "VictoriaLogs", base: c.Theirs.URL(), shown: "http://127.0.0.1:9428", pid: c.Theirs.PID(), theirs: true})
	}
	all = slices.DeleteFunc(all, func(q *question) bool { return len(c.Only) > 0 && !slices.Contains(c.Only, q.id) })
	for _, q := range all {
		r.begin(q)
	}
	if err := r.rounds(ctx, all); err != nil {
		return nil, err
	}
	var rows []result.Row
	for _, q := range all {
		if err := r.client.verify(ctx, q); err != nil {
			return nil, fmt.Errorf("%s: %w", q.title, err)
		}
		for _, row := range q.rows {
			row.tell(r.systems)
			rows = append(rows, *row.Row)
			if row.cpu != nil {
				rows = append(rows, *row.cpu)
			}
		}
	}
	return rows, nil
}

// served is a server of rig.
type served struct{ *rig.Server }

// URL implements [Server].
func (s served) URL() string { return s.Base }

// begin makes the rows of a question, which have no figures yet.
func (r *run) begin(q *question) {
	if r.Run != nil && !q.again {
		process := &row{Row: r.row(q, "process", ", the whole process", "ms", 0)}
		process.OursCommand = shell(append([]string{"logquery"}, q.variants[0].args...))
		q.rows = append(q.rows, process)
	}
	for _, clients := range q.clients() {
		title := ", server to server"
		if clients > 1 {
			title = fmt.Sprintf(", server to server, %d at once", clients)
		}
		served := &row{Row: r.row(q, fmt.Sprintf("server.%d", clients), title, "ms", clients), clients: clients, refused: map[*system]int64{}}
		if clients == 8 {
			served.cpu = r.row(q, "cpu", ", CPU of the server a request", "CPU ms", 0)
		}
		q.rows = append(q.rows, served)
	}
}

// tell notes which side refused requests.
func (row *row) tell(systems []*system) {
	for _, s := range systems {
		if n := row.refused[s]; n > 0 {
			row.Note = strings.TrimPrefix(fmt.Sprintf("%s; %s refused %d requests as busy, with %d clients: they waited as told and asked again, within their time", row.Note, s.name, n, row.clients), "; ")
		}
	}
}

// rounds measures all rows of all questions, and then all of them again. So the rounds of a row are
// minutes apart: a machine that is slow for a while makes one of them slow, and not their median.
func (r *run) rounds(ctx context.Context, all []*question) error {
	least := 3
	if r.Quick {
		least = 1
	}
	begun := time.Now()
	last := begun
	for round := range r.Rounds {
		now := time.Now()
		if round >= least && r.Budget > 0 && now.Add(now.Sub(last)).Sub(begun) > r.Budget {
			break
		}
		last = now
		for _, q := range all {
			r.Say("read: %s (%d)", q.title, round+1)
			if err := r.question(ctx, q, round); err != nil {
				return fmt.Errorf("%s: %w", q.title, err)
			}
		}
	}
	return nil
}

// question measures a round of all rows of a question. Before the first round, requests and processes
// that do not count warm up both sides and show how long a request takes.
func (r *run) question(ctx context.Context, q *question, round int) error {
	if round == 0 {
		if err := r.warm(ctx, q); err != nil {
			return err
		}
	}
	for _, row := range q.rows {
		var err error
		if row.clients == 0 {
			err = r.inTurn(round, func(s *system) error { return r.process(ctx, q, row, round, s) })
		} else {
			err = r.servers(ctx, q, row, round)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// warm asks each side once in each way.
func (r *run) warm(ctx context.Context, q *question) error {
	var slower time.Duration
	for _, s := range r.systems {
		if q.rows[0].clients == 0 {
			if err := r.process(ctx, q, q.rows[0], -1, s); err != nil {
				return err
			}
		}
		took, err := r.client.whole(ctx, s, q, q.variants[0])
		if err != nil {
			return err
		}
		slower = max(slower, took)
	}
	for _, row := range q.rows {
		row.slower = slower
	}
	q.next = len(r.Corpus.Services) // behind the first ones of all services
	return nil
}

// clients are the numbers of clients that ask a question at once.
func (q *question) clients() []int {
	if q.again {
		return []int{1, 8}
	}
	return []int{1, 8, 32}
}

// wrong says which command got a wrong answer, if err is not nil.
func wrong(s *system, command string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the answer of %s to %s: %w", s.name, command, err)
}

// row begins a row.
func (r *run) row(q *question, id, title, unit string, clients int) *result.Row {
	row := result.Row{ID: "read." + q.id + "." + id, Group: "read", Title: q.title + title, Unit: unit, Corpus: "reference", Clients: clients, Note: q.note}
	for _, s := range r.systems {
		if s.theirs {
			row.TheirsCommand = q.command(s, q.variants[0])
		} else {
			row.OursCommand = q.command(s, q.variants[0])
		}
	}
	return &row
}

// add adds a figure of a side.
func add(row *result.Row, s *system, figure float64) {
	if s.theirs {
		row.Theirs = append(row.Theirs, figure)
	} else {
		row.Ours = append(row.Ours, figure)
	}
}

// inTurn measures the sides of a round: ours and theirs, and in each second round theirs and ours.
func (r *run) inTurn(round int, once func(s *system) error) error {
	order := slices.Clone(r.systems)
	if round%2 == 1 {
		slices.Reverse(order)
	}
	for _, s := range order {
		if err := once(s); err != nil {
			return err
		}
	}
	return nil
}

// process measures a whole command. That of round -1 does not count. The variants are of one service,
// so that rounds differ little.
func (r *run) process(ctx context.Context, q *question, row *row, round int, s *system) error {
	v := q.variants[(round+1)*len(r.Corpus.Services)%len(q.variants)]
	args, env := q.curl(s, v), r.Ours.Env
	if !s.theirs {
		args = append([]string{r.Ours.Logquery, "--store", r.Ours.Store, "--quiet"}, v.args...)
	} else if _, err := exec.LookPath("curl"); err != nil {
		return fmt.Errorf("their rows of processes need curl: %w", err)
	}
	out, u, errs, err := r.Run.Run(ctx, env, args...)
	switch {
	case err != nil:
		return err
	case u.Code != 0:
		err = fmt.Errorf("exit code %d: %.500s", u.Code, errs)
	case s.theirs:
		err = v.want.check(&q.theirs.form, out)
	default:
		form := q.ours.form
		if q.ours.printed != nil {
			form.counts = q.ours.printed
		}
		err = v.want.check(&form, out)
	}
	if err != nil {
		return wrong(s, shell(args), err)
	}
	if round >= 0 {
		add(row.Row, s, u.WallMS)
	}
	return nil
}

// requests is the number of requests of a burst: those that the slower side answers in a short time,
// if a request takes it as long as before. It is a multiple of the number of services, so that each
// burst has all services alike.
func (r *run) requests(clients int, slower time.Duration) int {
	span := 500 * time.Millisecond
	if r.Quick {
		span = 150 * time.Millisecond
	}
	services := len(r.Corpus.Services)
	n := max(clients, int(min(mostRequests, span/max(1, slower))))
	return max(1, (n+services-1)/services) * services
}

// servers measures requests of clients that ask at once. A figure is the median of a round.
func (r *run) servers(ctx context.Context, q *question, row *row, round int) error {
	variants := q.take(r.requests(row.clients, row.slower))
	row.slower = 0
	return r.inTurn(round, func(s *system) error {
		refused := s.refused.Load()
		before, _, err := rig.UsageOf(s.pid)
		if err != nil {
			return err
		}
		begun := time.Now()
		took, err := r.client.burst(ctx, s, q, variants, row.clients)
		if err != nil {
			return err
		}
		row.slower = max(row.slower, time.Since(begun)/time.Duration(len(took)))
		after, _, err := rig.UsageOf(s.pid)
		if err != nil {
			return err
		}
		add(row.Row, s, median(took))
		if row.cpu != nil {
			add(row.cpu, s, (after-before)*1000/float64(len(took)))
		}
		row.refused[s] += s.refused.Load() - refused
		return nil
	})
}

// median is that of times, in ms.
func median(took []time.Duration) float64 {
	slices.Sort(took)
	n := len(took)
	return float64((took[(n-1)/2] + took[n/2]).Microseconds()) / 2000
}
