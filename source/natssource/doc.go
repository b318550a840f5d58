// Package natssource ingests log records from a JetStream stream: each message on
// logs.<service>, or logs-partition.<number>.<service>, becomes one [record.Request], and
// is acknowledged when all its records are in blobs.
//
// [Open] connects and looks the stream up, [Source.Run] pulls until its context ends,
// [Source.Close] sends the remaining acknowledgements. In between the buffer reports the
// outcome of each message to the source: [Source.Stored], [Source.Dropped], and
// [Source.Found] for those that a start found in its log. It may do so before Run is
// called.
//
//	pull.go    pull -> message.go: a request -> Accepter
//	ledger.go  delivered, unsettled messages, by stream sequence
//	settle.go  acknowledgements, confirmed by the server; NAKs; signs of life
//	stream.go  is it the same stream, does it lose nothing, are the consumers right
//	partition.go  the partitions to take, each with a consumer; those that none takes
//
// Of an accepted message only the reply subject is kept. A pull is limited in bytes: a
// server closes the connection of a client if it has to send it more than 64 MiB at
// once. Messages on the way are then delivered only after the acknowledgement wait.
//
// The server keeps a message until it is acknowledged and delivers it again when that
// takes long. So nothing here is durable, and ending at any moment loses nothing. A
// message that is delivered twice is stored twice, with the same identity, and shown
// once. The package knows neither the log nor the stores.
package natssource
