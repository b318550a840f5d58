package interop_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A report compares the records that a client sent with the stored ones.
type report struct {
	sent      int
	believed  int
	stored    int      // records that are there, each counted once
	missing   []string // sent, and not stored
	broken    []string // believed, and not stored
	twice     []string // stored more than once
	unequal   []string // stored otherwise than sent, with the difference
	strangers int      // stored, and never sent
	rejected  int      // in _rejected
}

// A stored is a record as logquery shows it.
type stored struct {
	TS, Level, Service, Msg string

	n string // of the field n
}

// parse reads the lines of logquery by the mark of each record.
func parse(lines []byte) (byMark map[string][]stored, strangers int, err error) {
	marks := markPattern()
	byMark = map[string][]stored{}
	for line := range bytes.Lines(lines) {
		var s stored
		var fields map[string]any
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&fields); err != nil {
			return nil, 0, fmt.Errorf("%w in %.200s", err, line)
		}
		text := func(name string) string { v, _ := fields[name].(string); return v }
		s.TS, s.Level, s.Service, s.Msg = text("ts"), text("level"), text("service"), text("msg")
		if s.Service == filler {
			continue
		}
		s.n = fmt.Sprint(number(fields))
		mark := string(marks.Find(line))
		if mark == "" {
			strangers++
			continue
		}
		byMark[mark] = append(byMark[mark], s)
	}
	return byMark, strangers, nil
}

// number finds the field n, which protocols place below others, or write as meta.n.
func number(fields map[string]any) any {
	for name, v := range fields {
		if inner, ok := v.(map[string]any); ok {
			if n := number(inner); n != nil {
				return n
			}
		}
		if strings.EqualFold(name, "n") || strings.HasSuffix(name, ".n") || strings.HasSuffix(name, "_n") {
			return v
		}
	}
	return nil
}

// compare holds the stored lines against the sent records.
func (r *run) compare(lines, rejected []byte, believed map[string]bool) report {
	r.t.Helper()
	rep := report{sent: len(r.records), believed: len(believed), rejected: bytes.Count(rejected, []byte("\n"))}
	byMark, strangers, err := parse(lines)
	if err != nil {
		r.t.Fatal(err)
	}
	rep.strangers = strangers
	for i := range r.records {
		s := &r.records[i]
		found := byMark[s.Mark]
		switch {
		case len(found) == 0 && believed[s.Mark] && !r.c.raw:
			rep.broken = append(rep.broken, s.Mark)
			fallthrough
		case len(found) == 0:
			rep.missing = append(rep.missing, s.Mark)
			continue
		case len(found) > 1:
			rep.twice = append(rep.twice, s.Mark)
		}
		rep.stored++
		if diff := r.c.want(s).differs(found[0], s); diff != "" {
			rep.unequal = append(rep.unequal, s.Mark+": "+diff)
		}
		delete(byMark, s.Mark)
	}
	rep.strangers += len(byMark)
	return rep
}

// differs returns the first difference of a stored record, "" for none.
func (w want) differs(got stored, s *sent) string {
	at, err := time.Parse(time.RFC3339Nano, got.TS)
	switch {
	case err != nil:
		return err.Error()
	case got.Service != service:
		return fmt.Sprintf("service %q, want %q", got.Service, service)
	case got.Msg != w.msg:
		return fmt.Sprintf("message %.200q, want %.200q", got.Msg, w.msg)
	case got.Level != w.level:
		return fmt.Sprintf("level %q, want %q", got.Level, w.level)
	case at.UnixNano() < w.from || at.UnixNano() > w.to:
		return fmt.Sprintf("time %s, want %s to %s", got.TS, when(w.from), when(w.to))
	case w.n && got.n != fmt.Sprint(s.N):
		return fmt.Sprintf("number %s, want %d", got.n, s.N)
	}
	return ""
}

func when(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }

// judge fails the test if the ingester broke a promise to the client.
func (r *run) judge(rep report) {
	r.t.Helper()
	head := func(list []string) string {
		return fmt.Sprintf("%d records: %.900s", len(list), strings.Join(list[:min(3, len(list))], "; "))
	}
	if len(rep.broken) > 0 {
		r.t.Errorf("the client believes them delivered, and they are not stored: %s", head(rep.broken))
	}
	if len(rep.unequal) > 0 {
		r.t.Errorf("stored otherwise: %s", head(rep.unequal))
	}
	if rep.strangers > 0 || rep.rejected > 0 {
		r.t.Errorf("%d records that nobody sent, %d in _rejected: %.1000s", rep.strangers, rep.rejected, r.i.read("_*"))
	}
	if len(rep.twice) > 0 && (r.c.twice == "" || r.fault == plain) {
		r.t.Errorf("stored more than once: %s", head(rep.twice))
	}
	if len(rep.missing) > 0 && (r.c.lossy == "" || r.fault == plain) {
		r.t.Errorf("not stored: %s", head(rep.missing))
	}
	if r.fault != plain && r.met() == "" {
		r.t.Error("the client did not meet the fault")
	}
	if len(rep.missing) > 0 {
		r.t.Logf("not stored: %s to %s", rep.missing[0], rep.missing[len(rep.missing)-1])
	}
	for _, s := range r.p.notable() {
		r.t.Logf("answered: %s", s)
	}
}

// met says how often the client met the fault.
func (r *run) met() string {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	var parts []string
	if n := r.p.bounces.Load(); n > 0 {
		parts = append(parts, fmt.Sprint(n, " restarts"))
	}
	if r.p.filled.Load() {
		parts = append(parts, "full")
	}
	if r.p.cuts > 0 {
		parts = append(parts, fmt.Sprint(r.p.cuts, " cut"))
	}
	if r.fault == plain || len(parts) > 0 {
		codes := make([]int, 0, len(r.p.codes))
		for code := range r.p.codes {
			codes = append(codes, code)
		}
		slices.Sort(codes)
		for _, code := range codes {
			parts = append(parts, fmt.Sprintf("%d × %d", r.p.codes[code], code))
		}
		if r.p.slowest > 0.5 {
			parts = append(parts, fmt.Sprintf("slowest %.1f s", r.p.slowest))
		}
	}
	return strings.Join(parts, ", ")
}

// notable returns the requests that were answered with no success, one of each kind.
func (p *proxy) notable() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, s := range p.samples {
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}
