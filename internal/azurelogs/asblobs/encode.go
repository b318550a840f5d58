package asblobs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"blobtail/blobfmt"
	"blobtail/internal/azurelogs"
	"blobtail/internal/azurelogs/formats"
	"blobtail/internal/spill"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/fanout"
)

// encode makes the blobs of some hours of a service, unless they are made. It reads each
// blob of the source once.
func (s *Store) encode(ctx context.Context, name string, span azurelogs.Span) error {
	sv := s.service(name)
	sv.mu.Lock()
	defer sv.mu.Unlock()
	blobs, err := s.source.Blobs(ctx, name, s.arrivals(span))
	if unknown(err) {
		return nil
	}
	if err != nil {
		return err
	}
	units := s.units(sv, blobs, span)
	encoded := make([][]*made, len(units))
	err = fanout.Each(ctx, len(units), s.o.Workers, func(ctx context.Context, i int) (err error) {
		encoded[i], err = s.encodeUnit(ctx, units[i])
		return err
	})
	if err != nil {
		return err
	}
	for i := range units {
		sv.done[unitOf(&units[i][0])] = true
	}
	return sv.add(slices.Concat(encoded...))
}

// A unit is the blobs of the source among which copies are left out.
type unit []azurelogs.Blob

// unitOf names the unit of a blob: the hour of classic logs, or else the blob.
func unitOf(b *azurelogs.Blob) string {
	if b.Kind == formats.Classic {
		return b.Hour.Format(time.RFC3339)
	}
	return b.Key
}

// units gathers the blobs that are not encoded yet and may have records of a span.
func (s *Store) units(sv *service, blobs []azurelogs.Blob, span azurelogs.Span) (units []unit) {
	at := make(map[string]int)
	wanted := make(map[string]bool)
	for i := range blobs {
		b := &blobs[i]
		name := unitOf(b)
		if sv.done[name] {
			continue
		}
		if _, ok := at[name]; !ok {
			at[name] = len(units)
			units = append(units, nil)
		}
		units[at[name]] = append(units[at[name]], *b)
		first, last := s.events(b)
		if (span.To.IsZero() || !first.After(span.To)) && !last.Before(span.From) {
			wanted[name] = true
		}
	}
	return slices.DeleteFunc(units, func(u unit) bool { return !wanted[unitOf(&u[0])] })
}

// made is an encoded blob before it has a number.
type made struct {
	hour   time.Time
	order  record.Origin // of its chunk
	source string
	meta   blobfmt.Meta
	body   spill.Extent
}

// add gives blobs their numbers, in the order of the source.
func (sv *service) add(all []*made) error {
	slices.SortFunc(all, func(a, b *made) int {
		return cmp.Or(a.hour.Compare(b.hour), strings.Compare(a.source, b.source), slices.Compare(a.order[:], b.order[:]))
	})
	for _, m := range all {
		objects := sv.hours[m.hour]
		if len(objects) == blobfmt.MaxNumber {
			return fmt.Errorf("%s has more than %d parts with records of %s", sv.name, blobfmt.MaxNumber, m.hour.Format(time.RFC3339))
		}
		name := blobfmt.Name{Service: sv.name, Period: m.hour, Number: len(objects) + 1}
		o := &object{body: m.body, Blob: storage.Blob{Key: name.String(), Size: m.body.Size(), Attrs: storage.Attrs{
			ContentType: blobfmt.ContentType, ContentEncoding: blobfmt.ContentEncoding, Metadata: m.meta.Map(),
		}}}
		sv.hours[m.hour] = append(objects, o)
	}
	return nil
}

// encodeUnit reads the blobs of a unit. Malformed lines, and a blob that cannot be read to its
// end, are problems; the readable part stays.
func (s *Store) encodeUnit(ctx context.Context, u unit) (out []*made, err error) {
	enc, err := blobfmt.NewEncoder(blobfmt.EncoderOptions{FilterPercent: -1})
	if err != nil {
		return nil, err
	}
	e := encoder{store: s, blobs: enc}
	seen := make(azurelogs.Seen)
	for i := range u {
		b := &u[i]
		for chunk, err := range azurelogs.Read(ctx, b, seen) {
			switch {
			case ctx.Err() != nil:
				return nil, ctx.Err()
			case errors.Is(err, storage.ErrUnauthorized):
				return nil, err
			}
			s.note(b, chunk, err)
			if err != nil {
				continue
			}
			if err := e.chunk(b, chunk); err != nil {
				return nil, err
			}
		}
		if b.Kind != formats.Classic {
			clear(seen)
		}
	}
	return e.made, nil
}

// note keeps the problems of a read: the malformed lines of a chunk, or its error.
func (s *Store) note(b *azurelogs.Blob, chunk *azurelogs.Chunk, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.problems.Fail(err)
		return
	}
	s.problems.Add(chunk.Malformed)
	if chunk.Unfinished > 0 {
		s.cut = unfinished{s.cut.blobs + 1, b.Path(), chunk.Unfinished}
	}
}

// An encoder makes blobs of chunks.
type encoder struct {
	store *Store
	blobs *blobfmt.Encoder
	lines []placed
	made  []*made
}

// placed is a line of a chunk with its index.
type placed struct {
	time     int64
	off, len uint32
	index    uint32
}

// chunk makes a blob for each hour of a chunk.
func (e *encoder) chunk(b *azurelogs.Blob, c *azurelogs.Chunk) error {
	e.lines = e.lines[:0]
	for i := range c.Lines {
		l := &c.Lines[i]
		e.lines = append(e.lines, placed{l.Time, l.Off, l.Len, c.Index(uint32(i))})
	}
	slices.SortFunc(e.lines, func(a, b placed) int { return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.index, b.index)) })
	for from := 0; from < len(e.lines); {
		hour := time.Unix(0, e.lines[from].time).UTC().Truncate(time.Hour)
		end := hour.Add(time.Hour - 1)
		e.blobs.Reset()
		n := from
		for ; n < len(e.lines) && !time.Unix(0, e.lines[n].time).After(end); n++ {
			l := &e.lines[n]
			if err := e.blobs.Add(c.Data[l.off:l.off+l.len], l.time, c.Origin, l.index); err != nil {
				return err
			}
		}
		e.store.came(b.Hour.Sub(hour), n-from)
		body, meta, err := e.blobs.Finish(batchOf(c.Origin, hour))
		if err != nil {
			return err
		}
		at, err := e.store.keep(body)
		if err != nil {
			return err
		}
		e.made = append(e.made, &made{hour: hour, order: c.Origin, source: b.Key, meta: meta, body: at})
		from = n
	}
	return nil
}

// keep keeps a copy of a blob.
func (s *Store) keep(body []byte) (spill.Extent, error) {
	s.keeping.Lock()
	defer s.keeping.Unlock()
	at, err := s.bodies.Put(body)
	if err != nil {
		return at, fmt.Errorf("put blobs aside: %w", err)
	}
	return at, nil
}

// batchOf is the identity of the blob of a chunk and hour.
func batchOf(origin record.Origin, hour time.Time) (id blobfmt.BatchID) {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(origin[:], uint64(hour.Unix())))
	copy(id[:], sum[:])
	return id
}

// came notes that records of an hour came so much later, by the hours alone.
func (s *Store) came(after time.Duration, records int) {
	if after <= roundUp(s.o.Late) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late.records += records
	s.late.most = max(s.late.most, after)
}
