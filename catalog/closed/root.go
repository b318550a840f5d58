package closed

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/catalog/horizon"
)

// RootPrefix begins the keys of all roots: _closed/20261122.000001
const RootPrefix = "_closed/"

// FirstRoot ends the key of the first root of a day.
const FirstRoot = ".000001"

// RootName is the key of the root of a day with a number from 1.
func RootName(day horizon.Day, number int) string {
	return fmt.Sprintf("%s%s.%0*d", RootPrefix, day.Start().Format("20060102"), digits, number)
}

// IsRoot reports whether a key is that of a root.
func IsRoot(key string) bool {
	at, number, _ := strings.Cut(strings.TrimPrefix(key, RootPrefix), ".")
	day, err := time.Parse("20060102", at)
	n, _ := strconv.Atoi(number)
	return err == nil && n > 0 && key == RootName(horizon.DayOf(day), n)
}

// NextRoot is the key behind that of a root, also if its day has yet to come.
func NextRoot(last string, today horizon.Day) string {
	if next := RootName(today, 1); next > last {
		return next
	}
	day, number, _ := strings.Cut(last, ".")
	n, _ := strconv.Atoi(number)
	return fmt.Sprintf("%s.%0*d", day, digits, n+1)
}

// A Root says what a run has closed, and is one object of a chain over all of the store. It names no
// service. With a signature it proves to somebody who has the key that nobody has changed the parts
// since, or taken one away; without one it proves that to nobody who has to expect that the store
// was changed on purpose.
type Root struct {
	Form       int       `json:"form"`
	Name       string    `json:"name"`
	BeforeName string    `json:"beforename,omitempty"`
	Before     Hash      `json:"before"` // of the root before
	Made       time.Time `json:"made"`
	// Through is the last day that is closed with all days before it, since the first day of the first run.
	Through string `json:"through"`
	// Days have the parts that were added since the root before.
	Days Parts `json:"days,omitempty"`
	// Dropped sums up all horizons and dropped days, by lines of service and day.
	Dropped Sum `json:"dropped"`
	// Sum is the hash of the object that was parsed.
	Sum       Hash `json:"-"`
	signed    []byte
	signature []byte
}

// A Sum stands for a set of texts, without telling them.
type Sum struct {
	Count int  `json:"count"`
	Hash  Hash `json:"hash"`
}

// Parts are the hashes of the highest parts, by their day and by the [Alias] of their service.
type Parts map[string]map[string]Hash

// Set sets the hash of a part.
func (p Parts) Set(day horizon.Day, service string, hash Hash) {
	if p[day.String()] == nil {
		p[day.String()] = map[string]Hash{}
	}
	p[day.String()][Alias(service)] = hash
}

// Get returns the hash of a part; zero: there is none.
func (p Parts) Get(day horizon.Day, service string) Hash { return p[day.String()][Alias(service)] }

// Add adds the parts of the next root.
func (p Parts) Add(next Parts) {
	for day, parts := range next {
		if p[day] == nil {
			p[day] = map[string]Hash{}
		}
		maps.Copy(p[day], parts)
	}
}

// Alias stands for the name of a service, which a root does not tell: 64 bits of its SHA-256.
func Alias(service string) string {
	h := HashOf([]byte(service))
	return hex.EncodeToString(h[:8])
}

// SumOf is the sum of texts: the SHA-256 of them in order, each with a line feed behind it.
func SumOf(texts []string) Sum {
	if len(texts) == 0 {
		return Sum{}
	}
	slices.Sort(texts)
	return Sum{len(texts), HashOf([]byte(strings.Join(texts, "\n") + "\n"))}
}

// Encode returns the object of a root: a line of JSON, and one with its signature if there is a key.
func (r *Root) Encode(key ed25519.PrivateKey) ([]byte, error) {
	r.Form = form
	body, err := json.Marshal(r)
	body = append(body, '\n')
	if key != nil {
		sig := ed25519.Sign(key, body)
		body = append(base64.StdEncoding.AppendEncode(body, sig), '\n')
	}
	return body, err
}

// ParseRoot is the inverse of [Root.Encode]. The error wraps [ErrUnread]; the root has its name and
// its hash alone then.
func ParseRoot(key string, body []byte) (*Root, error) {
	r := &Root{Sum: HashOf(body)}
	line, rest, whole := bytes.Cut(body, []byte("\n"))
	if err := json.Unmarshal(line, r); err != nil || !whole || r.Form != form || r.Name != key {
		return &Root{Name: key, Sum: r.Sum}, fmt.Errorf("%s: %w (form %d, name %q)", key, ErrUnread, r.Form, r.Name)
	}
	r.signed = body[:len(line)+1]
	if sig, err := base64.StdEncoding.DecodeString(string(bytes.TrimSuffix(rest, []byte("\n")))); err == nil {
		r.signature = sig // and nothing behind it
	}
	return r, nil
}

// Meta is the metadata of a root: the first and the last day of its parts, by which readers choose.
func (r *Root) Meta() map[string]string {
	days := slices.Sorted(maps.Keys(r.Days))
	if len(days) == 0 {
		days = []string{"-"}
	}
	return map[string]string{"first": days[0], "last": days[len(days)-1]}
}

// Verify checks the signature.
func (r *Root) Verify(key ed25519.PublicKey) error {
	switch {
	case len(r.signature) == 0:
		return errors.New("it is not signed")
	case !ed25519.Verify(key, r.signed, r.signature):
		return errors.New("its signature is not by this key")
	}
	return nil
}
