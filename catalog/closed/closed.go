// Package closed keeps the account of days that are over: which blobs a store should have.
//
// A [Part] is the account of a service and a day, an object among the blobs of that day:
// web/2026/11/20/_closed.000001. So the listing that a read makes anyhow brings it. Parts are made
// by the conditional create, number after number, and never changed. The highest one counts. It
// names each blob that has to be there, says what was done since the part before, and has that
// part's hash. Its metadata have digests of the day, so that a reader who has listed all of the day
// need not fetch it. A [Root] has the hashes of the parts that a run has added, of all services.
//
// Package closing writes both. Package catalog compares a listing with a part. This package lists
// nothing and knows no horizons.
package closed

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog/horizon"
	"blobtail/record"
)

const (
	base      = "_closed." // begins the last element of a part's key, and sorts behind the hours
	digits    = 6
	dayLayout = "2006/01/02/"
	form      = 1

	// Soonest is how long a day is over at least before it can be closed. A day that is younger has
	// no account, so a reader does not look for one.
	Soonest = 24 * time.Hour
	// ContentType is that of a part and of a root.
	ContentType = "application/json"
)

// ErrUnread says that an object is no part or root that this version can read.
var ErrUnread = errors.New("this is no account that this version can read")

// A Hash is the SHA-256 of an object's bytes. Its text has hexadecimal digits. Zero: there is none.
type Hash [sha256.Size]byte

// HashOf is the hash of an object.
func HashOf(body []byte) Hash { return sha256.Sum256(body) }

// MarshalText implements encoding.TextMarshaler.
func (h Hash) MarshalText() ([]byte, error) {
	if h == (Hash{}) {
		return nil, nil
	}
	return hex.AppendEncode(nil, h[:]), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	b, err := hex.DecodeString(string(text))
	if err == nil && copy(h[:], b) != len(h) {
		err = ErrUnread
	}
	return err
}

// A Name is the place of a part.
type Name struct {
	Service string
	Day     horizon.Day
	Number  int // from 1
}

// String is the key of the part.
func (n Name) String() string {
	return fmt.Sprintf("%s%0*d", PartPrefix(n.Service, n.Day), digits, n.Number)
}

// PartPrefix begins the keys of the parts of a service and a day.
func PartPrefix(service string, day horizon.Day) string {
	return service + "/" + day.Start().Format(dayLayout) + base
}

// ParseName is the strict inverse of [Name.String]. ok is false for the key of anything else.
func ParseName(key string) (n Name, ok bool) {
	at := strings.LastIndexByte(key, '/') + 1
	if !strings.HasPrefix(key[at:], base) {
		return n, false
	}
	service, path, _ := strings.Cut(key[:at], "/")
	day, err := time.Parse(dayLayout, path)
	if err != nil || !record.ValidStored(service) {
		return n, false
	}
	number, _ := strconv.Atoi(key[at+len(base):])
	n = Name{service, horizon.DayOf(day), number}
	return n, number > 0 && n.String() == key
}

// A Blob is a blob of the account.
type Blob struct {
	Key     string          `json:"key"`
	Size    int64           `json:"size"`
	Batch   blobfmt.BatchID `json:"batch"`
	Records int64           `json:"records"`
	First   time.Time       `json:"first"` // times of its records
	Last    time.Time       `json:"last"`
	CRC     uint32          `json:"crc"`    // of its lines, as in its metadata
	SHA256  Hash            `json:"sha256"` // of its bytes; zero: an earlier version stored it
}

// BlobOf is the account of a blob.
func BlobOf(key string, size int64, m *blobfmt.Meta) Blob {
	return Blob{key, size, m.Batch, m.Records, time.Unix(0, m.First).UTC(), time.Unix(0, m.Last).UTC(), m.CRC, m.SHA256}
}

// Is reports whether another account of a blob is of the same one, by all that both have of it.
func (b Blob) Is(other Blob) bool {
	if b.SHA256 == (Hash{}) || other.SHA256 == (Hash{}) {
		b.SHA256 = other.SHA256
	}
	return b == other
}

// The kinds of an [Event].
const (
	Late      = "late"      // a blob that came after the part before
	Compacted = "compacted" // a blob that replaces others of the part before
	Erased    = "erased"    // a blob that replaces one of the part before, without some of its records
	Deleted   = "deleted"   // a replaced blob that is gone
	Dropped   = "dropped"   // the whole day
	Lost      = "lost"      // a number that lacks among late blobs
)

// An Event is what was done since the part before.
type Event struct {
	Kind string `json:"kind"`
	Key  string `json:"key,omitempty"`
	Gone string `json:"gone,omitempty"` // see [blobfmt.Meta]
}

// A Loss is known: the day was closed without the blob, or an operator has accepted that it is gone.
type Loss struct {
	Key     string `json:"key"`
	Records int64  `json:"records,omitempty"` // 0: nobody knows
}

// A Part is the account of a service and a day.
type Part struct {
	Form   int       `json:"form"`
	Name   string    `json:"name"`
	Before Hash      `json:"before"` // of the part before, zero for the first
	Made   time.Time `json:"made"`
	// Count is the number of Blobs and Replaced. [Part.Encode] sets it.
	Count  int     `json:"count"`
	Events []Event `json:"events,omitempty"`
	Lost   []Loss  `json:"lost,omitempty"`
	// Blobs have to be there. Both lists are in the order of their keys, and have each key once.
	Blobs []Blob `json:"-"`
	// Replaced are blobs that one of Blobs replaces, and that were not deleted yet. They may be there.
	Replaced []Blob `json:"-"`
	// Sum is the hash of the object that was parsed.
	Sum Hash `json:"-"`
}

// Records counts the records of the blobs that have to be there.
func (p *Part) Records() (n int64) {
	for i := range p.Blobs {
		n += p.Blobs[i].Records
	}
	return n
}

// Sort puts the blobs into the order of their keys.
func (p *Part) Sort() {
	for _, list := range [][]Blob{p.Blobs, p.Replaced} {
		slices.SortFunc(list, func(a, b Blob) int { return cmp.Compare(a.Key, b.Key) })
	}
}

// A line of a part's object is one of its blobs.
type line struct {
	Blob
	Replaced bool `json:"replaced,omitempty"`
}

// Encode returns the object of a part, lines of JSON, and its metadata.
func (p *Part) Encode() (body []byte, meta map[string]string, err error) {
	p.Form, p.Count = form, len(p.Blobs)+len(p.Replaced)
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	err = enc.Encode(p)
	for _, b := range p.Blobs {
		err = errors.Join(err, enc.Encode(line{b, false}))
	}
	for _, b := range p.Replaced {
		err = errors.Join(err, enc.Encode(line{b, true}))
	}
	d := p.Digests()
	d.SHA256 = HashOf(out.Bytes())
	return out.Bytes(), d.meta(), err
}

// Parse is the inverse of [Part.Encode]. key is that of the object. The error wraps [ErrUnread].
func Parse(key string, body []byte) (*Part, error) {
	p := &Part{Sum: HashOf(body)}
	head, rest, _ := bytes.Cut(body, []byte("\n"))
	if err := json.Unmarshal(head, p); err != nil || p.Form != form || p.Name != key {
		return nil, fmt.Errorf("%s: %w (form %d, name %q)", key, ErrUnread, p.Form, p.Name)
	}
	at, _ := ParseName(key)
	for text := range bytes.Lines(rest) {
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, fmt.Errorf("%s: %w: %w", p.Name, ErrUnread, err)
		}
		list := &p.Blobs
		if l.Replaced {
			list = &p.Replaced
		}
		name, err := blobfmt.ParseName(l.Key)
		n := len(*list)
		if err != nil || name.Service != at.Service || horizon.DayOf(name.Period) != at.Day || n > 0 && l.Key <= (*list)[n-1].Key {
			return nil, fmt.Errorf("%s: %w: %q is no blob of the day, or not in its place", p.Name, ErrUnread, l.Key)
		}
		*list = append(*list, l.Blob)
	}
	if n := len(p.Blobs) + len(p.Replaced); n != p.Count {
		return nil, fmt.Errorf("%s: %w: it has %d blobs of %d", key, ErrUnread, n, p.Count)
	}
	return p, nil
}
