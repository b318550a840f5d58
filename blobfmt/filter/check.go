package filter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Check returns an error if a stored list of words or stored ids lack some of the added texts.
// words is nil, or buckets 0, if the blob has none.
func (b *Builder) Check(words *Words, ids []byte, buckets int) error {
	if err := b.checkWords(words); err != nil {
		return err
	}
	if buckets == 0 {
		return nil
	}
	if buckets < 0 || len(ids)%buckets != 0 {
		return errors.New("ids: buckets differ in length")
	}
	b.sortKeys()
	stride := len(ids) / buckets
	keys := b.keys
	for i := range buckets {
		bucket, err := parseBucket(ids[i*stride:][:stride])
		if err != nil || bucket.number != uint64(i) || bucket.buckets != uint64(buckets) || bucket.blocks != b.block {
			return fmt.Errorf("bucket %d: %w", i, ErrBucket)
		}
		values := make([]uint64, 0, bucket.count)
		if err := bucket.each(bucket.start(), 0, func(v uint64) bool { values = append(values, v); return true }); err != nil {
			return fmt.Errorf("bucket %d: %w", i, err)
		}
		for len(keys) > 0 && BucketOf(uint32(keys[0]>>32), buckets) == i {
			first := bucket.place(uint32(keys[0]>>32), buckets) * uint64(bucket.blocks+1)
			_, found := slices.BinarySearch(values, first+keys[0]&0xffffffff)
			_, everywhere := slices.BinarySearch(values, first+uint64(bucket.blocks))
			if !found && !everywhere {
				return fmt.Errorf("ids: an id of block %d is missing", keys[0]&0xffffffff)
			}
			keys = keys[1:]
		}
	}
	return nil
}

func (b *Builder) checkWords(words *Words) error {
	if words == nil {
		return nil
	}
	ranks := make(map[string]int)
	for word := range strings.Lines(string(words.list[1:])) {
		ranks[strings.TrimSuffix(word, "\n")] = len(ranks)
	}
	stride := (words.blocks + 7) / 8
	for _, p := range b.pairs {
		w := b.words[p.word]
		text := string(b.text[w.from:][:w.len])
		rank, listed := ranks[text]
		if !listed || words.sets[rank*stride+int(p.block)/8]>>(p.block%8)&1 == 0 {
			return fmt.Errorf("words: %q of block %d is missing", text, p.block)
		}
	}
	return nil
}
