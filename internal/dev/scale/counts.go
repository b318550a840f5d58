package scale

import (
	"maps"
	"net/http"
	"strings"
)

// A Kind is a kind of requests that has a price.
type Kind int

// The kinds.
const (
	Put        Kind = iota // a blob
	List                   // a page of a list of blobs; making a container, which has its price
	Get                    // a blob or a part of it
	Head                   // attributes of a blob or a container, as for the time of the store
	Delete                 // a blob; a batch is a request, and so is each of its parts
	TableWrite             // a transaction, a row, or a table
	TableRead              // a page of rows or of tables
)

func (k Kind) String() string {
	return [...]string{"put", "list", "get", "head", "delete", "table_write", "table_read"}[k]
}

// Counts are requests by kind, with the bytes of their bodies. Refused ones are not among the
// kinds: Azure does not charge for them.
type Counts struct {
	Put        int64 `json:"put"`
	List       int64 `json:"list"`
	Get        int64 `json:"get"`
	Head       int64 `json:"head"`
	Delete     int64 `json:"delete"`
	TableWrite int64 `json:"table_write"`
	TableRead  int64 `json:"table_read"`
	Refused    int64 `json:"-"` // with 503
	In         int64 `json:"-"` // bytes that were sent to the account, without headers
	Out        int64 `json:"-"` // bytes of answers, without headers
}

// Requests is the number of all requests that were answered.
func (c Counts) Requests() int64 {
	return c.Put + c.List + c.Get + c.Head + c.Delete + c.TableWrite + c.TableRead
}

// Since is the difference to earlier counts of the account.
func (c Counts) Since(e Counts) Counts {
	return Counts{
		c.Put - e.Put, c.List - e.List, c.Get - e.Get, c.Head - e.Head, c.Delete - e.Delete,
		c.TableWrite - e.TableWrite, c.TableRead - e.TableRead, c.Refused - e.Refused, c.In - e.In, c.Out - e.Out,
	}
}

func (c *Counts) of(k Kind) *int64 {
	return [...]*int64{&c.Put, &c.List, &c.Get, &c.Head, &c.Delete, &c.TableWrite, &c.TableRead}[k]
}

// Written is all that was written to a table.
type Written struct {
	Transactions int64
	Rows         int64
	// Bytes is the size of the rows by the formula of Azure's bill.
	Bytes int64
}

// Counts returns the requests so far.
func (a *Account) Counts() Counts {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.counts
}

// Detail returns the requests so far by kind and by the part of the store that they were for,
// such as "table_write tail" and "list _horizon": the name of a table without its digits, or the
// first element of a key that begins with an underscore.
func (a *Account) Detail() map[string]int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.detail)
}

// Written returns the writes so far to the tables whose names start with a prefix.
func (a *Account) Written(prefix string) (sum Written) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for table, w := range a.written {
		if strings.HasPrefix(table, prefix) {
			sum.Transactions += w.Transactions
			sum.Rows += w.Rows
			sum.Bytes += w.Bytes
		}
	}
	return sum
}

// Stored is the sum of the bytes of all blobs, and their number.
func (a *Account) Stored() (blobs int, bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.containers {
		for _, o := range c.all {
			blobs++
			bytes += int64(o.size)
		}
	}
	return blobs, bytes
}

func (a *Account) count(w what, in, out, status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if status == http.StatusServiceUnavailable {
		a.counts.Refused++
		return
	}
	*a.counts.of(w.kind) += int64(w.n)
	a.counts.In += int64(in)
	a.counts.Out += int64(out)
	a.detail[w.kind.String()+" "+w.class] += int64(w.n)
}

// class is the part of the store that a key belongs to.
func class(key string) string {
	if first, _, _ := strings.Cut(key, "/"); strings.HasPrefix(first, "_") {
		return first
	}
	return "blobs"
}

// tableClass is the name of a table without the digits of its day.
func tableClass(name string) string { return strings.TrimRight(name, "0123456789") }
