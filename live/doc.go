// Package live carries the records that are acknowledged and in no blob yet from
// the logs of ingesters to who reads: GET /live/{service} of the ingest listener,
// from both ends.
//
// A reader makes a [Client] with the URL of any one ingester and calls
// [Client.Ask]. That ingester answers for all: it takes a snapshot of its own log,
// asks the others for theirs, and merges what comes.
//
//	Client --GET /live/web--> Handler -+-> Log: the own snapshot
//	                                   +-> GET /live/web?peers=no of each other ingester
//
// The header of an answer is sent when every snapshot has been taken, or could not
// be. So what was acknowledged before the question is either in the answer, or in a
// blob that a listing begun after the header shows. What is in both has the same
// identity and the same bytes, and is shown once by who merges them.
//
// # The answer
//
// Lines of text. First the records, in the order of time, origin and index, each
// with its identity and its canonical line; then what is missing; then the end:
//
//	<32 hex digits of origin> <index> <canonical line>
//	missing <ingester> <host or -> <reason>
//	damaged <ingester> <host or -> <reason>
//	end <records> <ingesters asked> <ingesters that answered>
//
// The ingesters that are counted are the others that had to be asked. In place of
// the end there may be `error <text>`: the log of the ingester that was asked is
// damaged, and the lines before are the rest. An answer with neither was cut off.
// The header Blobtail-Ingester has the id of who answers, Blobtail-Positions where
// each snapshot ended (see [Positions]), and Blobtail-Behind the ids of those that
// do not remember all that a follower asked for.
//
// # Following
//
// A follower asks with [Query.Now] first, which gives nothing but positions, and
// then again and again with those of the answer before. A poll gives what was
// appended since, whether it is in a blob by now or not.
//
// # Versions
//
// The header Blobtail-Live of a question has the greatest version that the asker
// knows, that of an answer the version that it is in. An asker does not read an
// answer of a version that it does not know, and says so by the ingester's id. An
// ingester answers a newer asker in its own version, which that one knows too.
//
// Both ends take what comes over the network for hostile: every line is checked
// before it is passed on, and memory is bounded whatever is sent.
package live
