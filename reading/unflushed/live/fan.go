package live

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"blobtail/internal/lease"
	"blobtail/record"
	"blobtail/storage/fanout"
)

// fan is a question on its way to all ingesters: the own snapshot, and the answers of
// peers. It belongs to one goroutine once ask has returned. The caller closes it in any
// case.
type fan struct {
	query   Query
	scope   scope
	self    Self
	rowsAge time.Duration // age of the list of peers when the question came; negative: there is none
	held    Held
	stored  []Stored // by this ingester, before the answer's header
	asked   int
	answers []*stream
	missing []Missing
	damage  *DamageError // of the own log
}

// stream is the answer of another ingester.
type stream struct {
	peer   lease.Ingester
	answer *Answer
	scope  scope
	next   record.Entry
	err    error // in place of next
}

// pull gets the next record that may be read. A peer leaves the others out already, and this does
// not rely on it.
func (s *stream) pull() {
	s.next, s.err = s.answer.Next()
	for s.err == nil && !s.scope.allowed(s.next.Line) {
		s.next, s.err = s.answer.Next()
	}
}

// ask lists the peers, and then takes all snapshots at the same time: an ingester that was adopted
// before the list is in the snapshot of its adopter. It fails only if the own log does.
func (h *Handler) ask(ctx context.Context, f *fan, alone bool) (own error) {
	q := LogQuery{
		Match: func(service string) bool { return f.query.Match(service) && f.scope.may(service) }, From: f.query.From, To: f.query.To, Keep: f.query.keep(), Newest: f.query.Newest,
		Follow: f.query.Follow, After: f.query.After[f.self.ID],
	}
	if f.query.Now { // an empty snapshot has a position too
		q.Match = func(string) bool { return false }
	}
	came := time.Now()
	var roll Roll
	var unlisted error
	if !alone {
		roll, unlisted = h.o.Peers(ctx, !f.query.Follow)
	}
	var asking sync.WaitGroup
	defer asking.Wait() // also after a panic: then the caller releases the log
	asking.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, headerWait)
		defer cancel()
		f.held, own = h.o.Journal.Open(ctx, q)
		f.stored = h.o.Newest.of(&f.query, f.scope.may) // after the snapshot: it names the blobs of all records that it lacks
		if own != nil && ctx.Err() != nil {
			own = fmt.Errorf("the log cannot be read yet; ask again in a moment: %w", own)
		}
	})
	if !alone {
		h.askPeers(ctx, f, &roll, came, unlisted)
	}
	asking.Wait()
	return own
}

// askPeers asks all peers of a list for a question that came before it. It keeps their answers, and
// notes each failure of a peer that may hold records.
func (h *Handler) askPeers(ctx context.Context, f *fan, roll *Roll, came time.Time, unlisted error) {
	if unlisted != nil {
		f.asked++
		f.missing = append(f.missing, Missing{ID: "-", Reason: "the table of ingesters cannot be read: " + unlisted.Error()})
	}
	if !roll.Listed.IsZero() {
		f.rowsAge = max(0, came.Sub(roll.Listed))
		if f.query.Follow {
			f.rowsAge = max(1, f.rowsAge) // its losses are left out below, so it is not the whole list
		}
	}
	// A row of another start with the own id: this ingester has just left the id to a copy of
	// its log, which is asked like any other.
	peers := slices.DeleteFunc(slices.Clone(roll.Peers), func(p lease.Ingester) bool {
		return p.ID == f.self.ID && (p.Process == f.self.Process || p.Process == "") || !isID(p.ID)
	})
	answers := make([]*Answer, len(peers))
	errs := fanout.All(len(peers), 0, func(i int) (err error) {
		if p := peers[i]; p.MayHold(roll.Now) {
			answers[i], err = h.askPeer(ctx, &p, !p.Live(roll.Now), f)
		}
		return err
	})
	for i, p := range peers {
		if answers[i] != nil {
			f.answers = append(f.answers, &stream{peer: p, answer: answers[i], scope: f.scope})
		}
		holding, lost := p.State == lease.Holding && !f.spares(&p), p.LostFrom(f.query.From)
		if f.query.Follow {
			lost = "" // it claims no completeness
		}
		if answers[i] != nil || holding || lost != "" {
			f.asked++
		}
		switch {
		case errs[i] != nil && holding:
			f.miss(&p, !p.Live(roll.Now), errs[i])
		case lost != "": // the reader may have no right to see its row, and its next start may not either
			f.missing = append(f.missing, Missing{ID: p.ID, Host: p.Host, Reason: lost, Damaged: true})
		}
	}
}

// askPeer asks one peer for its own records, as [AskAlone] does.
func (h *Handler) askPeer(ctx context.Context, p *lease.Ingester, silent bool, f *fan) (*Answer, error) {
	o := AloneOptions{Store: f.self.Store, readable: f.scope.readable()}
	o.ClientOptions = ClientOptions{HTTP: h.o.HTTP, Trust: h.o.Trust, Token: h.o.Token, PlainHTTP: h.o.PlainHTTP, Wait: headerWait, Hangs: &h.hangs}
	if silent { // perhaps only its row cannot be written
		o.Wait = HastyWait
	}
	q := f.query
	if at, ok := q.After[p.ID]; ok && !q.Now {
		q.After = Positions{p.ID: at}
	} else {
		q.After = nil
	}
	return AskAlone(ctx, p, q, o)
}

// spares reports whether the question needs no answer of p: all that p holds and that
// belongs to this store is behind the range.
func (f *fan) spares(p *lease.Ingester) bool {
	return p.StoreID == f.self.Store && p.StoreID != "" && p.Spares(f.query.To)
}

// miss notes that p is missing, and why.
func (f *fan) miss(p *lease.Ingester, silent bool, err error) {
	reason := err.Error()
	if none, ok := errors.AsType[*NoAnswerError](err); ok && none.TLS {
		reason = "as ingester " + f.self.ID + " asked, which has the setting: " + reason
	}
	if silent {
		since := ""
		if !p.Oldest.IsZero() {
			since = " since " + p.Oldest.UTC().Format(time.RFC3339)
		}
		reason = fmt.Sprintf("it has been silent for over a minute and may hold records%s that are in no blob: start it again on its log, or, if that is lost, %s (%s)",
			since, p.WithoutLog(), reason)
	}
	var lacks *IncompleteError
	m := Missing{ID: p.ID, Host: p.Host, Reason: reason, Damaged: errors.As(err, &lacks) && lacks.Damage != ""}
	if p.StoreID == f.self.Store && !p.BestEffort && !m.Damaged {
		m.floor = p.Floor
	}
	f.missing = append(f.missing, m)
}

// lose notes that the answer of s broke off.
func (f *fan) lose(s *stream) {
	s.answer.Close()
	if _, damaged := errors.AsType[*IncompleteError](s.err); !damaged && f.spares(&s.peer) {
		return
	}
	f.missing = slices.DeleteFunc(f.missing, func(m Missing) bool { return m.ID == s.peer.ID }) // it may be listed as another start
	f.miss(&s.peer, false, s.err)
	f.missing[len(f.missing)-1].Partly = s.answer.records > 0
}

// header sets the headers of the merged answer. An ingester that does not answer keeps the
// position of the follower.
func (f *fan) header(h http.Header) {
	snapshots, positions := map[string]string{f.self.ID: f.self.Process}, Positions{}
	var behind []string // ingesters that do not remember all that the follower asks for
	maps.Copy(positions, f.query.After)
	for _, s := range f.answers {
		snapshots[s.peer.ID] = s.answer.Self.Process
		positions[s.peer.ID] = s.answer.positions[s.peer.ID]
		if len(s.answer.Behind) > 0 {
			behind = append(behind, s.peer.ID)
		}
	}
	positions[f.self.ID] = f.held.Position()
	if f.held.Behind() && !f.query.Now {
		behind = append(behind, f.self.ID)
	}
	h.Set("Cache-Control", "no-store")
	h.Set(headerIngester, f.self.ID)
	h.Set(headerProcess, f.self.Process)
	h.Set(headerStore, f.self.Store)
	h.Set(headerSnapshots, formatList(snapshots, "%s.%s"))
	if f.rowsAge >= 0 { // rounded up: only a list that was read after the question has the age 0
		h.Set(headerRowsAge, strconv.FormatInt(int64((f.rowsAge+time.Millisecond-1)/time.Millisecond), 10))
	}
	h.Set(headerPositions, positions.String())
	narrowed := f.scope.narrowed(&f.query)
	for _, s := range f.answers { // a peer may know this ingester by a token that reads less
		narrowed = cmp.Or(narrowed, s.answer.Narrowed)
	}
	if narrowed != "" {
		h.Set(headerNarrowed, narrowed)
	}
	if len(behind) > 0 {
		slices.Sort(behind)
		h.Set(headerBehind, strings.Join(behind, ","))
	}
}

// wholeWithout says up to when an answer is whole without ingesters.
func wholeWithout(missing []Missing) string {
	var floors []time.Time
	for _, m := range missing {
		floors = append(floors, m.floor)
	}
	return lease.Whole(floors...)
}

// short is a reason that leaves room for an end: readers take so many bytes of both.
func short(reason, end string) string {
	if len(reason)+len(end) <= maxReason {
		return reason
	}
	return strings.ToValidUTF8(reason[:maxReason-len(end)-3], "") + "..."
}

// finish writes the lines behind the records.
func (f *fan) finish(out *bufio.Writer, m *merge) {
	f.tellStored(out)
	slices.SortFunc(f.missing, func(x, y Missing) int { return strings.Compare(x.ID, y.ID) })
	whole := ""
	if !f.query.Follow && f.damage == nil {
		whole = wholeWithout(f.missing)
	}
	for _, x := range f.missing {
		host := strings.ReplaceAll(plain(x.Host), " ", "_")
		if host == "" {
			host = "-"
		}
		word := wordMissing
		switch {
		case x.Damaged:
			word = wordDamaged
		case x.Partly:
			word = wordPartly
		}
		fmt.Fprintf(out, "%s %s %s %s\n", word, x.ID, host, short(plain(x.Reason), whole)+whole)
	}
	if f.damage != nil {
		fmt.Fprintf(out, "%s %s\n", wordError, plain(f.damage.Error()))
		return
	}
	fmt.Fprintf(out, "%s %d %d %d\n", wordEnd, m.sent, f.asked, f.asked-len(f.missing))
}

// close releases the log and closes the answers of the peers.
func (f *fan) close() {
	if f.held != nil {
		f.held.Close()
	}
	for _, s := range f.answers {
		s.answer.Close()
	}
}
