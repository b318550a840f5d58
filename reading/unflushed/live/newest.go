package live

import (
	"bufio"
	"encoding/hex"
	"strconv"
	"strings"
	"sync"

	"blobtail/record"
)

// headerStored is of a question that wants the names of blobs, see [Query.Stored]. It is no
// parameter: ingesters that do not know it refuse those.
const headerStored = "Blobtail-Stored"

// Stored is the newest blob that a start of an ingester has stored of a service.
type Stored struct {
	Ingester string // its id
	Process  string // its start
	Number   uint64 // greater than those of all blobs that the process stored before
	Key      string
	Batch    [16]byte
}

// Newest remembers the newest blob of each service that this process has stored, of 65,536
// services at most. The zero value is ready. Its methods may be called concurrently.
type Newest struct {
	services sync.Map // service to Stored; a reader of all of them delays no Note

	mu   sync.Mutex
	last uint64
	size int
}

const maxNewest = 1 << 16

// Note notes that a blob is stored. The caller has to do so before the first snapshot of the log
// that lacks the blob's records. Then each answer without them names the blob or a later one.
func (n *Newest) Note(service, key string, batch [16]byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.size == maxNewest { // a forgotten service is known again from its next blob on
		n.services.Clear()
		n.size = 0
	}
	n.last++
	if _, known := n.services.Swap(service, Stored{Number: n.last, Key: key, Batch: batch}); !known {
		n.size++
	}
}

// of returns the blobs of those services of a question that may be read.
func (n *Newest) of(q *Query, may func(service string) bool) (all []Stored) {
	if n == nil || !q.Stored || q.Follow {
		return nil
	}
	if strings.ContainsAny(q.Service, wild) {
		for service, s := range n.services.Range {
			if service := service.(string); q.Match(service) && may(service) {
				all = append(all, s.(Stored))
			}
		}
		return all
	}
	for service := range names(q.Service) {
		if s, ok := n.services.Load(service); ok && may(service) {
			all = append(all, s.(Stored))
		}
	}
	return all
}

// tellStored writes the lines of the newest blobs, each with its ingester.
func (f *fan) tellStored(out *bufio.Writer) {
	tell := func(id string, all []Stored) {
		for i := range all {
			s := &all[i]
			if !f.scope.may(serviceOf(s.Key)) { // a peer may not keep to the scope
				continue
			}
			line := append(out.AvailableBuffer(), wordStored+" "+id+" "...)
			line = append(strconv.AppendUint(line, s.Number, 10), ' ')
			line = append(hex.AppendEncode(line, s.Batch[:]), ' ')
			_, _ = out.Write(append(append(line, s.Key...), '\n')) // the flush returns the error
		}
	}
	tell(f.self.ID, f.stored)
	for _, s := range f.answers {
		tell(s.peer.ID, s.answer.stored)
	}
}

func serviceOf(key string) string {
	service, _, _ := strings.Cut(key, "/")
	return service
}

// maxStored is how many names of blobs a reader takes from one answer. The others help nobody:
// some suffice to tell a copy of a store.
const maxStored = 1 << 18

// maxKey is the length of the longest name.
const maxKey = 512

// Stored are the newest blobs of services of the question, once Next has ended. They were stored
// before the header of the answer came. There is at most one for each service and ingester, and
// none of an ingester of commit a960ca37.
func (a *Answer) Stored() []Stored { return a.stored }

// storedLine reads the rest of a line with the name of a blob.
func (a *Answer) storedLine(rest string) bool {
	id, rest, _ := strings.Cut(rest, " ")
	number, rest, _ := strings.Cut(rest, " ")
	batch, key, _ := strings.Cut(rest, " ")
	s := Stored{Ingester: id, Process: a.Snapshots[id], Key: key}
	n, err := hex.Decode(s.Batch[:], []byte(batch[:min(len(batch), 2*len(s.Batch))]))
	var known bool
	s.Number, known = parseNumber([]byte(number), 64)
	service := serviceOf(key)
	odd := func(r rune) bool { return r <= ' ' || r >= 0x7f }
	if !a.query.Stored || !known || s.Process == "" || err != nil || n != len(s.Batch) || len(batch) != 2*n ||
		len(key) > maxKey || strings.ContainsFunc(key, odd) || !record.ValidStored(service) || !a.query.Match(service) {
		return false
	}
	if len(a.stored) < maxStored {
		a.stored = append(a.stored, s)
	}
	return true
}
