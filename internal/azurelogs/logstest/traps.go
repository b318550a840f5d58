package logstest

// Trap is a difficulty of a line.
type Trap string

// The traps of both kinds of logs.
const (
	// NonASCII puts letters beyond ASCII into names and texts.
	NonASCII Trap = "non-ASCII"
	// Tie repeats the time of an earlier line.
	Tie Trap = "tie"
	// Signature leaves the sig= of a SAS unmasked.
	Signature Trap = "signature"
	// Design has a parameter with a name that only ends in "sig": nothing to mask.
	Design Trap = "design"
	// Duplicate is a line that the same blob has already. It is dropped.
	Duplicate Trap = "duplicate"
)

// The traps of [Classic].
const (
	// Semicolon puts semicolons into a field in quotes.
	Semicolon Trap = "semicolon"
	// Entity puts &quot; &lt; &gt; and &#39; into a field in quotes.
	Entity Trap = "entity"
	// NumericEntity puts entities such as &#233; and &#x2028; into a field in quotes.
	NumericEntity Trap = "numeric entity"
	// Twice has an entity that was escaped twice, and is decoded once: &amp;lt;.
	Twice Trap = "escaped twice"
	// AddressEntity puts &#39; into an address without quotes.
	AddressEntity Trap = "entity in an address"
	// Newline puts newlines into the agent, the referrer or the object key.
	Newline Trap = "newline"
	// Forged has a newline in the agent, and the beginning of another line behind it.
	Forged Trap = "forged line"
	// OldETag is ""0x8D..."".
	OldETag Trap = "old etag"
	// OddStatus is a status that is rare, or without the status of HTTP.
	OddStatus Trap = "odd status"
	// FarDuplicate is a line that an earlier blob of the hour has already. It is dropped.
	FarDuplicate Trap = "duplicate in another blob"
	// Batch has the request id of the line before, and another operation count.
	Batch Trap = "batch"
	// Early began in the hour before.
	Early Trap = "early"
)

// The traps of [Resource].
const (
	// Escapes has every escape of JSON in a text.
	Escapes Trap = "escapes"
	// EscapedKey has escapes in the names of members.
	EscapedKey Trap = "escaped key"
	// Spaces has white space between the tokens.
	Spaces Trap = "spaces"
	// Order has the time and the level behind all other members.
	Order Trap = "order"
	// CRLF ends the line in both characters.
	CRLF Trap = "crlf"
	// LevelWord has one of Azure's words as level.
	LevelWord Trap = "level as a word"
	// LevelNumber has a number from 1 to 5 as level.
	LevelNumber Trap = "level as a number"
	// StatusText has the status as text, or under another name.
	StatusText Trap = "status as text"
	// EncodedSignature has an unmasked signature in an address within an address.
	EncodedSignature Trap = "encoded signature"
	// Plain has no correlationId.
	Plain Trap = "no correlation id"
	// PlainRepeat repeats a line without correlationId. Both stay.
	PlainRepeat Trap = "repeat without correlation id"
	// FarRepeat repeats a line of another blob. Both stay.
	FarRepeat Trap = "repeat in another blob"
	// SameID has the correlationId of an earlier line, and other contents. Both stay.
	SameID Trap = "same correlation id"
	// Late has a time minutes to five hours before the hour of the blob.
	Late Trap = "late"
	// Untimed has no time, or one that cannot be read. It gets the hour of the blob.
	Untimed Trap = "no time"
	// Big is a line of many KiB.
	Big Trap = "big"
)

// usualShares has the number of lines in a thousand with each trap.
func usualShares() map[Trap]int {
	return map[Trap]int{
		NonASCII: 30, Tie: 3, Signature: 30, Design: 10, Duplicate: 10,

		Semicolon: 50, Entity: 50, NumericEntity: 20, Twice: 10, AddressEntity: 20, Newline: 30, Forged: 5,
		OldETag: 30, OddStatus: 100, FarDuplicate: 10, Batch: 50, Early: 10,

		Escapes: 50, EscapedKey: 10, Spaces: 50, Order: 30, CRLF: 20, LevelWord: 200, LevelNumber: 100,
		StatusText: 100, EncodedSignature: 10, Plain: 50, PlainRepeat: 5, FarRepeat: 5, SameID: 20, Late: 30, Untimed: 3, Big: 2,
	}
}
