package blobs

import (
	"cmp"
	"context"
	"math"
	"slices"

	"blobtail/catalog"
	"blobtail/record"
)

// A Volume sums up the records of a service in a range, by the metadata of its blobs.
type Volume struct {
	Service string
	Blobs   int
	// Records, Bytes and Levels are those of the wanted levels, in blobs and unflushed. Bytes
	// are of lines. A record that was stored while it was gathered may count twice.
	Records, Bytes int64
	Levels         [record.NumLevels]int64
	// Stored is the bytes of the blobs, also outside the range.
	Stored int64
	// First and Last are the times between which the records are, within the range.
	First, Last int64
	// Estimated says that the range cuts a blob. Its records then count by the part of its time
	// that is in the range.
	Estimated bool
}

// Volume sums up the records of each service of a query that has any, in order. It costs a
// LIST for each service, and the indexes of compacted blobs. Of the filter it takes levels
// alone, and the limits do not count.
func (r *Reader) Volume(ctx context.Context, q Query) ([]Volume, Summary, error) {
	if q.Filter.ReadsLines() || q.Filter.Invert {
		return nil, Summary{}, badQuery("volumes are known by service, time and level only; leave out the other filters")
	}
	q.Limit, q.First, q.Reverse = 0, 0, false
	p, err := r.Plan(ctx, q)
	if err != nil {
		return nil, Summary{}, err
	}
	sum := p.summary()
	parts := make(map[string]*volume)
	err = p.confirmed(ctx, &sum, func(context.Context) error {
		for i := range p.blobs {
			b := &p.blobs[i]
			if b.State == catalog.Sound && !p.view.Hides(b.Name.Service, b.Day()) {
				sum.Examined += b.Meta.Records
				p.addVolume(parts, b)
			}
		}
		return nil
	})
	var out []Volume
	for _, v := range parts {
		if v.total(); v.Records > 0 {
			out = append(out, v.Volume)
			sum.Records += v.Records
		}
	}
	slices.SortFunc(out, func(a, b Volume) int { return cmp.Compare(a.Service, b.Service) })
	p.tellExpired(&sum, p.has())
	return out, sum, err
}

// volume is a [Volume] that counts parts of records.
type volume struct {
	Volume
	levels [record.NumLevels]float64
	bytes  float64
}

// addVolume adds the part of a blob that is in the range of the plan.
func (p *Plan) addVolume(parts map[string]*volume, b *blob) {
	m := &b.Meta
	if wanted(p.match.levels, &m.Levels) == 0 {
		return
	}
	v := parts[b.Name.Service]
	if v == nil {
		v = &volume{Volume: Volume{Service: b.Name.Service, First: Newest, Last: Oldest}}
		parts[b.Name.Service] = v
	}
	if b.body == nil {
		v.Blobs++
		v.Stored += b.Size
	} else { // its blocks are in memory, and tell more
		for i := range b.body.index.Blocks {
			d := &b.body.index.Blocks[i]
			v.add(p, d.First, d.Last, d.Raw, scaled(&d.Levels))
		}
		return
	}
	v.add(p, m.First, m.Last, m.RawBytes, scaled(&m.Levels))
}

// add adds records with some levels and times, as far as they are in the range and wanted.
func (v *volume) add(p *Plan, first, last, raw int64, levels [record.NumLevels]float64) {
	if !p.rng.touches(first, last) {
		return
	}
	share := 1.0
	if !p.rng.covers(first, last) {
		from, to := max(first, p.rng.From), min(last, p.rng.last())
		share = (float64(to) - float64(from) + 1) / (float64(last) - float64(first) + 1)
		first, last, v.Estimated = from, to, true
	}
	all, some := 0.0, 0.0
	for l, n := range levels {
		all += n
		if p.match.levels.Has(record.Level(l)) {
			v.levels[l] += n * share
			some += n
		}
	}
	v.bytes += float64(raw) * share * some / max(1, all)
	if some > 0 {
		v.First, v.Last = min(v.First, first), max(v.Last, last)
	}
}

// total sets the sums. There is a record at least where there was a part of one.
func (v *volume) total() {
	for l, n := range v.levels {
		if n > 0 {
			v.Levels[l] = max(1, int64(math.Round(n)))
			v.Records += v.Levels[l]
		}
	}
	v.Bytes = int64(math.Round(v.bytes))
}

func scaled[N int | int64](levels *[record.NumLevels]N) (out [record.NumLevels]float64) {
	for l, n := range levels {
		out[l] = float64(n)
	}
	return out
}
