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
	// Budget is the time for all rows, 0: no end. A row that takes more than its part of the rest has
	// three rounds, or one of a quick run.
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
	rows    []result.Row
	end     time.Time // of the budget, or zero
	left    int       // rows that are not measured yet
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
	if c.Budget > 0 {
		r.end = time.Now().Add(c.Budget)
	}
	for _, q := range all {
		r.left += len(q.clients())
		if r.processed(q) {
			r.left++
		}
	}
	for _, q := range all {
		c.Say("read: %s", q.title)
		if err := r.question(ctx, q); err != nil {
			return nil, fmt.Errorf("%s: %w", q.title, err)
		}
	}
	return r.rows, nil
}

// served is a server of rig.
type served struct{ *rig.Server }

// URL implements [Server].
func (s served) URL() string { return s.Base }

// question measures all rows of a question. The first variant shows how long a request takes, and
// does not count.
func (r *run) question(ctx context.Context, q *question) error {
	if r.processed(q) {
		if err := r.processes(ctx, q); err != nil {
			return err
		}
	}
	var slower time.Duration
	for _, s := range r.systems {
		took, err := r.client.whole(ctx, s, q, q.variants[0])
		if err != nil {
			return err
		}
		slower = max(slower, took)
	}
	q.next = len(r.Corpus.Services) // behind the first ones of all services
	for _, clients := range q.clients() {
		var err error
		if slower, err = r.servers(ctx, q, clients, slower); err != nil {
			return err
		}
	}
	return r.client.verify(ctx, q)
}

// processed reports whether a question is asked by whole processes.
func (r *run) processed(q *question) bool { return r.Run != nil && !q.again }

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

// inTurn measures the sides as ours, theirs, theirs, ours. A row has fewer rounds if all of them
// take more than its part of the budget.
func (r *run) inTurn(once func(round int, s *system) error) error {
	least := 3
	if r.Quick {
		least = 1
	}
	end := r.end
	if !end.IsZero() {
		end = time.Now().Add(time.Until(r.end) / time.Duration(max(1, r.left)))
	}
	r.left--
	for round := range r.Rounds {
		if round >= least && !end.IsZero() && time.Now().After(end) {
			return nil
		}
		order := slices.Clone(r.systems)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, s := range order {
			if err := once(round, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// processes measures whole commands. Each side has a run that does not count. The variants are of
// one service, so that rounds differ little.
func (r *run) processes(ctx context.Context, q *question) error {
	row := r.row(q, "process", ", the whole process", "ms", 0)
	row.OursCommand = shell(append([]string{"logquery"}, q.variants[0].args...))
	once := func(round int, s *system) error {
		v := q.variants[(round+1)*len(r.Corpus.Services)%len(q.variants)]
		args, env := q.curl(s, v), r.Ours.Env
		if !s.theirs {
			args = append([]string{r.Ours.Logquery, "--store", r.Ours.Store, "--quiet"}, v.args...)
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
			add(row, s, u.WallMS)
		}
		return nil
	}
	if _, err := exec.LookPath("curl"); err != nil {
		return fmt.Errorf("their rows of processes need curl: %w", err)
	}
	for _, s := range r.systems {
		if err := once(-1, s); err != nil {
			return err
		}
	}
	if err := r.inTurn(once); err != nil {
		return err
	}
	r.rows = append(r.rows, *row)
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

// servers measures requests of clients that ask at once. A figure is the median of a round. It
// returns the time that a request took the slower side.
func (r *run) servers(ctx context.Context, q *question, clients int, slower time.Duration) (time.Duration, error) {
	title := fmt.Sprintf(", server to server, %d at once", clients)
	if clients == 1 {
		title = ", server to server"
	}
	row := r.row(q, fmt.Sprintf("server.%d", clients), title, "ms", clients)
	cpu := r.row(q, "cpu", ", CPU of the server a request", "CPU ms", 0)
	var variants []*variant
	number := -1 // of the round
	var spent time.Duration
	var refused [2]int64
	for i, s := range r.systems {
		refused[i] = -s.refused.Load()
	}
	err := r.inTurn(func(round int, s *system) error {
		if round != number {
			if spent > 0 {
				slower = spent
			}
			number, spent, variants = round, 0, q.take(r.requests(clients, slower))
		}
		before, _, err := rig.UsageOf(s.pid)
		if err != nil {
			return err
		}
		begun := time.Now()
		took, err := r.client.burst(ctx, s, q, variants, clients)
		if err != nil {
			return err
		}
		spent = max(spent, time.Since(begun)/time.Duration(len(took)))
		after, _, err := rig.UsageOf(s.pid)
		if err != nil {
			return err
		}
		add(row, s, median(took))
		add(cpu, s, (after-before)*1000/float64(len(took)))
		return nil
	})
	if err != nil {
		return 0, err
	}
	for i, s := range r.systems {
		if refused[i] += s.refused.Load(); refused[i] > 0 {
			row.Note = strings.TrimPrefix(fmt.Sprintf("%s; %s refused %d requests as busy, with %d clients: they waited as told and asked again, within their time", row.Note, s.name, refused[i], clients), "; ")
		}
	}
	r.rows = append(r.rows, *row)
	if clients == 8 {
		r.rows = append(r.rows, *cpu)
	}
	return spent, nil
}

// median is that of times, in ms.
func median(took []time.Duration) float64 {
	slices.Sort(took)
	n := len(took)
	return float64((took[(n-1)/2] + took[n/2]).Microseconds()) / 2000
}
