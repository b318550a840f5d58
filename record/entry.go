package record

// ID distinguishes a record from all others: its origin, and its place there, which
// is [Request.Index].
type ID struct {
	Origin Origin
	Index  uint32
}

// Entry is a record outside of a blob: from the log, or from the table of the newest
// records.
type Entry struct {
	Time int64 // effective time, Unix nanoseconds
	ID   ID
	Line []byte // canonical, with its newline
}

// Compare orders entries in the order of records everywhere: by time, origin and
// index.
func (e *Entry) Compare(other *Entry) int {
	a, b := e.key(), other.key()
	return a.Compare(&b)
}

func (e *Entry) key() Key { return Key{e.Time, e.ID.Origin, e.ID.Index} }

// Run is the lines of a request for one service and one period, in the order of time.
// It is a view of the request, and valid only as long as that.
type Run struct {
	Service string
	Origin  Origin // that of the request, or of its place in the log
	Request *Request
	Order   []uint32 // the numbers of the request's lines, in order
}

// Len is the number of lines.
func (r *Run) Len() int { return len(r.Order) }

// Entry is line i. Its bytes are the request's.
func (r *Run) Entry(i int) Entry {
	n := r.Order[i]
	l := &r.Request.Lines[n]
	return Entry{
		Time: l.Time, ID: ID{r.Origin, r.Request.Index(n)},
		Line: r.Request.Data[l.Off : l.Off+l.Len],
	}
}
