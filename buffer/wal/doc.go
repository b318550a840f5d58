// Package wal is a segmented, checksummed, append-only log of opaque payloads with
// group commit. [Open] it, [Log.Append] records, and [Log.Sync] the position of the
// record that must be durable. After a restart [Log.Replay] yields the records. The
// caller calls [Log.RemoveFront] when it needs nothing of the oldest segment any
// more.
//
// # Files
//
// A log is one directory. One process holds it at a time, by flock on the file
// "lock"; so it works on local file systems only, not on NFS:
//
//	00000007.seg              a segment; the greatest number is the active one
//	00000006.torn             the torn end of segment 6 (1 MiB at most)
//	quarantine/00000003.seg   segment 3 as it was when damage was first detected
//	00000006.tmp              a copy in the making; removed on Open
//	newest                    notes the newest segment; newest.tmp in the making
//	ballast                   occupies room on the disk; removed when that is full
//	lock                      held while the log is open; the holder's process id
//
// Numbers only grow, so a position is never used twice. Files in quarantine are
// for the operator. They are other names of the segments' files and take no space
// until the segments themselves are removed.
//
// # Full disk
//
// On a full disk Append fails with ENOSPC. Segments can be removed only when the
// caller has noted that their records were handled, and such a note needs room too.
// The ballast keeps that room: a file of random bytes, which no file system stores
// as holes. [Log.AppendReserved] removes it when the disk is full. So does Open,
// which needs room for a copy of the last segment. Open and [Log.Check] make a new
// one when the disk has room, at most as large as the room that is left then. A start
// does not know whether an earlier process gave up a larger one.
//
// # Held records
//
// One write of many short records costs far less than one for each. So while the disk
// has plenty of room, Append keeps them in memory, and Sync writes them before its fsync.
// If the disk is full by then, the ballast is removed. If they still cannot be written,
// the log fails for good: their callers have been told their positions.
//
// # Bytes
//
// docs/reference/format-shipped.md, Log, has the bytes of segments, records and the file "newest". The
// header of a record can be checked alone. So damage to a payload loses that record
// only, and behind a damaged header every eighth byte is tried as the next record. The
// id and the offset in the checksums reject the bytes of another file, and of another
// place in this one.
//
// A segment names the one before it, so the loss of one between two others is
// noticed. The file "newest" names the last one. The log replaces it by renaming
// after it has made a segment. If that fails on a full disk, the number lags and
// Check tries again. A log opens without the file, and with a damaged one.
//
// # Damage
//
// A process kill or a power cut leaves a torn tail at the end of the last segment.
// Invalid bytes there count as torn only where they were provably not all written:
// the file ends within a record (before its header is complete, or before the end
// that a valid header gives), or one of their sectors of 512 bytes is all zeros.
// Where the header of a record is valid, the rule applies to its payload alone. Open
// cuts the file before the first torn record, and keeps a copy.
//
// All other invalid bytes are damage, at the end too. They stay, and the segment is
// quarantined. Replay yields a [*CorruptError] and continues behind it, at each start
// until the segment is removed. Replay also reports segments missing between two
// others or at the end, until the next segment is removed; numbering continues above
// them. Three losses cannot be detected: rot that left a sector of zeros in the last
// record looks like a torn tail; so does a last segment that was cut short behind
// its header; and segments missing at the front look removed by RemoveFront.
//
// After a kill the page cache may hold bytes that were never synced. After a failed
// fsync the kernel may call pages clean that never reached the disk, so a second
// fsync proves nothing. Therefore Open copies the last segment to a new file and
// makes that durable before it returns any of it, and a failed fsync in a running
// process is final (see [Log.Failed]).
//
// If the directory or the active segment was renamed or replaced, synced records
// would be durable, but no start would find them. So Sync checks both names after
// its fsync, before it reports anything durable. A difference is final too.
package wal
