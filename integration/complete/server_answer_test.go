package complete_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"blobtail/reading/blobs"
	"blobtail/reading/form"
	"blobtail/record"
)

// understand reads the answer. An error is a failure of the simulation.
func (a *ask) understand(answer *httptest.ResponseRecorder) error {
	a.status = answer.Code
	switch {
	case a.broken:
		a.cause = "broken off"
		return nil
	case a.status == http.StatusOK:
		return a.read(a, answer)
	case a.status == http.StatusNotFound && strings.HasPrefix(a.target, "/api/"):
		return a.none(answer)
	case a.status >= 500:
		a.cause = answer.Body.String()
		return nil
	}
	return fmt.Errorf("refused")
}

// none takes an answer that there is no such service, or no such record. It promises nothing of
// other services that were asked for too.
func (a *ask) none(answer *httptest.ResponseRecorder) error {
	var v form.Problem
	a.complete, a.absent = true, true
	err := json.Unmarshal(answer.Body.Bytes(), &v)
	if v.Service != "" {
		one := *a.wish
		wants := a.wants
		one.wants = func(s *sent) bool { return record.MatchService(v.Service, s.service) && wants(s) }
		a.wish = &one
	}
	return err
}

// noService matches the parts of a problem that says that a service does not exist.
var noService = regexp.MustCompile(`^(no service |logql: no service |there (is|are) |is it |/api/v1/services lists them)`)

// outcome takes the outcome that an answer of the reading API reports. As with logquery, an answer
// is whole if its only problems are services that do not exist, for nothing of the others is
// missing.
func (a *ask) outcome(complete bool, problems []string) {
	if len(problems) == 1 {
		problems = strings.Split(problems[0], "; ")
	}
	a.complete, a.absent = complete, false
	if !complete && len(problems) > 0 && !slices.ContainsFunc(problems, func(p string) bool { return !noService.MatchString(p) }) {
		a.complete, a.absent = true, true
	}
	if !a.complete {
		a.cause = strings.Join(problems, "; ")
	}
}

func (a *ask) readLines(answer *httptest.ResponseRecorder) error {
	for line := range bytes.Lines(answer.Body.Bytes()) {
		a.got = append(a.got, nameOf(line))
	}
	end := answer.Result().Trailer
	a.outcome(end.Get(form.TrailerComplete) == "1", strings.Split(end.Get(form.TrailerProblems), "; "))
	return nil
}

// unidentified is in the ids of records if their blob does not tell their identities, because a
// part of it cannot be read. The answer is not complete then, and nothing is found by such an id.
const unidentified = "-00000000000000000000000000000000-"

// event takes an event of a stream of records, or of a tail.
func (a *ask) event(text []byte) error {
	var e form.Event
	if err := json.Unmarshal(text, &e); err != nil {
		return err
	}
	switch {
	case e.Record != nil:
		name := nameOf(e.Record.Line)
		a.got = append(a.got, name)
		if !strings.Contains(e.Record.ID, unidentified) {
			a.w.mu.Lock()
			a.w.ids[name] = e.Record.ID
			a.w.mu.Unlock()
		}
	case e.Problem != "", e.Gap != nil, e.Note != "":
		if a.lasts > 0 && a.cause == "" {
			a.cause = string(text)
		}
		if a.kind == "tail once" && e.Problem != "" { // it may end with one
			a.told = append(a.told, e.Problem)
			a.outcome(false, a.told)
		}
	case e.End != nil:
		a.outcome(e.End.Complete, e.End.Problems)
	}
	return nil
}

func (a *ask) readEvents(answer *httptest.ResponseRecorder) error {
	a.cause = "no end"
	for line := range bytes.Lines(answer.Body.Bytes()) {
		if err := a.event(line); err != nil {
			return err
		}
	}
	return nil
}

func (a *ask) readTail(answer *httptest.ResponseRecorder) error {
	for line := range bytes.Lines(answer.Body.Bytes()) {
		if text, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			if err := a.event(text); err != nil {
				return err
			}
		}
	}
	if a.lasts > 0 {
		a.complete = a.cause == "" // it has said nothing
	}
	return nil
}

func (a *ask) readCount(answer *httptest.ResponseRecorder) error {
	var v form.Count
	err := json.Unmarshal(answer.Body.Bytes(), &v)
	a.counted = map[string]int64{"all": v.Records}
	a.outcome(v.Complete, v.Problems)
	return err
}

func (a *ask) readHistogram(answer *httptest.ResponseRecorder) error {
	var v form.Histogram
	err := json.Unmarshal(answer.Body.Bytes(), &v)
	a.counted = map[string]int64{}
	for _, b := range v.Buckets {
		for part, n := range b.Counts {
			a.counted[b.Time+" "+part] += n
		}
	}
	a.outcome(v.Complete, v.Problems)
	return err
}

func (a *ask) readServices(answer *httptest.ResponseRecorder) error {
	var v form.Services
	err := json.Unmarshal(answer.Body.Bytes(), &v)
	a.counted = map[string]int64{}
	for _, s := range v.Services {
		a.counted[s.Name] = s.Records + s.Unflushed
	}
	a.outcome(v.Complete, v.Problems)
	return err
}

func (a *ask) readDays(answer *httptest.ResponseRecorder) error {
	var v form.Days
	err := json.Unmarshal(answer.Body.Bytes(), &v)
	a.counted = map[string]int64{}
	for _, d := range v.Days {
		a.counted[d.Service+" "+d.Day] = d.Records + d.Unflushed
	}
	a.outcome(v.Complete, v.Problems)
	return err
}

func (a *ask) readFound(answer *httptest.ResponseRecorder) error {
	var v form.Found
	err := json.Unmarshal(answer.Body.Bytes(), &v)
	a.got = []string{nameOf(v.Line)}
	a.outcome(v.Complete, v.Problems)
	return err
}

// lokiAnswer has the parts that all answers of Loki's API share.
type lokiAnswer struct {
	Data     json.RawMessage
	Warnings []string
}

// readLoki reads an answer of Loki's API into data. With a warning, nothing is promised.
func (a *ask) readLoki(answer *httptest.ResponseRecorder, data any) error {
	var v lokiAnswer
	if err := json.Unmarshal(answer.Body.Bytes(), &v); err != nil {
		return err
	}
	a.complete, a.cause = len(v.Warnings) == 0, strings.Join(v.Warnings, "; ")
	return json.Unmarshal(v.Data, data)
}

func (a *ask) readStreams(answer *httptest.ResponseRecorder) error {
	var data struct {
		Result []struct{ Values [][2]string }
	}
	if err := a.readLoki(answer, &data); err != nil {
		return err
	}
	for _, stream := range data.Result {
		for _, v := range stream.Values {
			name, _, _ := strings.Cut(v[1], " ")
			if strings.HasPrefix(a.target, "/json") {
				name = nameOf([]byte(v[1]))
			}
			a.got = append(a.got, name)
		}
	}
	return nil
}

// readNumbers reads the points of series by a label and their times. Those of an instant query
// have none.
func (a *ask) readNumbers(answer *httptest.ResponseRecorder, label string, timed bool) error {
	var data struct {
		Result []struct {
			Metric map[string]string
			Value  []any
			Values [][]any
		}
	}
	if err := a.readLoki(answer, &data); err != nil {
		return err
	}
	a.counted = map[string]int64{}
	for _, series := range data.Result {
		if !timed {
			series.Values = [][]any{series.Value}
		}
		for _, v := range series.Values {
			n, err := strconv.ParseInt(fmt.Sprint(v[1]), 10, 64)
			if err != nil {
				return err
			}
			key := series.Metric[label] + "@"
			if at, ok := v[0].(float64); ok && timed {
				key += fmt.Sprint(int64(at))
			}
			a.counted[key] += n
		}
	}
	return nil
}

func (a *ask) readList(answer *httptest.ResponseRecorder) error {
	var names []string
	if err := a.readLoki(answer, &names); err != nil {
		return err
	}
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	for _, name := range names {
		known := false
		for _, s := range a.w.records {
			known = known || s.service == name
		}
		if !known && !a.w.harmed.Load() {
			return fmt.Errorf("nothing was ever sent to service %s", name)
		}
	}
	return nil
}

// judge checks the rule.
func (a *ask) judge() {
	w := a.w
	w.mu.Lock()
	var bad []string
	switch {
	case a.kind == "loki list":
	case a.key != nil:
		bad = a.miscounted()
	default:
		bad = append(a.strange(), a.lacking()...)
	}
	if a.complete {
		w.counts.Complete++
	} else {
		w.counts.incomplete[causeOf(a.cause)]++
	}
	w.mu.Unlock()
	w.say("%s ends: %d, %v %v, complete %v, absent %v, %s", a.name, a.status, a.got, a.counted, a.complete, a.absent, a.cause)
	for _, text := range bad {
		w.violation("%s, a complete answer (%s) %s", a.name, a.kind, text)
	}
	// A stream that has begun breaks off when it finds that there is no such service.
	if (w.p.Calm || a.must) && !w.harmed.Load() && !a.complete && !a.broken && a.lasts == 0 && !w.mutated {
		w.violation("%s (%s) is incomplete though nothing fails: %d %s", a.name, a.kind, a.status, a.cause)
	}
}

// wanted reports whether the ask is for a record.
func (a *ask) wanted(s *sent) bool { return a.wants(s) && a.has(s.time) }

// promised reports whether a complete answer must have a record. w.mu is held.
func (a *ask) promised(s *sent) bool {
	if !a.wanted(s) || a.w.lost != nil && a.w.lost(s, a.win) {
		return false
	}
	for _, k := range s.acks {
		since, until := uint64(0), a.begin
		if a.lasts > 0 { // a tail has the records that come during it
			since, until = a.begin, a.end
		}
		if k.to == a.s.s && k.at >= since && k.at < until && !a.w.excused(k, a.begin, a.end) {
			return a.lasts == 0 || !a.before(s)
		}
	}
	return false
}

// before reports whether a record was acknowledged before a tail began. w.mu is held.
func (a *ask) before(s *sent) bool {
	return slices.ContainsFunc(s.acks, func(k ack) bool { return k.at < a.begin })
}

// miscounted lists wrong numbers of records. w.mu is held.
func (a *ask) miscounted() (bad []string) {
	if !a.complete { // a record in an unreadable blob may count twice
		return nil
	}
	least, most := map[string]int64{}, map[string]int64{}
	for _, s := range a.w.records {
		if !a.wanted(s) || !s.stores[a.s.s] {
			continue
		}
		key := a.key(s)
		most[key]++
		if a.promised(s) {
			least[key]++
		}
	}
	for key, n := range a.counted {
		if n > most[key] && !a.atLeast && !a.w.harmed.Load() {
			bad = append(bad, fmt.Sprintf("counts %d of %q, and only %d were ever sent", n, key, most[key]))
		}
	}
	for key, n := range least {
		if a.counted[key] < n {
			bad = append(bad, fmt.Sprintf("counts %d of %q, and %d were acknowledged before", a.counted[key], key, n))
		}
	}
	slices.Sort(bad)
	return bad
}

// strange lists records that the answer should not have. w.mu is held.
func (a *ask) strange() (bad []string) {
	seen := map[string]bool{}
	for _, name := range a.got {
		s := a.w.records[name]
		switch {
		case s == nil || !s.stores[a.s.s]:
			bad = append(bad, "has "+name+", which was never sent to this store")
		case seen[name] && a.complete: // else the copy may be in a blob that cannot be read
			bad = append(bad, "has "+name+" twice")
		case !a.wanted(s) && !a.w.harmed.Load():
			bad = append(bad, "has "+name+", which was not asked for")
		}
		seen[name] = true
	}
	if most := max(a.newest, a.oldest); most > 0 && len(a.got) > most {
		bad = append(bad, fmt.Sprintf("has %d records, and at most %d were asked for", len(a.got), most))
	}
	return bad
}

// lacking lists records that a complete answer lacks. Of an answer with a limit these are the
// records between those that it has. w.mu is held.
func (a *ask) lacking() (bad []string) {
	if !a.complete {
		return nil
	}
	got := map[string]bool{}
	first, last := blobs.Newest, blobs.Oldest
	for _, name := range a.got {
		got[name] = true
		if s := a.w.records[name]; s != nil {
			first, last = min(first, s.time), max(last, s.time)
		}
	}
	full := len(a.got) > 0 && len(a.got) >= max(a.newest, a.oldest)
	for name, s := range a.w.records {
		if got[name] || a.newest > 0 && full && s.time <= first || a.oldest > 0 && full && s.time >= last || !a.promised(s) {
			continue
		}
		bad = append(bad, fmt.Sprintf("lacks %s, which was acknowledged before", name))
	}
	slices.Sort(bad)
	return bad
}
