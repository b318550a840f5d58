package blobs

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/catalog/closed"
	"blobtail/storage"
	"blobtail/storage/fanout"
)

// Finding is a remark of [Reader.Verify] about a blob or a period.
type Finding struct {
	Key string // of the blob, or the prefix of the period
	Err error
	// Note says that no record is missing or damaged. So it is if Err is a [*NoServiceError]: a
	// name of the query is no service, beside others.
	Note bool
}

// Verified counts the checked blobs.
type Verified struct {
	Blobs, Bad, Notes int64
	Bytes, Records    int64
	// Root is the newest root of all accounts; nil: there is none, or only some services were asked.
	Root *closed.Root
}

// VerifyOptions tune [Reader.Verify].
type VerifyOptions struct {
	// PublicKey has signed all roots; nil: their signatures are not checked.
	PublicKey ed25519.PublicKey
	// Quick has the blobs judged by their names and metadata alone.
	Quick bool
}

// Verify reads every blob of q's services (all if it names none) with times in q's
// range, in full, and checks it against its name, its metadata and its index. It
// calls found for each finding, in no particular order, from one goroutine at a time.
// It may take longer than a read is allowed to: it finds out the reason for each
// missing blob.
func (r *Reader) Verify(ctx context.Context, q Query, o VerifyOptions, found func(Finding)) (Verified, error) {
	v := &verifying{store: r.store, found: found, lost: map[string]bool{}, parts: map[closed.Hash]bool{}, hashed: map[string]closed.Hash{}}
	if len(q.Services) == 0 {
		// What was there before the listing has to be in it.
		err := v.roots(ctx, o.PublicKey)
		if err == nil {
			q.Services, err = catalog.Services(ctx, r.store)
		}
		if err != nil || len(q.Services) == 0 {
			return v.out, cmp.Or(err, v.rooted(ctx, nil, q.Range.periods()))
		}
	}
	p, err := r.Plan(ctx, Query{Services: q.Services, Range: q.Range})
	if err != nil {
		return v.out, err
	}
	v.plan = p
	sum := p.summary()
	p.tellAll(&sum)
	p.blobs = append(p.blobs, p.empty...)
	for _, none := range sum.Absent {
		v.report(Finding{Err: none, Note: true})
	}
	for _, err := range sum.Problems {
		f := Finding{Err: err}
		if problem, ok := errors.AsType[*Problem](err); ok {
			f = Finding{Key: problem.Blob, Err: problem.Err}
		}
		v.report(f)
	}
	v.twins()
	if err := cmp.Or(v.run(ctx, o.Quick), v.accounts(ctx), v.gaps(ctx)); err != nil {
		return v.out, err
	}
	if err := p.view.Look(ctx); err != nil {
		return v.out, err
	}
	p.tellExpired(&sum, p.has())
	for _, err := range sum.Warnings {
		v.report(Finding{Err: err, Note: true})
	}
	return v.out, nil
}

type verifying struct {
	store storage.BlobStore
	plan  *Plan
	found func(Finding)
	lost  map[string]bool      // keys of known losses
	named []closed.Parts       // by roots; nil: only some services are asked for
	parts map[closed.Hash]bool // that are there

	hashed map[string]closed.Hash // of blobs without a hash in their metadata, by their keys

	mu  sync.Mutex
	out Verified
}

func (v *verifying) report(f Finding) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if f.Note {
		v.out.Notes++
	} else {
		v.out.Bad++
	}
	v.found(f)
}

// run checks a few blobs at a time, since each is held in memory.
func (v *verifying) run(ctx context.Context, quick bool) error {
	v.plan.reader.opt.Progress.Expect(len(v.plan.blobs), v.plan.Bytes())
	return fanout.Each(ctx, len(v.plan.blobs), v.plan.reader.opt.Workers, func(ctx context.Context, i int) error {
		b := v.plan.blobs[i].Entry
		if b.State != catalog.Sound {
			return nil // the listing has reported it, and there is nothing to check it against
		}
		if quick {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.out.Blobs++
			v.out.Records += b.Meta.Records
			return nil
		}
		return v.blob(ctx, b)
	})
}

func (v *verifying) blob(ctx context.Context, b *catalog.Entry) error {
	defer v.plan.reader.opt.Progress.Finish(1, b.Size)
	s := v.plan.reader.source(blob{Entry: b}, new(Summary))
	body, err := s.fetch(ctx, 0, b.Size)
	if err := fatal(ctx, err); err != nil {
		return err
	}
	if errors.Is(err, storage.ErrNotExist) {
		expired, err := v.plan.gone(ctx, s, err)
		if expired {
			err = errors.New("expired after it was listed")
		} else {
			err = fmt.Errorf("vanished after it was listed: %w", err)
		}
		v.report(Finding{Key: s.Key, Err: err, Note: expired})
		return nil
	}
	found := []error{err}
	if err == nil {
		found = blobfmt.Verify(b.Key, body, b.Meta)
	}
	if len(found) > 0 && v.another(ctx, b) {
		v.report(Finding{Key: b.Key, Err: errors.New("another blob has got its name since it was listed"), Note: true})
		return nil
	}
	for _, err := range found {
		v.report(Finding{Key: b.Key, Err: err})
	}
	if err != nil {
		return nil
	}
	v.mu.Lock()
	if b.Meta.SHA256 == (closed.Hash{}) {
		v.hashed[b.Key] = closed.HashOf(body)
	}
	v.out.Blobs++
	v.out.Bytes += b.Size
	v.out.Records += b.Meta.Records
	v.mu.Unlock()
	return nil
}

// another reports whether the name of a replaced and deleted blob was used again for
// a batch that came late.
func (v *verifying) another(ctx context.Context, b *catalog.Entry) bool {
	o, err := v.plan.reader.store.Stat(ctx, b.Key)
	if err != nil {
		return false
	}
	meta, err := blobfmt.ParseMeta(o.Metadata)
	return err == nil && meta.Batch != b.Meta.Batch
}

// gaps reports the gaps in the numbers of a lane, from 1 on, in periods that the plan
// has all blobs of. Compaction leaves gaps by design. A writer stores several batches at
// once, so a number that is missing may have come since: the period is listed again.
func (v *verifying) gaps(ctx context.Context) error {
	entries := make([]catalog.Entry, 0, len(v.plan.blobs))
	for i := range v.plan.blobs {
		entries = append(entries, *v.plan.blobs[i].Entry)
	}
	lacking := slices.DeleteFunc(catalog.Gaps(entries), func(n blobfmt.Name) bool {
		start := n.Period.UnixNano()
		return v.lost[n.String()] || !v.plan.rng.covers(start, start+int64(time.Hour)-1)
	})
	for len(lacking) > 0 {
		first := lacking[0]
		period := blobfmt.PeriodPrefix(first.Service, first.Period)
		var numbers []int
		for len(lacking) > 0 && lacking[0].SameLane(first) {
			numbers, lacking = append(numbers, lacking[0].Number), lacking[1:]
		}
		for b, err := range v.store.List(ctx, period, "") {
			if err != nil {
				return fmt.Errorf("list %s: %w", period, err)
			}
			if name, err := blobfmt.ParseName(b.Key); err == nil {
				numbers = slices.DeleteFunc(numbers, func(n int) bool { return n == name.Number })
			}
		}
		if len(numbers) > 0 {
			v.report(Finding{Key: period, Err: fmt.Errorf("lane %d lacks %s: a blob was lost, or its ingester has yet to store it",
				numbers[0]/blobfmt.LaneSize, numbersText(numbers))})
		}
	}
	return nil
}

// numbersText names numbers of blobs, in order, as ranges.
func numbersText(numbers []int) string {
	var ranges []string
	for len(numbers) > 0 {
		n := 1
		for n < len(numbers) && numbers[n] == numbers[0]+n {
			n++
		}
		text := fmt.Sprintf("%06d", numbers[0])
		if n > 1 {
			text += fmt.Sprintf(" to %06d", numbers[n-1])
		}
		ranges, numbers = append(ranges, text), numbers[n:]
	}
	if len(ranges) == 1 && !strings.Contains(ranges[0], " ") {
		return "number " + ranges[0]
	}
	return "numbers " + strings.Join(ranges, ", ")
}

// twins notes blobs with the same batch: a writer stores it again under another name
// when it cannot know of the first. A read drops the copies. Two different batches with
// one id are an error.
func (v *verifying) twins() {
	first := make(map[blobfmt.BatchID]*catalog.Entry)
	for i := range v.plan.blobs {
		b := v.plan.blobs[i].Entry
		if b.State != catalog.Sound {
			continue
		}
		switch a := first[b.Meta.Batch]; {
		case a == nil:
			first[b.Meta.Batch] = b
		case a.Meta.Records == b.Meta.Records && a.Meta.CRC == b.Meta.CRC:
			v.report(Finding{Key: b.Key, Note: true,
				Err: fmt.Errorf("holds the same batch as %s; a read drops the copies", a.Key)})
		default:
			v.report(Finding{Key: b.Key, Err: fmt.Errorf("has the batch id of %s, and other lines", a.Key)})
		}
	}
}
