// Package live carries acknowledged records that are in no blob yet from the logs of
// ingesters to readers. It has both ends of GET /live/{service} of the ingest listener.
//
// A reader makes a [Client] with the URL of any one ingester and calls [Client.Ask].
// That ingester answers for all. It takes a snapshot of its own log, asks its peers for
// theirs, and merges the answers.
//
//	Client --GET /live/web--> Handler -+-> Log: the own snapshot
//	                                   +-> GET /live/web?peers=no of each other ingester
//
// The header of an answer is sent when every snapshot has been taken or has failed. So
// a record that was acknowledged before the question is in the answer, or in a blob
// that a listing begun after the header shows. A record in both has the same identity
// and the same bytes. The reader that merges both shows it once.
//
// docs/reference/format-shipped.md has the bytes of both messages, and their versions.
//
// Both ends treat their input from the network as hostile. They check every line before
// they pass it on, and bound their memory for any input.
//
// # Hangs
//
// A question that waits for 200 ms has the ingester pinged, by a HEAD, which any version refuses at
// once. Without any sign of life for 2 s the ingester hangs: all questions that wait for it end. A
// process remembers that ([Hangs]), and later questions wait 200 ms for the answer to a ping. An
// ingester that answers pings is slow, and has all the time of a question.
//
// # Snapshots
//
// An answer is a snapshot: the positions of all runs without a commit, taken under the buffer's
// lock. The log behind them is kept until the answer is sent, and nothing is sent before it is
// fsynced. An answer gives runs exactly the identities that their blob will give them, also if a
// key was used twice. A snapshot takes almost no memory: its lines are read from the log and
// sorted in stretches of time, by the code that sorts a batch. So the newest n of a backlog of
// gigabytes are found without reading most of it. The lines in memory are bounded for all
// concurrent readers together: 24 readers of half a million records with overlapping runs take
// 0.27 GB, one takes 0.05.
//
// An answer names the ingesters that it has records of, with the start of each, and the store. A
// reader does not rely on it: it compares them with the rows of the table.
//
// A question names at most 4 KiB of services. For more of them the reader asks by globs of their
// beginnings, and leaves out the records of others. Ingesters of all versions answer that.
//
// An ingester asks the others with its own token, and says which services its reader may read.
// So the secret of a reader goes to the one ingester that it asked.
package live
