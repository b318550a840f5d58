// Package wal is a segmented, checksummed, append-only log of opaque payloads
// with group commit. [Open] it, [Log.Append] records, [Log.Sync] the position of
// the one that must be durable; after a restart [Log.Replay] yields what is
// there, and [Log.RemoveFront] lets the oldest segment go once nothing in it is
// needed. The package knows nothing of what the payloads mean.
//
// # Files
//
// A log is one directory, which one process holds at a time (flock on the file
// "lock"; local file systems only, not NFS):
//
//	00000007.seg              a segment; the greatest number is the active one
//	00000006.torn             what was cut off the end of segment 6 (1 MiB at most)
//	quarantine/00000003.seg   segment 3 as it was when damage was first met in it
//	00000006.tmp              a copy in the making; removed on Open
//	newest                    notes the newest segment; newest.tmp in the making
//	ballast                   takes up room on the disk; given up when that is full
//	suspects                  records that ended a process; suspects.tmp in the making
//	lock                      held while the log is open; the holder's process id
//
// Numbers only grow, so a position is never used twice. Files in quarantine are
// for the operator to look at and delete; they are other names of the segments'
// files and take no space until the segments themselves are removed.
//
// # Full disk
//
// On a full disk Append fails with ENOSPC. But segments can go only when it is
// noted that their records were handled, and that takes room: so some is kept by
// a file, the ballast, which [Log.Check] makes. [Log.AppendReserved] empties it
// when the disk is full, and so does Open, which needs room for a copy of the last
// segment. Until the disk has room again the rest of what the ballast left is for
// AppendReserved alone; the file stays, with 8 bytes that are its former length,
// to tell the next process so. The ballast holds random bytes, so that no file
// system makes holes of them, and nothing of it is ever read.
//
// # Suspects
//
// Who handles records and panics over one calls [Log.Suspect] before the process
// ends; the next process finds in [Record.Suspected] how often that happened,
// and can pass the record over before all starts end there ([Log.Quarantine]
// keeps its segment). The file has 16 bytes of header (magic "blobsus\n", version
// 1 in 4 bytes, number of entries in 4), 16 bytes for each entry (position, how
// many processes, 8 bytes each) and a checksum of it all. It is replaced by
// renaming. One that does not check is as good as none.
//
// # Newest
//
// A segment names the one before it, so one that lacks between two others is
// noticed; the last one is named by the file "newest": magic "blobnew\n", version 1
// in 4 bytes, the number of a segment that was made whole in 4, checksum of these
// 16 bytes. It is replaced by renaming after each segment that is made. Where that
// fails, on a full disk, the number lags and Check tries again. A log without the
// file, or with one that does not check, is opened all the same.
//
// # Segment
//
// All numbers are little endian, all checksums CRC-32C (Castagnoli).
//
// A segment begins with 128 bytes of header: the same 64 bytes twice, so that a
// flipped bit does not lose the id that every checksum in the file covers:
//
//	 0  8  magic "blobwal\n"
//	 8  4  version, 1
//	12  4  number of the segment
//	16 16  random id
//	32  8  time of creation, nanoseconds since 1970
//	40  4  number of the segment before it, 0 for none
//	44  4  number of the newest segment that was missing when this one was made, 0
//	       for none
//	48 12  zero
//	60  4  checksum of bytes 0 to 59
//
// Records follow, each at a multiple of 8 bytes:
//
//	 0  1  type, never 0
//	 1  3  zero
//	 4  4  length of the payload
//	 8  4  checksum of payload, segment id, offset of the record (8 bytes), type
//	12  4  checksum of segment id, offset of the record (8 bytes), bytes 0 to 11
//	16     payload, then zeros up to the next multiple of 8 (left out at the
//	       file's end)
//
// A record's header can be told valid alone. So damage to a payload loses that
// record only, and behind a damaged header the next record is found by trying
// every eighth byte. The id and the offset in the checksums keep what belongs to
// another file, or to another place in this one, from being taken for a record.
//
// # Damage
//
// A process kill or a power cut leaves a torn tail at the end of the last segment.
// Bytes there that are no valid records are taken for one only where it shows that
// they were never all written: the file ends within a record (before its header is
// whole, or a valid header tells of a payload that reaches beyond the end), or a
// sector of 512 bytes, as far as it belongs to them, is all zeros. Where the header
// of a record is valid, its payload alone is looked at. Open cuts the torn tail off,
// from the first record on that is torn, and keeps a copy.
//
// Whatever else does not check is damage, at the end too: it stays where it is, the
// segment is quarantined, Replay yields a [*CorruptError] and goes on behind it, at
// each start for as long as the segment is there. Segments that lack between
// two others, or at the end, are told of too, for as long as the one behind them is
// there; numbering goes on above them. Rot that left a whole sector of zeros in the last record
// cannot be told from a torn tail, nor can a last segment that was cut short, but
// for one without a whole header. Of a segment that lacks at the front nobody knows
// whether it was removed by RemoveFront.
//
// What was written but never synced may be in the page cache after a kill, and
// after a failed fsync the kernel may call clean what never reached the disk, so
// that syncing again proves nothing. Therefore Open copies the last segment to a
// new file and makes that durable before anything of it is read by anyone; and a
// failed fsync in a running process is final (see [Log.Failed]).
//
// Where the directory or the active segment no longer is what its name stands for,
// what is synced would be durable and yet no start would find it. So Sync looks at
// both after its fsync, and before it says that anything is durable; a difference
// is final too.
package wal
