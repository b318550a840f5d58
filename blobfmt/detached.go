package blobfmt

import (
	"unsafe"

	"blobtail/record"
)

// Detached returns a copy of the index for a cache. It holds no bytes of the blob and reads
// nothing. It keeps dict, the result of [Index.Dict], unless that is nil. The copy shares the
// blocks, so no caller may change them.
func (x *Index) Detached(dict []record.Origin) *Index {
	d := *x
	d.read, d.decoder, d.tail, d.tailAt = nil, nil, nil, d.size
	if dict != nil {
		d.dict = dict
	}
	return &d
}

// Attached returns a copy of a detached index, for a blob of the given size. The copy uses d
// and read for the sections that it lacks. It returns nil if the index is of a blob of
// another size.
func (x *Index) Attached(size int64, d *Decoder, read ReadFunc) *Index {
	if x.size != size {
		return nil
	}
	a := *x
	a.read, a.decoder = read, d
	return &a
}

// HasDict reports whether a detached index has kept its origins. Then [Index.Dict] returns them at
// once.
func (x *Index) HasDict() bool { return x.dict != nil }

// Memory is about how many bytes of memory a detached index takes.
func (x *Index) Memory() int64 {
	n := int64(unsafe.Sizeof(*x)) + int64(len(x.key))
	n += int64(cap(x.Blocks)) * int64(unsafe.Sizeof(Block{}))
	for i := range x.Blocks {
		n += int64(cap(x.Blocks[i].Minutes)) * int64(unsafe.Sizeof(MinuteCount{}))
	}
	return n + int64(cap(x.Replaces))*int64(unsafe.Sizeof(BatchID{})) + int64(cap(x.dict))*int64(unsafe.Sizeof(record.Origin{}))
}
