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
// docs/FORMAT.md has the bytes of both messages, and their versions.
//
// Both ends treat their input from the network as hostile. They check every line before
// they pass it on, and bound their memory for any input.
package live
