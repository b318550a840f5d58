// Package blobfmt is the stored form of logs: the names of blobs, their
// metadata, and what is inside them. docs/FORMAT.md is its byte-exact
// specification.
//
// A blob holds canonical lines of one service and one period, sorted by (time,
// origin, index) and cut into blocks of about 1 MiB. Each block is one zstd
// frame of its own; behind the last one stands a zstd skippable frame with the
// index. So `zstd -dc` prints exactly the lines, and a reader that knows the
// index needs one small read of the end to see which blocks to fetch.
//
// To write: [NewEncoder], then for each blob Reset, Add for every line and
// Finish. To read: [ReadIndex], then [Decoder.Block] for the blocks that matter.
// Where the index is damaged, [Decoder.Walk] finds the blocks without it.
// [Verify] checks a blob against everything that is said about it.
//
// A stored blob is untrusted input: whatever its bytes are, reading it does not
// panic, and a length is checked before memory is taken for it. The package does
// no I/O of its own; callers hand it bytes or a [ReadFunc].
package blobfmt
