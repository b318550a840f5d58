// Package blobfmt is the stored form of logs: the names of blobs, their metadata and
// their contents. docs/reference/format.md is its byte-exact specification.
//
// A blob holds canonical lines of one service and one period. They are sorted by (time,
// origin, index) and cut into blocks of about 512 KiB. Each block is one zstd frame of its
// own. Behind the last one is a zstd skippable frame with the index. So `zstd -dc` prints
// exactly the lines. A reader that knows the index needs one small read of the end to
// choose the blocks to fetch.
//
// To write: [NewEncoder], then for each blob Reset, Add for every line and Finish. To
// read: [ReadIndex], then [Decoder.Block] for the needed blocks. If the index is damaged,
// [Decoder.Walk] finds the blocks without it. [Verify] checks a blob against its index,
// metadata and name.
//
// A stored blob is untrusted input. No bytes make a reader panic, and a length is checked
// before memory is allocated for it. The package does no I/O of its own; callers pass it
// bytes or a [ReadFunc].
package blobfmt
