// Package natssource takes log records from a JetStream stream: each message on
// logs.<service> becomes one [record.Request], and is acknowledged when all its
// records are in blobs.
//
// [Open] connects and looks the stream up, [Source.Run] pulls until its context
// ends, [Source.Close] sends the acknowledgements that are left. In between the
// source is told by the buffer what became of each message: [Source.Stored],
// [Source.Dropped], and [Source.Found] for those that a start found in its log. It
// may be told before Run is called.
//
//	pull.go    pull -> message.go: a request -> Accepter
//	ledger.go  what was delivered and is not settled, by stream sequence
//	settle.go  acknowledgements, confirmed by the server; NAKs; signs of life
//	stream.go  is it the stream we think, does it lose nothing, is the consumer right
//
// Of a message that was accepted only its reply subject is kept. A pull is bounded
// by bytes: a server closes the connection of a client to which it has to send more
// than 64 MiB at once, and what was on the way is then delivered only after the
// acknowledgement wait.
//
// The server keeps a message until it is acknowledged and delivers it again when
// that takes long, so nothing here is durable and nothing is lost by ending at any
// moment. What is delivered twice is stored twice, with the same identity, and shown
// once. The package knows neither the log nor the stores.
package natssource
