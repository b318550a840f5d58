package formats

import (
	"bytes"
	"crypto/sha256"
	"regexp"
	"time"

	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/record/times"
)

// ID identifies an event: entries of one ID are copies. It is 80 bits of a hash: an hour may have
// millions, all in memory, and two different ones of a million are equal once in 10^12 hours.
type ID [10]byte

// A Translator makes canonical lines of entries. It keeps its memory from one entry to the
// next; only one goroutine may use it at a time.
type Translator struct {
	kind    Kind
	of      meaning.Defaults // with the service
	hour    time.Time        // of the blob
	parser  *meaning.Reader
	times   times.Reader
	names   []string
	fields  []field
	text    []byte // unescaped fields
	msg     []byte
	word    []byte
	scratch []byte
	line    []byte // before signatures are masked
	members []byte
	folded  *regexp.Regexp // finds properties that unfold makes an object
	ends    *regexp.Regexp // what stands behind a string in them
	id      ID
	hasID   bool
	key     []byte // hashed for an id
}

// NewTranslator returns a Translator of entries of a kind. service is the service of all
// lines, hour that of the blob, which entries of a resource log without a time get.
func NewTranslator(kind Kind, service string, hour time.Time) *Translator {
	return &Translator{
		kind: kind, of: meaning.Defaults{Service: service, ForeignTs: true}, hour: hour,
		times: times.Reader{MonthFirst: true}, parser: meaning.NewReader(), names: classicFields(),
	}
}

// Append appends the canonical line of an entry to dst, without the signatures of shared
// access, and returns it with its time. The error is a [*MalformedError], and dst is
// unchanged then.
func (t *Translator) Append(dst, entry []byte) (out []byte, stamp record.Stamp, err error) {
	t.hasID = false
	if len(entry) > record.MaxRecord {
		return dst, stamp, &MalformedError{"longer than 1 MiB"}
	}
	line := t.line[:0]
	if t.kind == Classic {
		line, stamp, err = t.classic(line, entry)
	} else {
		line, stamp, err = t.resource(line, entry, false)
	}
	if err != nil {
		return dst, stamp, err
	}
	t.line = line
	return appendMasked(dst, line), stamp, nil
}

// ID returns the identity of the event of the last entry. ok is false if the entry names
// none: then an equal entry elsewhere may be another event.
func (t *Translator) ID() (id ID, ok bool) { return t.id, t.hasID }

// setID sets the identity of a request, or of an operation of a batch. Storage Analytics
// may log one twice (learn.microsoft.com, "Storage Analytics logging"). Ids that were
// overwritten to hide them are all alike, so there only an equal entry is a copy.
func (t *Translator) setID(entry, request, operation []byte) {
	t.key = append(append(append(t.key[:0], request...), 0), operation...)
	if isOverwritten(request) {
		t.key = append(t.key, entry...)
	}
	t.id, t.hasID = idOf(t.key), len(request) > 0
}

// isOverwritten reports whether a request id is none that Azure drew, such as REDACTED, or
// xxxxxxxx-xxxx in Azure's own samples. Those have a digit that is no zero.
func isOverwritten(request []byte) bool { return !bytes.ContainsAny(request, "123456789") }

func idOf(text []byte) ID {
	sum := sha256.Sum256(text)
	return ID(sum[:len(ID{})])
}
