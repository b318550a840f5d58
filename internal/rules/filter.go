package rules

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"unsafe"

	"github.com/zeebo/xxh3"

	"blobtail/internal/count"
	"blobtail/record"
)

// Accepter is the next part of the ingester. [Filter] is one too.
type Accepter interface {
	Accept(ctx context.Context, r *record.Request) (record.Receipt, error)
}

// Filter applies rules to requests on their way. Any number of goroutines may use it.
type Filter struct {
	rules  *Rules
	accept Accepter
	counts []*count.Counter // by rule
	works  sync.Pool        // of *work
}

// NewFilter makes a filter that passes requests on to accept. Nil metrics: its counters are
// not registered.
func NewFilter(rules *Rules, accept Accepter, metrics *count.Registry) *Filter {
	f := &Filter{rules: rules, accept: accept}
	f.works.New = func() any { return &work{rules: rules} }
	if rules.forms {
		vec := metrics.Counters("blobtail_form_unfit_total", "Records whose messages lack the form of their service.", "services")
		for i := range rules.of {
			f.counts = append(f.counts, new(count.Counter))
			if !rules.of[i].read {
				f.counts[i] = vec.With(rules.of[i].name)
			}
		}
		return f
	}
	vec := metrics.Counters("blobtail_rule_records_total", "Records that a rule has changed (mask) or left out. 0: it does not match.", "action", "rule")
	for i := range rules.of {
		f.counts = append(f.counts, vec.With(rules.of[i].action, rules.of[i].name))
	}
	return f
}

// Accept applies the rules to a request and passes the rest of it on, in memory of its own.
// The receipt and the errors are those of the next part.
//
// For an invalid record its expression cannot be evaluated and its service may not be known.
// So a mask applies to it if the pattern of its rule matches the intended service, or
// _rejected, or if the intended service is not known.
func (f *Filter) Accept(ctx context.Context, r *record.Request) (record.Receipt, error) {
	w := f.works.Get().(*work)
	defer f.release(w)
	if !w.begin(r) {
		return f.accept.Accept(ctx, r)
	}
	if err := w.apply(r); err != nil {
		return record.Receipt{}, err
	}
	receipt, err := f.accept.Accept(ctx, &w.request)
	if first, ok := errors.AsType[*record.EarlierError](err); ok {
		return receipt, &record.EarlierError{Origin: w.salted(first.Origin), DefaultTime: first.DefaultTime}
	}
	if err == nil && !receipt.Duplicate {
		for i, n := range w.counts[:len(f.counts)] {
			if n > 0 {
				f.counts[i].Add(int64(n))
			}
		}
	}
	return receipt, err
}

// keptBytes is how large the memory of a work may be to be used again.
const keptBytes = 2 << 20

func (f *Filter) release(w *work) {
	w.request = record.Request{} // the source reuses its memory
	if cap(w.data)+cap(w.line)+cap(w.spare)+(cap(w.lines)+cap(w.wanted))*24 > keptBytes {
		return
	}
	f.works.Put(w)
}

// A work applies rules to one request.
type work struct {
	rules   *Rules
	request record.Request // that is passed on
	counts  [MostRules]uint32
	salt    uint64 // of the masks of the services in the request
	masks   uint64 // the rules that salt has

	wanted [][]int // the rules of each service
	own    bool    // the request has lines and data of its own
	lines  []record.Line
	data   []byte

	rewriter    rewriter
	line, spare []byte // a line that masks have changed, and room for the next mask
	all         []mask // of the rules for a rejected record
}

// begin reports whether any rule may apply to the request.
func (w *work) begin(r *record.Request) (any bool) {
	w.wanted = w.wanted[:0]
	for _, name := range r.Services {
		of := w.rules.set.Match(name)
		w.wanted = append(w.wanted, of)
		any = any || len(of) > 0 || name == record.RejectedService
	}
	return any
}

// apply makes the request that is passed on.
func (w *work) apply(r *record.Request) error {
	w.counts, w.salt, w.masks = [MostRules]uint32{}, 0, 0
	w.own, w.lines, w.data = false, w.lines[:0], w.data[:0]
	for i := range r.Lines {
		l := &r.Lines[i]
		before := r.Data[l.Off : l.Off+l.Len]
		line, keep, err := before, true, error(nil)
		if r.Services[l.Service] == record.RejectedService {
			line, keep, err = w.rejected(r, uint32(i), line)
		} else if rules := w.wanted[l.Service]; len(rules) > 0 {
			line, keep, err = w.judge(r, uint32(i), line, rules)
		}
		if err != nil {
			return err
		}
		if !w.own && (!keep || unsafe.SliceData(line) != unsafe.SliceData(before)) {
			w.own = true
			for j := range r.Lines[:i] {
				l := &r.Lines[j]
				w.keep(r, uint32(j), r.Data[l.Off:l.Off+l.Len])
			}
		}
		if w.own && keep {
			w.keep(r, uint32(i), line)
		}
	}
	w.request = *r
	w.request.Origin = w.salted(r.Origin)
	if w.own {
		w.request.Lines, w.request.Data = w.lines, w.data
	}
	return nil
}

// keep adds line i of r to the lines that are passed on. Its identity stays.
func (w *work) keep(r *record.Request, i uint32, line []byte) {
	l := r.Lines[i]
	l.Shift = int32(r.Index(i) - uint32(len(w.lines)))
	l.Off, l.Len = uint32(len(w.data)), uint32(len(line))
	w.lines, w.data = append(w.lines, l), append(w.data, line...)
}

// selects reports whether a rule is for a line. If the filter cannot tell, a mask is, and a rule
// that drops is not.
func (c *rule) selects(line []byte) bool {
	switch {
	case c.where == nil:
		return true
	case c.action == actionMask:
		return c.where.MaySelect(line)
	}
	return c.where.Select(line)
}

// judge applies the rules of its service to line i of r. It returns the line that is left, in
// memory that the next call uses.
func (w *work) judge(r *record.Request, i uint32, line []byte, rules []int) (_ []byte, keep bool, err error) {
	for _, n := range rules {
		c := &w.rules.of[n]
		w.note(n, c)
		if c.read {
			return line, true, nil
		}
		if c.form != nil {
			next, fits := c.form.Append(w.spare[:0], line, true)
			if w.line, w.spare = next, w.line; !fits {
				w.counts[n]++
			}
			return next, true, nil // the first form counts
		}
		if !c.selects(line) {
			continue
		}
		if c.action != actionMask {
			if c.action == actionDrop || !c.samples(r, i) {
				w.counts[n]++
				return line, false, nil
			}
			continue
		}
		next, changed, err := w.rewriter.mask(w.spare[:0], line, c.masks)
		if err != nil {
			return line, false, err
		}
		if changed {
			w.counts[n]++
			w.line, w.spare = next, w.line
			line = next
		}
	}
	return line, true, nil
}

// rejected is judge for a line of the service _rejected. All masks work at once, before the
// line is cut.
func (w *work) rejected(r *record.Request, i uint32, line []byte) (_ []byte, keep bool, err error) {
	if w.rules.forms {
		return line, true, nil
	}
	for _, n := range w.rules.set.Match(record.RejectedService) {
		c := &w.rules.of[n]
		if c.action == actionMask || c.where != nil && !c.where.Select(line) {
			continue
		}
		if c.action == actionDrop || !c.samples(r, i) {
			w.counts[n]++
			return line, false, nil
		}
	}
	w.all = w.all[:0]
	for n := range w.rules.of {
		if c := &w.rules.of[n]; c.action == actionMask && (c.raw || w.rules.mayBeOf(n, line)) {
			w.note(n, c)
			w.all = append(w.all, c.masks...)
		}
	}
	if len(w.all) == 0 {
		return line, true, nil
	}
	next, changed, err := w.rewriter.rejected(w.spare[:0], line, w.all)
	if err != nil || !changed {
		return line, err == nil, err
	}
	for n := range w.rules.of {
		if w.rewriter.hits>>n&1 != 0 {
			w.counts[n]++
		}
	}
	w.line, w.spare = next, w.line
	return next, true, nil
}

// mayBeOf reports whether a rejected record may be of a service that rule n matches.
func (c *Rules) mayBeOf(n int, line []byte) bool {
	name, ok := record.Lookup(line, "service.name")
	if !ok || !record.IsString(name) {
		return true
	}
	for _, m := range c.set.Match(string(name[1 : len(name)-1])) {
		if m == n {
			return true
		}
	}
	return false
}

// note adds the masks or the stored form of a rule to the salt.
func (w *work) note(n int, c *rule) {
	if c.action == actionMask && !c.read && w.masks>>n&1 == 0 {
		w.masks |= 1 << n
		w.salt ^= c.id
	}
}

// salted returns an origin changed by the salt; salted again, it is the origin as it was. It
// changes the two bytes behind the time. In the origin of a message these are a hash of the
// stream's name, in others a part of a hash.
func (w *work) salted(o record.Origin) record.Origin {
	if !o.IsZero() {
		o[6] ^= byte(w.salt >> 8)
		o[7] ^= byte(w.salt)
	}
	return o
}

// samples reports whether a sample keeps line i of r.
func (c *rule) samples(r *record.Request, i uint32) bool {
	var buf [len(r.Origin) + 4]byte
	id := buf[:0]
	if r.Origin.IsZero() {
		l := &r.Lines[i]
		id = binary.BigEndian.AppendUint64(id, xxh3.Hash(r.Data[l.Off:l.Off+l.Len]))
	} else {
		id = append(id, r.Origin[:]...)
	}
	id = binary.BigEndian.AppendUint32(id, r.Index(i))
	return xxh3.HashSeed(id, c.seed) < c.kept
}
