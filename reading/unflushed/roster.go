package unflushed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"blobtail/catalog/horizon"
	"blobtail/internal/lease"
	"blobtail/internal/storeid"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed/live"
	"blobtail/storage"
	"blobtail/storage/fanout"
	"blobtail/tailindex"
)

// roster has the ingesters that may hold records of a store.
type roster struct {
	store    string // id of the store; "" when it has none
	storeErr error
	rows     []lease.Ingester
	unread   error // rows that cannot be read
	err      error // the rows cannot be listed
	now      time.Time
	came     time.Time // when now became known, by the local clock
	// expired are the expired days of the services asked for; nil: not known.
	expired    horizon.Horizons
	expiredErr error
	// dark says that the rows may not be read, and no ingester can vouch for the others.
	dark bool
	// copied says that the store is a copy: it has no ingesters, and no tables of the tail.
	copied *storeid.CopyError
}

// survey is a roster that is being read.
type survey struct {
	begun time.Time
	done  chan struct{}
	fault *fanout.Panic // of the goroutine that reads it
	found roster
	// expired is that of the roster as it was read.
	expired horizon.Checked
}

// wait returns the roster once it is there.
func (s *survey) wait() *roster {
	<-s.done
	s.fault.Again()
	return &s.found
}

// checked returns the expired days, once they are there. The roster may change meanwhile.
func (s *survey) checked() horizon.Checked {
	<-s.done
	s.fault.Again()
	return s.expired
}

// surveyPatience is how long a read waits for the rows of the ingesters: without them
// it is incomplete.
const surveyPatience = 10 * time.Second

// survey reads which ingesters there are, in surveyPatience at most. It also reads the
// expired days of services, if any are given.
func (r *Reader) survey(ctx context.Context, services []string) *survey {
	s := &survey{begun: time.Now(), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.fault = fanout.Keep(func() { r.look(ctx, s, services) })
	}()
	return s
}

// look reads them.
func (r *Reader) look(ctx context.Context, s *survey, services []string) {
	k := &s.found
	var reading fanout.Crew
	if len(services) > 0 {
		reading.Go(func() { s.expired, k.expiredErr = r.o.Blobs.Horizons(ctx, services) })
	}
	hasty, cancel := context.WithTimeout(ctx, surveyPatience)
	defer cancel()
	reading.Go(func() { k.store, k.storeErr = r.o.Store(hasty) })
	var err error
	k.rows, k.now, err = r.o.Ingesters(hasty)
	k.came = time.Now()
	k.unread, k.err = lease.Unread(err)
	reading.Wait()
	s.expired.Begun, k.expired = s.begun, s.expired.Days
	if k.copied, _ = errors.AsType[*storeid.CopyError](k.storeErr); k.copied != nil {
		k.storeErr, k.rows, k.unread, k.err = nil, nil, nil, nil
	}
	k.dark = errors.Is(k.err, storage.ErrUnauthorized) && r.o.Live == nil
}

// asleep reports whether no ingester is running or may hold records.
func (k *roster) asleep() bool {
	return !slices.ContainsFunc(k.rows, func(i lease.Ingester) bool { return i.MayHold(k.now) })
}

// unlisted is the error if the rows cannot be listed. Without a table there are none.
func (k *roster) unlisted() error {
	if absent(k.err) {
		return nil
	}
	return k.err
}

// longest is how far back rows of the tail are read for unflushed records. An ingester
// may have been gone for days, and all these rows are in memory.
const longest = 15 * time.Minute

// unflushed is when the oldest record arrived that may be unflushed. It is zero if all are
// in blobs, or if there is no ingester.
func (k *roster) unflushed() (since time.Time) {
	for _, i := range k.rows {
		oldest := i.Oldest
		if oldest.IsZero() && i.MayHold(k.now) {
			oldest = i.At // later records only
		}
		if i.State != lease.Stopped && !oldest.IsZero() && (since.IsZero() || oldest.Before(since)) {
			since = oldest
		}
	}
	return since
}

// writtenSince is since when rows of the tail may have unflushed records that match a
// query; zero: there are none.
func (k *roster) writtenSince(q *blobs.Query) time.Time {
	since := k.unflushed()
	if since.IsZero() {
		return since
	}
	for _, from := range []time.Time{k.now.Add(-longest), time.Unix(0, q.Range.From).Add(-tailindex.Ahead)} {
		if from.After(since) {
			since = from
		}
	}
	return since
}

// A heard is the result of asking: no answer, one answer for all, or one of each ingester.
type heard struct {
	any       bool              // an answer came, or nobody had to be asked
	snapshots map[string]string // by id, the process of each ingester that sent its records
	rowsAge   time.Duration
	told      map[string]bool  // ingesters that the answer itself names as missing
	partly    bool             // some of them sent some records
	narrowed  string           // the services that the token may read, if the answer lacks others
	err       error            // why there is no answer
	errs      map[string]error // by id, why an ingester that was asked at its address gave none, or half of one
}

// add notes another answer.
func (h *heard) add(o heard) {
	if !h.any {
		h.any, h.snapshots, h.told = true, map[string]string{}, map[string]bool{}
	}
	maps.Copy(h.snapshots, o.snapshots)
	maps.Copy(h.told, o.told)
	h.rowsAge, h.partly, h.narrowed = cmp.Or(h.rowsAge, o.rowsAge), h.partly || o.partly, cmp.Or(h.narrowed, o.narrowed)
}

// hear notes the facts that an answer states about itself, and how it ended.
func hear(answer *live.Answer, end error) heard {
	h := heard{any: true, snapshots: answer.Snapshots, rowsAge: answer.RowsAge, told: map[string]bool{}, narrowed: answer.Narrowed}
	if lacks, ok := errors.AsType[*live.IncompleteError](end); ok {
		for _, m := range lacks.Missing {
			h.told[m.ID] = true
			h.partly = h.partly || m.Partly
		}
	}
	return h
}

// lessThan returns the error of an answer without the services that the token may not read;
// nil if it has all that were asked for.
func (h *heard) lessThan(services []string) error {
	if h.narrowed == "" {
		return nil
	}
	if h.narrowed == "*" && slices.Equal(services, []string{"*", "_*"}) {
		return errors.New("the token may read *, which is no service of the system such as _rejected: records of these that are in no blob yet may be missing. Ask with a token that may read _* too (ingest token new: --read '*,_*'); --live off reads blobs alone")
	}
	return fmt.Errorf("the token may read only %s of %s: records of other services that are in no blob yet may be missing. Ask for services that it may read, or with a token that may read more; --live off reads blobs alone",
		h.narrowed, few(services))
}

// verify compares the answer with the rows, and reports records that a read may lack. It
// reports whether all ingesters that may hold records of the range have answered. The rows
// were read after the read began, and blobs are listed after verify returns. So if an
// ingester held an acknowledged record then, its row is Holding, with a floor that is not
// above the record, or the record is in a blob.
func (r *Reader) verify(ctx context.Context, q *blobs.Query, known *roster, h *heard, report *Report) (all bool) {
	if known.copied != nil {
		if err := known.copied.Lacks(q.Range.From, q.Range.To); err != nil {
			report.problem(err)
		}
		if some := known.copied.Services; len(some) > 0 {
			report.note("this store is a copy that has only the services %s", few(some))
		}
		return true // nobody has more
	}
	lacking := known.needed(known.lacking(h), q)
	if (h.any || len(h.errs) > 0) && slices.ContainsFunc(lacking, func(i lease.Ingester) bool { return i.Live(known.now) }) {
		// It may have just started or ended. A later list is as good, and each list proves
		// that those it does not hold to be lacking are not: unless they were adopted since,
		// and their adopter answered before.
		adopted := func(i lease.Ingester) bool { return i.Adopter != "" }
		if again := r.survey(ctx, nil).wait(); again.err == nil && !slices.ContainsFunc(again.rows, func(i lease.Ingester) bool {
			return adopted(i) && slices.ContainsFunc(lacking, func(was lease.Ingester) bool { return was.ID == i.ID })
		}) {
			*known = *again
			lacking = slices.DeleteFunc(known.needed(known.lacking(h), q), func(i lease.Ingester) bool {
				return !slices.ContainsFunc(lacking, func(was lease.Ingester) bool { return was.ID == i.ID })
			})
		}
	}
	before := len(report.Problems)
	known.doubts(h, report)
	for _, i := range known.rows {
		known.judge(&i, q, report)
	}
	whole := ""
	if len(report.Problems) == before {
		whole = known.whole(lacking)
	}
	for _, i := range lacking {
		if !h.told[i.ID] {
			report.problem(fmt.Errorf("%w%s", known.missing(&i, h), whole))
		}
	}
	if err := h.lessThan(q.Services); err != nil && !known.settles(q) {
		report.problem(err)
	}
	switch {
	case h.err == nil || len(lacking) > 0: // then it is in the error of an ingester
	case known.settles(q):
		report.note("no ingester answers, and none holds records of this range that are in no blob: %v", h.err)
	default:
		report.problem(h.err)
	}
	return (h.any || known.settles(q)) && len(lacking) == 0 && len(report.Problems) == before
}

// lacking are the ingesters that may hold records and did not answer.
func (k *roster) lacking(h *heard) (all []lease.Ingester) {
	for _, i := range k.rows {
		answered := h.any && i.Process != "" && h.snapshots[i.ID] == i.Process && i.StoreID == k.store
		if i.State == lease.Holding && !answered {
			all = append(all, i)
		}
	}
	return all
}

// doubts reports reasons not to rely on the roster.
func (k *roster) doubts(h *heard, report *Report) {
	if k.dark {
		report.problem(errors.New("whether all records are in blobs is not known: these credentials may not read the table of ingesters (role Storage Table Data Reader), and no ingester was asked (BLOBTAIL_LIVE names one). --live off reads blobs alone"))
		return
	}
	if k.storeErr != nil {
		report.problem(fmt.Errorf("the id of the store (_store) cannot be read, so it is not known which ingesters write to it: %w", k.storeErr))
	}
	if k.unread != nil {
		report.problem(fmt.Errorf("ingesters whose rows cannot be read may hold records that are in no blob: %w", k.unread))
	}
	switch {
	case k.err == nil && len(k.rows) == 0 && k.unread == nil && k.store != "":
		// A recreated table is empty at first.
		report.problem(errors.New("no ingester has a row, although the store was written to: the table of ingesters was removed, so nobody knows who holds records that are in no blob"))
	case k.err == nil:
		for _, i := range k.rows {
			if i.StoreID != "" && k.store == "" && k.storeErr == nil {
				report.problem(fmt.Errorf("the store has lost its object _store, and ingester %s wrote to store %s: put the object back, or read with --live off", i.ID, i.StoreID))
				break
			}
		}
	case errors.Is(k.err, storage.ErrNotExist):
		if k.store != "" {
			report.problem(errors.New("the table of ingesters is gone, so nobody knows who holds records that are in no blob; " +
				"if this is a promoted copy, start an ingester"))
		}
	case errors.Is(k.err, storage.ErrUnauthorized):
		if h.any && h.rowsAge != 0 {
			report.problem(errors.New("the ingester that was asked could not list the others, and this reader has no right to (role Storage Table Data Reader): records of others may be missing"))
		}
	default:
		report.problem(fmt.Errorf("the table of ingesters cannot be read, so nobody knows who holds records that are in no blob: %w", k.err))
	}
}

// judge reports losses and limits from the row of one ingester, as far as they affect a
// query. It does so even if the ingester answered.
func (k *roster) judge(i *lease.Ingester, q *blobs.Query, report *Report) {
	lost := i.LostFrom(q.Range.From)
	told := func(err error) bool { return strings.Contains(err.Error(), lost) } // by an ingester
	if lost != "" && !slices.ContainsFunc(report.Problems, told) {
		report.problem(fmt.Errorf("ingester %s on %s %s", i.ID, i.Host, lost))
	}
	if i.BestEffort && i.State != lease.Stopped {
		report.note("ingester %s on %s is announced with best effort only: records that it took while the tables were away "+mayBeMissing, i.ID, i.Host)
	}
}

// missing returns the error for an ingester that did not answer.
func (k *roster) missing(i *lease.Ingester, h *heard) error {
	held := "may hold records that are in no blob"
	if !i.Oldest.IsZero() {
		held = "holds records since " + i.Oldest.UTC().Format(time.RFC3339) + " that may be in no blob"
	}
	process, answered := h.snapshots[i.ID]
	why := cmp.Or(h.errs[i.ID], h.err)
	switch {
	case i.StoreID != k.store && i.StoreID != "" && k.storeErr == nil:
		return fmt.Errorf("ingester %s on %s %s, and wrote to store %s, which is not this one (%s): was the store made anew? `ingest forget %s` gives it up", i.ID, i.Host, held, i.StoreID, k.store, i.ID)
	case answered && process != i.Process:
		return fmt.Errorf("another start of ingester %s on %s answered (%s) than the one in its row (%s), which %s: it has just started, or cannot write its row (see its log), or two run on copies of one log; ask again in a moment", i.ID, i.Host, process, i.Process, held)
	case !i.Live(k.now):
		err := fmt.Errorf("ingester %s on %s has been silent for %s and %s: start it on its log again, or %s",
			i.ID, i.Host, k.now.Sub(i.At).Round(time.Second), held, i.WithoutLog())
		if why != nil && !errors.Is(why, ErrNobody) {
			err = fmt.Errorf("%w (%w)", err, why)
		}
		return err
	case i.Address == "":
		return fmt.Errorf("ingester %s on %s %s, and says no address at which it could be asked: set --advertise there, or BLOBTAIL_LIVE here to a URL of an ingester; --live off reads blobs alone", i.ID, i.Host, held)
	case why != nil:
		return fmt.Errorf("ingester %s on %s %s, and could not be asked: %w", i.ID, i.Host, held, why)
	}
	return fmt.Errorf("ingester %s on %s %s, and is not among those that answered", i.ID, i.Host, held)
}
