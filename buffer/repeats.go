package buffer

import (
	"cmp"
	"encoding/binary"
	"slices"

	"blobtail/buffer/runlog"
	"blobtail/buffer/wal"
	"blobtail/record"
)

// maxRemembered is the number of HTTP requests that are remembered to recognise repeats:
// four minutes of requests at a thousand a second. Readers drop later repeats.
const maxRemembered = 262144

// repeats remembers the last requests with an origin, oldest out first. Buffer.mu guards
// it. A request with a key is also found by the key: without a time in the key, its
// origin depends on the records.
//
// Its invariant: at maps each origin and key to the youngest request in ring that has it,
// and twice has only origins that at has.
type repeats struct {
	at    map[record.Origin]int32 // by origin, and by key in the form of byKey
	ring  []rememberedOrigin
	next  int
	twice twice
}

type rememberedOrigin struct {
	origin      record.Origin
	pos         wal.Pos
	sum         uint64
	outcome     record.Outcome
	defaultTime int64
	expired     uint32 // records
	size        uint32 // bytes of its record
}

// remembered is a request that e has encoded, with its record at pos.
func remembered(r *record.Request, pos wal.Pos, e *runlog.Encoder) rememberedOrigin {
	return rememberedOrigin{r.Origin, pos, r.Sum, r.Outcome, r.DefaultTime, uint32(e.LeftOut.Expired), uint32(len(e.Payload))}
}

// repeatedRun is a run of a repeat. It has the lines of one run of the first request, or of several
// if the period was another then. Rejected records may have another time.
type repeatedRun struct {
	service string
	span    runlog.Span
}

// again returns the receipt of a repeat, which e has encoded. It is as safe as the first request and
// waits for the same batches, as far as they are not stored.
func (b *Buffer) again(first *rememberedOrigin, e *runlog.Encoder) record.Receipt {
	pos, end := first.pos, first.pos+wal.Pos(first.size)
	runs := make([]repeatedRun, len(e.Runs))
	for i := range e.Runs {
		runs[i] = repeatedRun{e.Runs[i].Service, e.Runs[i].Span}
	}
	receipt := b.receipt(pos, func() []*Batch { return b.index.holding(runs, pos, end) })
	receipt.Duplicate, receipt.Expired = true, int(first.expired)
	return receipt
}

func newRepeats() repeats {
	return repeats{at: map[record.Origin]int32{}, twice: twice{}}
}

// byKey is a value that depends on client, key, part, path and body alone: the end of
// the key's origin and the beginning of the sum. It equals an origin only by chance.
func byKey(origin record.Origin, sum uint64) record.Origin {
	var be [8]byte
	binary.BigEndian.PutUint64(be[:], sum)
	copy(origin[:6], be[:6])
	return origin
}

// find returns the request that r may be a repeat of: one with its key and body, or
// with its origin.
func (m *repeats) find(r *record.Request) (rememberedOrigin, bool) {
	if r.Origin.IsZero() {
		return rememberedOrigin{}, false
	}
	if r.Sum != 0 {
		if first, ok := m.get(byKey(r.Origin, r.Sum)); ok && first.sum == r.Sum {
			return first, true
		}
	}
	return m.get(r.Origin)
}

func (m *repeats) get(o record.Origin) (rememberedOrigin, bool) {
	i, ok := m.at[o]
	if !ok {
		return rememberedOrigin{}, false
	}
	return m.ring[i], true
}

// add remembers a request. It replaces an earlier one of its origin, and the oldest one.
func (m *repeats) add(r rememberedOrigin) {
	i := int32(len(m.ring))
	var oldest record.Origin
	if len(m.ring) < maxRemembered {
		m.ring = append(m.ring, r)
	} else {
		i = int32(m.next)
		oldest = m.ring[i].origin
		m.remove(&m.ring[i], i)
		m.ring[i] = r
		m.next = (m.next + 1) % maxRemembered
	}
	if j, again := m.at[r.origin]; again && m.twice[r.origin] == nil && !m.ring[j].surelyCopies(&r) {
		m.twice[r.origin] = map[record.Origin]runlog.Lots{}
	}
	m.at[r.origin] = i
	if r.sum != 0 {
		m.at[byKey(r.origin, r.sum)] = i
	}
	if len(m.twice) > 0 {
		if _, known := m.at[oldest]; !known {
			delete(m.twice, oldest)
		}
	}
}

// remove forgets a request, unless a later one of its origin is known.
func (m *repeats) remove(r *rememberedOrigin, i int32) {
	for _, o := range [2]record.Origin{r.origin, byKey(r.origin, r.sum)} {
		if n, ok := m.at[o]; ok && n == i {
			delete(m.at, o)
		}
	}
}

// forget forgets the requests with records at these positions: a lost record must be
// accepted when it is sent again. For a request without an origin the one before is
// forgotten, which does no harm.
func (m *repeats) forget(lost []wal.Pos) {
	if len(lost) == 0 {
		return
	}
	known := make([]int32, len(m.ring))
	for i := range known {
		known[i] = int32(i)
	}
	at := func(i int32) wal.Pos { return m.ring[i].pos }
	slices.SortFunc(known, func(a, b int32) int { return cmp.Compare(at(a), at(b)) })
	for _, pos := range lost {
		n, _ := slices.BinarySearchFunc(known, pos+1, func(i int32, p wal.Pos) int { return cmp.Compare(at(i), p) })
		if n > 0 && at(known[n-1]).Segment() == pos.Segment() {
			m.remove(&m.ring[known[n-1]], known[n-1])
		}
	}
}

// repeatOf reports whether r is a repeat of the request that was accepted as o. An
// [*record.EarlierError] asks for the request again, with the times that its records got
// the first time.
func (o *rememberedOrigin) repeatOf(r *record.Request) (bool, error) {
	switch {
	case o.sum != r.Sum:
		return true, record.ErrKeyReused
	case o.outcome.Same(r.Outcome):
		return true, nil
	case o.defaultTime != 0 && (o.defaultTime != r.DefaultTime || o.origin != r.Origin):
		return true, &record.EarlierError{Origin: o.origin, DefaultTime: o.defaultTime}
	}
	return false, nil
}

// surelyCopies reports whether two requests of one origin have the same lines. Without a
// key an unknown outcome suffices, since lines bring their times.
func (o *rememberedOrigin) surelyCopies(p *rememberedOrigin) bool {
	return o.outcome.Same(p.outcome) && (o.sum == 0 || o.outcome.Sum != 0 && p.outcome.Sum != 0)
}
