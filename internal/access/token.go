package access

import (
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/internal/units"
	"blobtail/record"
	"blobtail/record/ack"
)

// maxSecrets is how many secrets a token may have: the old and the new one while clients
// change over.
const maxSecrets = 2

// A Role lets the holder of a token do more than the services say.
type Role string

const (
	// Peer is the role of ingesters, which answer readers for each other: it reads the
	// unflushed records of all services.
	Peer Role = "peer"
	// Operator is the role of programs that watch an ingester: it reads the metrics,
	// which name services.
	Operator Role = "operator"
)

// A Token has the rights of its holder. It is never changed: a changed file has new ones.
type Token struct {
	ID string
	// Read and Write are globs of services as [record.MatchService] takes them.
	Read, Write []string
	Role        Role
	Ack         ack.Level // the least one of its requests
	Expires     time.Time // zero: never
	Limits      Limits
	// Certificate has names of client certificates that need no secret: a URI or a DNS
	// name of the subject's alternative names, or the common name.
	Certificate []string

	hashes      [][sha256.Size]byte // of the secrets
	read, write patterns
	meter       *meter
}

// Limits bound a token at each ingester. Zero is no limit.
type Limits struct {
	// Bytes is how many bytes of decompressed bodies it may send in a second.
	Bytes units.Size
	// Requests is how many requests it may send in a second.
	Requests float64
	// Services is how many new services it may send in an hour. A service that it has
	// sent within a day is not new.
	Services int
}

// Secrets is how many secrets the token has, 0 to 2.
func (t *Token) Secrets() int { return len(t.hashes) }

// MayWrite reports whether the token may send records of a service.
func (t *Token) MayWrite(service string) bool { return t.write.match(service) }

// MayWriteAny reports whether the token may send records of any service.
func (t *Token) MayWriteAny() bool { return len(t.write) > 0 }

// MayRead reports whether the token may read records of a service.
func (t *Token) MayRead(service string) bool { return t.Role == Peer || t.read.match(service) }

// MayReadAll reports whether the holder may read all services but those of blobtail itself.
func (t *Token) MayReadAll() bool { return t.Role == Peer || slices.Contains(t.Read, "*") }

// MayReadAny reports whether the token may read records of any service.
func (t *Token) MayReadAny() bool { return t.Role == Peer || len(t.read) > 0 }

// valid returns a [DeniedError] if the token has expired.
func (t *Token) valid() error {
	if !t.Expires.IsZero() && !time.Now().Before(t.Expires) {
		return &DeniedError{ID: t.ID, Err: ErrExpired}
	}
	return nil
}

// A pattern is a glob. The common ones are compared without [record.MatchService].
type pattern struct {
	glob   string
	prefix string // of a glob that is a prefix and "*"
	kind   kind
}

type kind int

const (
	anyGlob kind = iota
	exact
	prefix
)

type patterns []pattern

func newPatterns(globs []string) patterns {
	list := make(patterns, len(globs))
	for i, glob := range globs {
		list[i] = pattern{glob: glob}
		head, star := strings.CutSuffix(glob, "*")
		switch special := strings.ContainsAny(head, `*?[\`); {
		case !special && star:
			list[i].kind, list[i].prefix = prefix, head
		case !special:
			list[i].kind = exact
		}
	}
	return list
}

// match reports whether a pattern matches as [record.MatchService] does.
func (p patterns) match(service string) bool {
	for i := range p {
		switch g := &p[i]; g.kind {
		case exact:
			if g.glob == service {
				return true
			}
		case prefix:
			system := strings.HasPrefix(service, "_")
			if strings.HasPrefix(service, g.prefix) && (!system || g.prefix != "") && !strings.Contains(service, "/") {
				return true
			}
		default:
			if record.MatchService(g.glob, service) {
				return true
			}
		}
	}
	return false
}

// validGlob reports whether a glob may match a service. It has no comma, because ingesters
// send each other lists of globs.
func validGlob(glob string) bool {
	const letters = `abcdefghijklmnopqrstuvwxyz0123456789._-*?[]^\`
	return record.ValidPattern(glob) && strings.Trim(glob, letters) == ""
}

// validID reports whether a text may be the id of a token. It has no "." and no ":", which
// end an id in a header.
func validID(id string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	return id != "" && len(id) <= 63 && strings.Trim(id, letters+"-_") == "" && strings.Trim(id[:1], letters) == ""
}

// String is the limits as the file has them, "" for none.
func (l Limits) String() string {
	var texts []string
	if l.Bytes > 0 {
		texts = append(texts, "bytes "+l.Bytes.String()+"/s")
	}
	if l.Requests > 0 {
		texts = append(texts, "requests "+strconv.FormatFloat(l.Requests, 'g', 6, 64)+"/s")
	}
	if l.Services > 0 {
		texts = append(texts, "services-per-hour "+strconv.Itoa(l.Services))
	}
	return strings.Join(texts, ", ")
}
