package blobs

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"blobtail/blobfmt/filter"
	"blobtail/storage/fanout"
)

// An Explanation tells how much a read of a plan would fetch.
type Explanation struct {
	Services, Blobs int   // with records that may be wanted
	Stored          int64 // bytes of the blobs
	// Needs are the words and ids of each matching record, by which filters rule out blocks.
	Needs []string
	// Blocks are those of the blobs. Ruled out are some by ids, some by words, and others by
	// their times and levels.
	Blocks, ByIDs, ByWords, Others int64
	Read, Records, Bytes           int64 // blocks that are left, with their records and stored bytes
	Raw                            int64 // bytes of their lines
	// Parts are those that others may read, of which there are Workers. Without any, Alone says why.
	Parts, Workers int
	Alone          string
}

// Explain reads the filters and indexes of the blobs that a read would open, and none of
// their blocks. Unflushed records are not counted.
func (p *Plan) Explain(ctx context.Context) (x Explanation, sum Summary, err error) {
	sum = p.summary()
	t := task{blobs: p.blobs, rng: p.rng}
	l := p.newLoader(ctx, &t, &sum)
	defer l.work.Wait()
	defer l.stop()
	x.Needs = p.match.needs().text()
	services := map[string]bool{}
	var mu sync.Mutex
	var opened []*blob
	for i := range p.blobs {
		b := &p.blobs[i]
		if b.body != nil || !l.wantsBlob(b) {
			continue
		}
		x.Blobs++
		x.Stored += b.Size
		services[b.Name.Service] = true
		opened = append(opened, b)
	}
	err = fanout.Each(ctx, len(opened), listers, func(ctx context.Context, i int) error {
		s := p.reader.source(*opened[i], &sum)
		err := l.open(s, 0, false)
		mu.Lock()
		defer mu.Unlock()
		if s.warn != nil {
			sum.Warnings = append(sum.Warnings, unindexed(s))
		}
		if s.unfiltered != nil {
			sum.Warnings = append(sum.Warnings, notFiltered(s))
		}
		sum.Problems = append(sum.Problems, s.lost...)
		if err != nil {
			sum.Problems = append(sum.Problems, s.problem(0, 0, err))
			return fatal(ctx, err)
		}
		for _, n := range s.blocks {
			block := &s.index.Blocks[n]
			x.Read++
			x.Records += int64(block.Records)
			x.Bytes += block.Stored
			x.Raw += block.Raw
		}
		return nil
	})
	x.Services = len(services)
	x.ByIDs, x.ByWords = atomic.LoadInt64(&sum.RuledOutByIDs), atomic.LoadInt64(&sum.RuledOutByWords)
	x.Blocks = x.Read + sum.BlocksSkipped
	sum.Higher = 0 // nothing is left out yet
	x.Others = sum.BlocksSkipped - x.ByIDs - x.ByWords
	return x, sum, err
}

// Foresee tells how many blobs and bytes a read of a plan takes at most, by metadata alone.
func (p *Plan) Foresee() (x Explanation) {
	for i := range p.blobs {
		if b := &p.blobs[i]; b.body == nil {
			x.Blobs, x.Bytes, x.Raw = x.Blobs+1, x.Bytes+b.Size, x.Raw+b.Meta.RawBytes
		}
	}
	return x
}

// text is the needs as people read them: each with its alternatives.
func (n needs) text() (out []string) {
	for _, one := range n {
		text := ""
		for i, alternative := range one {
			if i > 0 {
				text += ", or "
			}
			text += describeNeeds(&alternative)
		}
		out = append(out, text)
	}
	return slices.Compact(out)
}

func describeNeeds(of *filter.Needs) (text string) {
	for i, word := range of.Words {
		if i > 0 {
			text += " and "
		}
		open := map[bool]string{false: "*", true: ""}
		text += "the word " + open[word.Left] + word.Text + open[word.Right]
	}
	switch n := len(of.Keys); {
	case n == 0:
		return text
	case text != "":
		text += " and "
	}
	if len(of.Keys) == 1 {
		return text + "an id"
	}
	return text + fmt.Sprintf("%d ids, or parts of one", len(of.Keys))
}
