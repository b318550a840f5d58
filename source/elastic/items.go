package elastic

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"unsafe"

	"blobtail/record"
)

const (
	// mostNames and mostIDs bound the bytes of names of indexes and of ids that are kept for
	// an answer. Items beyond it have no index, or an id made here.
	mostNames = 1 << 20
	mostIDs   = 1 << 20
	// longestID is the length of the longest id, as in Elasticsearch.
	longestID = 512
	// whole is the length of an answer that is made in one piece.
	whole = 256 << 10
	// piece is about the length of the pieces of a longer one.
	piece = 32 << 10
)

// items keeps the actions of a body for its answer, which has an item for each. Neighbours
// of one kind and index are kept as their number. So the memory for usual bodies is that of
// their ids, and at most 24 MB and the bounds of names and ids for any body.
type items struct {
	filter  filter
	targets []target
	memory

	numbers  [numKinds]map[string]int // of targets, by index
	names    int                      // bytes of names
	nameless [numKinds]int            // numbers of the targets without names, plus one
}

// memory is the part of the items that serves a later body. It waits with the request until
// its records are durable.
type memory struct {
	runs []run
	ids  []byte // of the runs with ids, each with a byte 0 after it
	text []byte // of the answer
}

// release empties the memory, and reports whether it is worth keeping.
func (m *memory) release() bool {
	const most = 256 << 10
	*m = memory{m.runs[:0], m.ids[:0], m.text[:0]}
	return cap(m.runs)*int(unsafe.Sizeof(run{})) <= most && cap(m.ids) <= most && cap(m.text) <= whole+most
}

// A target is a kind of actions and an index.
type target struct {
	kind    kind
	service string // folded, "" for none
	index   string // the inside of a JSON string; "" is left out
}

// A run is neighbouring actions with one target.
type run struct {
	target, n int32
	ids       bool // the sender's
}

// target returns the number of a target; ok is false if it is a new one.
func (t *items) target(k kind, index []byte) (n int, ok bool) {
	n, ok = t.numbers[k][string(index)]
	return n, ok
}

// addTarget adds a target and returns its number. With too many names it is the one without
// a name, which keeps only the latest service.
func (t *items) addTarget(k kind, index []byte, service string) (n int, keep bool) {
	const perTarget = 128 // for the target itself, and its place in the map
	name := string(record.AppendEscaped(nil, index))
	if t.names += len(index) + len(name) + perTarget; t.names > mostNames {
		if t.nameless[k] == 0 {
			t.targets = append(t.targets, target{k, service, ""})
			t.nameless[k] = len(t.targets)
		}
		n = t.nameless[k] - 1
		t.targets[n].service = service
		return n, false
	}
	if t.numbers[k] == nil {
		t.numbers[k] = map[string]int{}
	}
	n = len(t.targets)
	t.numbers[k][string(index)] = n
	t.targets = append(t.targets, target{k, service, name})
	return n, true
}

// add adds an action.
func (t *items) add(target int, id []byte) {
	parts := t.filter.items[t.targets[target].kind]
	if parts == 0 {
		return
	}
	ids := len(id) > 0 && len(id) <= longestID && len(t.ids)+len(id) < mostIDs && parts&partID != 0
	if ids {
		t.ids = append(append(t.ids, id...), 0)
	}
	if n := len(t.runs); n > 0 && t.runs[n-1].target == int32(target) && t.runs[n-1].ids == ids {
		t.runs[n-1].n++
		return
	}
	t.runs = append(t.runs, run{int32(target), 1, ids})
}

// madeID is about the length of an id made here.
const madeID = 16

// size is more than the length of the answer.
func (t *items) size() int {
	n := len(t.ids) + len(`{"took":,"errors":false,"items":[]}`) + 20
	for _, r := range t.runs {
		n += int(r.n) * (len(`{"delete":{"_index":"","_id":"","status":201}},`) + len(t.targets[r.target].index) + madeID)
	}
	return n
}

// appendTo appends the answer to a request that took so many milliseconds. With w it writes
// pieces of it there, and returns an error of that. Fluent Bit looks for the text
// "errors":false,"items":[ in the answer.
func (t *items) appendTo(buf []byte, w io.Writer, took int64) ([]byte, error) {
	var fields []string
	if t.filter.took {
		fields = append(fields, `"took":`+strconv.FormatInt(took, 10))
	}
	if t.filter.errors {
		fields = append(fields, `"errors":false`)
	}
	end := "}"
	if t.filter.items != [numKinds]uint8{} {
		fields = append(fields, `"items":[`)
		end = "]}"
	}
	a := answer{items: t, w: w, buf: buf, forms: make([]itemForm, len(t.targets)), base: strconv.FormatUint(rand.Uint64()>>24, 36) + "-"}
	a.buf = append(append(a.buf, '{'), strings.Join(fields, ",")...)
	for _, r := range t.runs {
		a.run(r)
	}
	a.buf = append(a.buf, end...)
	if w != nil {
		a.flush()
	}
	return a.buf, a.err
}

// An answer appends items. It makes ids for the actions without one.
type answer struct {
	*items
	w     io.Writer // nil: all is kept in buf
	buf   []byte
	forms []itemForm // by target, made when they are needed
	next  int        // the next of the ids
	base  string     // of the ids made
	made  uint64
	any   bool // there are items
	err   error
}

// flush writes the buffer.
func (a *answer) flush() {
	if a.err == nil {
		_, a.err = a.w.Write(a.buf)
	}
	a.buf = a.buf[:0]
}

// run appends the items of a run.
func (a *answer) run(r run) {
	f := &a.forms[r.target]
	if f.before == "" {
		*f = a.form(&a.targets[r.target])
	}
	for range r.n {
		if a.w != nil && len(a.buf) > piece {
			if a.flush(); a.err != nil {
				return
			}
		}
		if a.any {
			a.buf = append(a.buf, ',')
		}
		a.any = true
		a.buf = append(a.buf, f.before...)
		if f.id {
			a.id(r.ids)
		}
		a.buf = append(a.buf, f.after...)
	}
}

// An itemForm is the bytes of an item before and after its id. Without an id, before has
// them all.
type itemForm struct {
	before, after string
	id            bool
}

// form returns the form of the items of a target.
func (a *answer) form(to *target) (f itemForm) {
	var fields []string
	parts := a.filter.items[to.kind]
	if parts&partIndex != 0 && to.index != "" {
		fields = append(fields, `"_index":"`+to.index+`"`)
	}
	if parts&partID != 0 {
		fields = append(fields, `"_id":"`+"\x00"+`"`)
	}
	switch {
	case parts&partStatus == 0:
	case to.kind == remove:
		fields = append(fields, `"status":200`)
	default:
		fields = append(fields, `"status":201`)
	}
	f.before, f.after, f.id = strings.Cut(`{"`+to.kind.String()+`":{`+strings.Join(fields, ",")+`}}`, "\x00")
	return f
}

// id appends the next id of the sender's, or one made here.
func (a *answer) id(sent bool) {
	if sent {
		id := a.ids[a.next:]
		id = id[:bytes.IndexByte(id, 0)]
		a.next += len(id) + 1
		a.buf = append(a.buf, id...)
		return
	}
	a.made++
	a.buf = strconv.AppendUint(append(a.buf, a.base...), a.made, 36)
}
