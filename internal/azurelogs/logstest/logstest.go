// Package logstest makes hours of Azure's own logs with the records that a reader must
// find in them: [Classic] the logs of Storage Analytics, [Resource] the resource logs of
// Azure Monitor, and [FlowLog] the older form of those.
//
//	logs := logstest.Classic(logstest.Options{Seed: 1, Lines: 100_000, Malformed: 2})
//	err := logstest.Write(dir, logs.Blobs) // dir/$logs/blob/2026/11/22/0300/000000.log
//	compare(read(dir), logs.Want)
//
// Equal options give equal bytes. The package composes the text of a line and the
// expected record side by side and parses nothing, so it cannot share a mistake with a
// parser. A share of the lines has a [Trap].
package logstest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Options describe the logs. The zero value makes no lines.
type Options struct {
	Seed uint64
	// Hour is the hour of the names of the blobs; zero: 2026-11-22 03:00 UTC.
	Hour time.Time
	// Lines is the number of well-formed lines, duplicates among them.
	Lines int
	// Malformed is the number of malformed lines added to each thousand of Lines.
	Malformed int
	// Shares has the number of lines in a thousand with a trap, in place of the usual
	// one. 0 leaves the trap out.
	Shares map[Trap]int
	// Account owns the logs; "": logsamples.
	Account string

	// Service is blob, table or queue, for Classic; "": blob.
	Service string
	// BlobLines is the number of lines in a blob of Classic; 0: 20,000.
	BlobLines int

	// Resources is the number of resources, with a blob each, for Resource; 0: 3.
	Resources int
	// Category is that of the records of Resource; "": StorageRead.
	Category string
	// Unfinished ends each blob of Resource with a line without a newline: a whole record
	// in the first blob, which is expected, a part of one in the others.
	Unfinished bool
}

// Blob is a source blob.
type Blob struct {
	Container, Key string
	Metadata       map[string]string
	Body           []byte
}

// Place is a line of a blob. Lines are physical and count from 1: the newlines within a
// field count too. A record is where its first line is.
type Place struct {
	Key  string
	Line int
}

// Record is an expected record.
type Record struct {
	Place
	TS    string // canonical: 2026-11-22T03:00:00.123456700Z
	Level string // trace, info, warn, error or critical
	Msg   string
	End   int // the offset in the blob behind its text, where its newline begins

	fields fields
}

// Fields returns all fields but ts, level, service and msg, as encoding/json decodes them
// with UseNumber.
func (r Record) Fields() map[string]any { return r.fields.all() }

type fields interface{ all() map[string]any }

// Logs are blobs and the answers that a reader of them must give.
type Logs struct {
	Blobs     []Blob       // sorted by container and key
	Want      []Record     // sorted by time, then by place, without duplicates
	Malformed []Place      // sorted by place
	Cut       []Place      // lines that blobs end within: malformed if nobody writes these any more
	Dropped   int          // duplicates: no record of Want
	Traps     map[Trap]int // the number of lines with each trap
}

// Write writes blobs as files: dir/CONTAINER/KEY.
func Write(dir string, blobs []Blob) error {
	for _, b := range blobs {
		name := filepath.Join(dir, b.Container, filepath.FromSlash(b.Key))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, b.Body, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// maker is the common part of the generators.
type maker struct {
	*rand.Rand
	o     Options
	share map[Trap]int
	logs  Logs

	page     *page
	recent   []sent      // lines of this page that may be repeated
	former   []sent      // the same of earlier pages
	times    []time.Time // some earlier ones, for ties
	restless bool        // a malformed line cannot be here
}

// page is a blob that is being written.
type page struct {
	key         string
	body        []byte
	lines       int
	first, last time.Time // of its records
	far         []string  // lines of other pages that it repeats
}

// sent is a line that was written.
type sent struct {
	raw, newline string
	at           time.Time
	record       Record
	plain        bool // a repetition stays
}

func newMaker(o Options, stream uint64) *maker {
	if o.Hour.IsZero() {
		o.Hour = time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	}
	o.Hour = o.Hour.UTC().Truncate(time.Hour)
	o.Account = cmp.Or(o.Account, "logsamples")
	o.Service = cmp.Or(o.Service, "blob")
	o.Category = cmp.Or(o.Category, "StorageRead")
	o.BlobLines = cmp.Or(o.BlobLines, 20_000)
	o.Resources = cmp.Or(o.Resources, 3)
	share := usualShares()
	maps.Copy(share, o.Shares)
	return &maker{Rand: rand.New(rand.NewPCG(o.Seed, stream)), o: o, share: share, logs: Logs{Traps: map[Trap]int{}}}
}

// hit reports whether the line at hand gets a trap, and counts it.
func (m *maker) hit(t Trap) bool {
	if m.IntN(1000) >= m.share[t] {
		return false
	}
	m.logs.Traps[t]++
	return true
}

// open begins a blob.
func (m *maker) open(key string) {
	m.page = &page{key: key}
	m.former = append(m.former, m.recent...)
	m.recent = nil
	m.restless = true
}

// put appends a line and returns its place and the end of its text.
func (m *maker) put(raw, newline string) (Place, int) {
	p := m.page
	at := Place{Key: p.key, Line: p.lines + 1}
	p.body = append(append(p.body, raw...), newline...)
	p.lines += 1 + strings.Count(raw, "\n")
	m.restless = false
	return at, len(p.body) - len(newline)
}

// record appends a line with a record. Later ones may repeat it.
func (m *maker) record(s sent) {
	m.expect(s)
	m.times = sample(m, m.times, s.at)
	m.recent = sample(m, m.recent, s)
}

// expect appends a line with a record.
func (m *maker) expect(s sent) {
	r := s.record
	r.Place, r.End = m.put(s.raw, s.newline)
	r.TS = s.at.UTC().Format("2006-01-02T15:04:05.000000000Z")
	m.logs.Want = append(m.logs.Want, r)
	p := m.page
	if p.first.IsZero() || s.at.Before(p.first) {
		p.first = s.at
	}
	if s.at.After(p.last) {
		p.last = s.at
	}
}

// sample keeps some of the values that it gets.
func sample[T any](m *maker, kept []T, v T) []T {
	if len(kept) < 64 {
		return append(kept, v)
	}
	if m.IntN(8) == 0 {
		kept[m.IntN(len(kept))] = v
	}
	return kept
}

// repeat appends a line again, which is dropped.
func (m *maker) repeat(s sent) {
	m.put(s.raw, s.newline)
	m.logs.Dropped++
}

// again reports whether the line at hand repeats one of these lines that fit, and which.
func (m *maker) again(t Trap, lines []sent, fits func(sent) bool) (sent, bool) {
	if len(lines) == 0 || !m.hit(t) {
		return sent{}, false
	}
	for range len(lines) {
		if s := pick(m, lines); fits(s) {
			return s, true
		}
	}
	m.logs.Traps[t]--
	return sent{}, false
}

// malformed adds a malformed line now and then. No two of them are neighbours, and none
// is the first of a blob.
func (m *maker) malformed(compose func() string) {
	if m.restless || m.IntN(1000) >= m.o.Malformed {
		return
	}
	at, _ := m.put(compose(), "\n")
	m.logs.Malformed = append(m.logs.Malformed, at)
	m.restless = true
}

// done sorts the answers.
func (m *maker) done() Logs {
	slices.SortFunc(m.logs.Blobs, func(a, b Blob) int { return cmp.Compare(a.Key, b.Key) })
	slices.SortStableFunc(m.logs.Want, func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.TS, b.TS), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Line, b.Line))
	})
	for _, places := range [][]Place{m.logs.Malformed, m.logs.Cut} {
		slices.SortFunc(places, func(a, b Place) int {
			return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Line, b.Line))
		})
	}
	return m.logs
}

// tie returns the time of an earlier line, or else t.
func (m *maker) tie(t time.Time) time.Time {
	if len(m.times) > 0 && m.hit(Tie) {
		return m.times[m.IntN(len(m.times))]
	}
	return t
}

// hour is the hour in the name of a blob of Azure Monitor.
func (m *maker) hour() string { return m.o.Hour.Format("/y=2006/m=01/d=02/h=15/m=00/") }

func (m *maker) uuid() string {
	a, b := m.Uint64(), m.Uint64()
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", a>>32, a>>16&0xffff, a&0xffff, b>>48, b&(1<<48-1))
}

// signature is a signature of a SAS as it is in an URL: base64, with + / = escaped.
func (m *maker) signature() string {
	return fmt.Sprintf("%016x%%2B%08xQ%%2F%08xz%%3D", m.Uint64(), m.Uint32(), m.Uint32())
}

func (m *maker) address() string {
	return fmt.Sprintf("10.%d.%d.%d:%d", m.IntN(256), m.IntN(256), m.IntN(256), 1024+m.IntN(60000))
}

func (m *maker) etag() string { return fmt.Sprintf("0x8D%013X", m.Uint64()>>12) }

// garbage is bytes of no encoding.
func (m *maker) garbage() string {
	b := []byte{0xff}
	for range 20 + m.IntN(60) {
		b = append(b, byte(0x80+m.IntN(0x80)))
	}
	return string(b)
}

func pick[T any](m *maker, all []T) T { return all[m.IntN(len(all))] }

func number(n int) json.Number { return json.Number(fmt.Sprint(n)) }
