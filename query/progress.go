package query

import "sync/atomic"

// Progress counts the blobs of reads while these run, for people who wait. The numbers
// of all blobs grow while a read finds more of them.
type Progress struct{ blobs, ofBlobs, bytes, ofBytes atomic.Int64 }

// Blobs are how many blobs are finished, and how many there are.
func (p *Progress) Blobs() (done, all int64) { return p.blobs.Load(), p.ofBlobs.Load() }

// Bytes are the stored bytes of the finished blobs, and of all.
func (p *Progress) Bytes() (done, all int64) { return p.bytes.Load(), p.ofBytes.Load() }

// expect adds blobs that are to be read; p may be nil.
func (p *Progress) expect(blobs int, bytes int64) {
	if p != nil {
		p.ofBlobs.Add(int64(blobs))
		p.ofBytes.Add(bytes)
	}
}

// finish counts a blob; p may be nil.
func (p *Progress) finish(bytes int64) {
	if p != nil {
		p.blobs.Add(1)
		p.bytes.Add(bytes)
	}
}
