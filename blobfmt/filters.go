package blobfmt

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"blobtail/blobfmt/filter"
)

// The default of [EncoderOptions.FilterPercent].
const (
	wordsPercent = 3
	idsPercent   = 8
)

// IDs is the place of a blob's ids, in buckets of equal length. The zero value says that
// there are none, or that they are of a version that this package does not know.
type IDs struct {
	Offset, Length int64
	Buckets        int
}

// Bucket returns the part of the blob that has a key.
func (ids IDs) Bucket(key uint32) (off, n int64) {
	n = ids.Length / int64(ids.Buckets)
	return ids.Offset + n*int64(filter.BucketOf(key, ids.Buckets)), n
}

// String is the form in the metadata; "" if there are none.
func (ids IDs) String() string {
	if ids.Buckets == 0 {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d.%d", filter.Version, ids.Offset, ids.Length, ids.Buckets)
}

// parseIDs is the inverse of String. Any other value counts as none, because a reader can do
// without.
func parseIDs(text string) IDs {
	parts := strings.Split(text, ".")
	if len(parts) != 4 {
		return IDs{}
	}
	var n [4]int64
	for i, p := range parts {
		n[i], _ = strconv.ParseInt(p, 10, 64)
	}
	ids := IDs{Offset: n[1], Length: n[2], Buckets: int(n[3])}
	const most = 1 << 42 // no blob is larger
	if ids.String() != text || n[3] < 1 || n[3] > n[2] || n[2]%n[3] != 0 || n[2]/n[3] > filter.MaxBucket || n[2] > most || n[1] < 1 || n[1] > most {
		return IDs{}
	}
	return ids
}

// A Filters section lists the filters of a blob.
//
//	uvarint  version of the rules
//	uvarint  buckets of ids; 0: none
//	uvarint  1 if the list of words follows; 0: there is none
type Filters struct {
	Words   *filter.Words // nil: none
	Buckets int           // of ids; 0: none
}

// appendIDs appends the section of the ids, if it is small enough.
func (e *Encoder) appendIDs(blocks int) (entry, int) {
	start := len(e.body)
	var buckets int
	e.body, buckets = e.filters.AppendIDs(e.body, blocks*e.percent.ids/100)
	if buckets == 0 {
		return entry{}, 0
	}
	n := len(e.body) - start
	return entry{ID: sectionIDs, Codec: codecRaw, Stored: uint32(n), Raw: uint32(n), CRC: checksum(0, e.body[start:])}, buckets
}

// appendFilters appends the section of the filters, without words if they are too large.
func (e *Encoder) appendFilters(blocks, buckets int) entry {
	head := binary.AppendUvarint(e.scratch[:0], filter.Version)
	head = binary.AppendUvarint(head, uint64(buckets))
	start := len(e.body)
	if section, ok := e.filters.AppendWords(append(head, 1)); ok && len(section) <= maxRaw {
		s := e.appendSection(sectionFilters, section)
		e.scratch = section[:0]
		if int(s.Stored)*100 <= blocks*e.percent.words {
			return s
		}
		e.body = e.body[:start]
	}
	return e.appendSection(sectionFilters, append(head, 0))
}

// HasFilters reports whether the index has filters of a version that this package knows.
func (x *Index) HasFilters() bool { return x.filters.ID == sectionFilters }

// Filters reads the words of the blob. Each call parses them again. It returns nil if there
// are none of a version that this package knows.
func (x *Index) Filters() (f *Filters, err error) {
	if x.filters.ID != sectionFilters {
		return nil, nil
	}
	err = x.parse(x.filters, "filters: ", func(r *sectionReader) { f = parseFilters(r, len(x.Blocks)) })
	return f, err
}

func parseFilters(r *sectionReader, blocks int) *Filters {
	if version := r.upTo(1 << 32); r.err != nil || version != filter.Version {
		r.drop()
		return nil
	}
	f := &Filters{Buckets: int(r.upTo(1 << 31))}
	if r.upTo(1) == 0 {
		return f
	}
	words, err := filter.ParseWords(r.rest(), blocks)
	if err != nil {
		r.fail(err.Error())
		return nil
	}
	r.drop()
	f.Words = words
	return f
}

// IDs is the place of the ids, as the metadata have it.
func (x *Index) IDs() IDs {
	f, err := x.Filters()
	if err != nil || f == nil || f.Buckets == 0 || x.ids.ID != sectionIDs {
		return IDs{}
	}
	return IDs{Offset: x.ids.offset, Length: int64(x.ids.Stored), Buckets: f.Buckets}
}

// verifyFilters compares the filters with the lines, and the metadata with both.
func (v *verifier) verifyFilters(body []byte, x *Index, m Meta) {
	f, err := x.Filters()
	if err != nil {
		v.add(err)
		return
	}
	if ids := x.IDs(); ids != m.IDs {
		v.addf("metadata say that ids are at %q, the index says %q", m.IDs, ids)
		return
	}
	if f == nil || v.damaged {
		return
	}
	var ids []byte
	if f.Buckets > 0 {
		ids = body[m.IDs.Offset:][:m.IDs.Length]
		if checksum(0, ids) != x.ids.CRC {
			v.add(x.corrupt(m.IDs.Offset, m.IDs.Length, "index: the checksum of the ids is wrong"))
			return
		}
	}
	if err := v.filters.Check(f.Words, ids, f.Buckets); err != nil {
		v.addf("the filters do not describe the lines: %v", err)
	}
}
