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
// # The answer
//
// An answer is lines of text. The records come first, in the order of time, origin and
// index, each with its identity and its canonical line. Then come the missing ingesters,
// and then the end:
//
//	<32 hex digits of origin> <index> <canonical line>
//	missing <ingester> <host or -> <reason>
//	damaged <ingester> <host or -> <reason>
//	end <records> <ingesters asked> <ingesters that answered>
//
// The counted ingesters are the peers that had to be asked. The end may be replaced by
// `error <text>`: the log of the asked ingester is damaged, and the lines before are
// the rest of it. An answer with neither was cut off. The header Blobtail-Ingester has
// the id of the ingester that answers. Blobtail-Positions has the end of each snapshot
// (see [Positions]). Blobtail-Behind has the ids of the ingesters that do not remember
// all records that a follower asked for.
//
// # Following
//
// A follower first asks with [Query.Now], which returns positions only. Then it polls,
// each time with the positions of the last answer. A poll returns the records that were
// appended since, also those that are in a blob by now.
//
// # Versions
//
// The header Blobtail-Live of a question has the greatest version that the caller knows.
// That of an answer has the version of the answer. A caller does not read an answer of an
// unknown version, and reports it with the ingester's id. An ingester answers a newer
// caller in its own version, which that caller knows too.
//
// Both ends treat their input from the network as hostile. They check every line before
// they pass it on, and bound their memory for any input.
package live
