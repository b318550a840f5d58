package blobs

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"blobtail/catalog"
	"blobtail/internal/units"
	"blobtail/storage"
)

// muchCool is how many bytes a read may fetch from cooler tiers of the store before it says so.
const muchCool = 1 << 30

// A CoolError says that a read fetches much from cooler tiers of the store, where each byte that
// is read is charged. Nothing is missing because of it.
type CoolError struct {
	Blobs int64
	Bytes map[string]int64 // by tier
	// Fetched says that so much was fetched already. Else it is the most that the read may fetch.
	Fetched bool
}

// Error implements error.
func (e *CoolError) Error() string {
	var parts []string
	for _, tier := range slices.Sorted(maps.Keys(e.Bytes)) {
		parts = append(parts, fmt.Sprintf("%.1f GB of the tier %s", float64(e.Bytes[tier])/1e9, tier))
	}
	most := "may fetch up to "
	if e.Fetched {
		most = "has fetched so far "
	}
	return fmt.Sprintf("the read %s%s, in %s; each GB that is read there is charged, and a narrower range reads less",
		most, strings.Join(parts, " and "), units.Count(e.Blobs, "blob"))
}

// coolReads counts the bytes that a read fetches from cooler tiers.
type coolReads struct {
	mu    sync.Mutex
	bytes map[string]int64
	blobs map[string]bool
	total int64
	told  atomic.Bool
	much  int64
	late  *CoolError // told during the read; guarded by mu
}

// add counts bytes that are requested. It returns the warning if they make the total too large.
func (c *coolReads) add(tier, key string, n int64) *CoolError {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes == nil {
		c.bytes, c.blobs = make(map[string]int64), make(map[string]bool)
	}
	c.bytes[tier] += n
	c.blobs[key] = true
	if c.total += n; c.total < c.much || !c.told.CompareAndSwap(false, true) {
		return nil
	}
	c.late = &CoolError{Blobs: int64(len(c.blobs)), Bytes: maps.Clone(c.bytes), Fetched: true}
	return c.late
}

// fetched counts bytes of a source.
func (o *objects) fetched(s *source, n int64) {
	if s.Tier == "" || o == nil || o.cool == nil {
		return
	}
	if e := o.cool.add(s.Tier, s.Key, n); e != nil && o.tell != nil {
		o.tell(e)
	}
}

// warn adds a warning that came during the pass and was not told.
func (o *objects) warn(sum *Summary) {
	o.cool.mu.Lock()
	defer o.cool.mu.Unlock()
	if o.cool.late != nil && o.tell == nil {
		sum.Warnings = append(sum.Warnings, o.cool.late)
	}
	o.cool.late = nil
}

// Together returns a query of a read that consists of several: what these fetch from cooler tiers
// is counted together, and told once.
func (r *Reader) Together(q Query) Query {
	if q.cool == nil {
		q.cool = &coolReads{much: r.opt.MuchCool}
	}
	return q
}

// tellTiers says before a pass begins that it may fetch much from cooler tiers, and that some of
// its blobs cannot be read. A pass with a limit fetches as little as it can, so it tells when it
// has fetched much.
func (p *pass) tellTiers() {
	if n := len(p.archived); n > 0 {
		p.sum.Problems = append(p.sum.Problems, archived(p.archived))
	}
	if p.limit > 0 {
		return
	}
	p.asked.foretell(func(yield func(*catalog.Entry) bool) {
		for _, c := range p.heap {
			if !yield(c.src.Entry) {
				return
			}
		}
	}, p.sum)
}

// tellAll says that all blobs of the plan may be fetched.
func (p *Plan) tellAll(sum *Summary) {
	p.foretell(func(yield func(*catalog.Entry) bool) {
		for i := range p.blobs {
			if !yield(p.blobs[i].Entry) {
				return
			}
		}
	}, sum)
}

// foretell says that some blobs may be fetched, if that is much from cooler tiers.
func (a *asked) foretell(blobs iter.Seq[*catalog.Entry], sum *Summary) {
	e := &CoolError{Bytes: make(map[string]int64)}
	total := int64(0)
	for b := range blobs {
		if b.Tier != "" && b.Tier != storage.Archive {
			e.Blobs++
			e.Bytes[b.Tier] += b.Size
			total += b.Size
		}
	}
	if total < a.cool.much || !a.cool.told.CompareAndSwap(false, true) {
		return
	}
	if tell := a.reader.opt.Cool; tell != nil {
		tell(e)
		return
	}
	sum.Warnings = append(sum.Warnings, e)
}

// archived is the problem of blobs that cannot be read where they are.
func archived(blobs []*blob) *Problem {
	err := storage.ErrArchived
	if n := len(blobs) - 1; n > 0 {
		err = fmt.Errorf("it and %s of this read: %w", units.Count(n, "other blob"), err)
	}
	return &Problem{Blob: blobs[0].Key, Err: err}
}
