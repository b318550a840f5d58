package reading

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"blobtail/blobfmt"
	"blobtail/internal/lease"
	"blobtail/internal/progress"
	"blobtail/internal/storeid"
	"blobtail/internal/trust"
	"blobtail/reading/blobs"
	"blobtail/reading/blobs/indexcache"
	"blobtail/reading/unflushed"
	"blobtail/reading/unflushed/live"
	"blobtail/storage"
	"blobtail/storage/fanout"
	"blobtail/storage/traffic"
	"blobtail/tailindex"
)

// OpenOptions are a store, and how to read it. Blobs, Tables and Now must be set.
type OpenOptions struct {
	Blobs  storage.BlobStore
	Tables storage.TableStore
	// Name is the user's name for the store.
	Name string
	// Tail has the Prefix, the Shards and the Store of the tables of the tail.
	Tail tailindex.Options
	// Now is the clock of this host.
	Now func() time.Time

	// Distant says that a request to the store takes long, and that its ingesters may be out of
	// reach.
	Distant bool
	// MaxAge is the largest age of a read; 0: 30 min.
	MaxAge time.Duration
	// KeepIndexes keeps indexes of blobs in memory, for later reads, and what they find in blocks.
	KeepIndexes bool
	// Progress counts the blobs of all reads; nil: they are not counted.
	Progress *progress.Counter
	// Cool is that of [blobs.Options].
	Cool func(*blobs.CoolError)
	// MaxRaw and MaxHeld are those of [Options].
	MaxRaw, MaxHeld int64

	// Off asks no ingester. Unasked says that no ingester writes to the store.
	Off, Unasked bool
	// Live is the URL of an ingester that asks the others; "": all are asked at the addresses in
	// their rows.
	Live string
	// Token is the credentials for ingesters, as id.secret; "": none. PlainHTTP lets it go to other
	// hosts without TLS.
	Token     string
	PlainHTTP bool
	// Trust says which ingesters are believed over TLS; nil: those that this host believes.
	Trust *trust.Trust
	// Sent counts the requests to ingesters; nil: they are not counted.
	Sent *traffic.Counter
	// Sharing is that of [Options].
	Sharing Sharing
}

// Open returns a Reader of a store with its ingesters. It reads nothing yet. An error is of
// [OpenOptions.Live].
func Open(o OpenOptions) (*Reader, error) {
	indexes := newIndexes(o.KeepIndexes)
	blobs := blobs.New(o.Blobs, blobs.Options{MaxAge: o.MaxAge, Progress: o.Progress, Distant: o.Distant, Indexes: indexes.forReads(), Findings: kept(o.KeepIndexes, mostFindings), Entries: kept(o.KeepIndexes, mostEntries), Cool: o.Cool})
	var ahead atomic.Int64 // the store's clock ahead of ours in ns, after the first question for it
	o.Tail.Now = func() time.Time { return o.Now().Add(time.Duration(ahead.Load())) }
	logs := unflushed.Options{
		Blobs: blobs, Name: o.Name, Off: o.Off, Unasked: o.Unasked, Distant: o.Distant, Trust: o.Trust, Token: o.Token, PlainHTTP: o.PlainHTTP,
		Store: func(ctx context.Context) (string, error) { return storeid.Read(ctx, o.Blobs) },
		Tail:  tailindex.NewReader(o.Tables, o.Tail),
		Ingesters: func(ctx context.Context) ([]lease.Ingester, time.Time, error) {
			rows, now, unread, err := o.ingesters(ctx)
			if len(rows) > 0 {
				ahead.Store(int64(now.Sub(o.Now())))
			}
			if err == nil {
				err = unread
			}
			return rows, now, err
		},
	}
	logs.Hangs = &live.Hangs{}
	switch {
	case o.Off:
	case o.Live != "":
		client, err := live.NewClient(o.Live, live.ClientOptions{HTTP: o.http(), Trust: o.Trust, Token: o.Token, PlainHTTP: o.PlainHTTP, Hangs: logs.Hangs})
		if err != nil {
			return nil, err
		}
		logs.Live = client
	default:
		logs.Announced = o.http()
	}
	all := Options{Blobs: blobs, Logs: unflushed.New(logs), Name: o.Name, Ingesters: o.ingesters, MaxRaw: o.MaxRaw, MaxHeld: o.MaxHeld}
	all.Sharing = o.Sharing
	r := New(all)
	r.indexes, logs.Hangs.Alone = indexes, r.bursts.alone
	return r, nil
}

// Bytes of findings of reads, and of parsed names and metadata, that are kept for later ones.
const (
	mostFindings = 64 << 20
	mostEntries  = 8 << 20
)

func kept(any bool, most int64) int64 {
	if any {
		return most
	}
	return 0
}

// http is a client for ingesters.
func (o *OpenOptions) http() *http.Client {
	c := live.NewHTTP(o.Trust)
	if o.Sent != nil {
		c.Transport = o.Sent.Transport(traffic.Live, c.Transport)
	}
	return c
}

// ingesters is [Ingesters] by the tables of the store.
func (o *OpenOptions) ingesters(ctx context.Context) (rows []lease.Ingester, now time.Time, unread, err error) {
	var timeless error
	var asking fanout.Crew
	asking.Go(func() { now, timeless = storage.Now(ctx, o.Blobs, o.Now()) })
	rows, err = lease.List(ctx, o.Tables, o.Tail.Store)
	asking.Wait()
	unread, err = lease.Unread(err)
	if err != nil || len(rows) == 0 {
		return rows, o.Now(), unread, err
	}
	if timeless != nil {
		return nil, o.Now(), nil, timeless
	}
	return rows, now, unread, nil
}

// Indexes are the indexes of blobs that a [Reader] keeps, and how often one was there.
type Indexes struct {
	Lookups, Hits int64
	Kept          int
	Bytes         int64 // that they take
}

// Indexes returns the numbers of the indexes in memory.
func (r *Reader) Indexes() (n Indexes) {
	if x := r.indexes; x != nil {
		n.Lookups, n.Hits = x.lookups.Load(), x.hits.Load()
		n.Kept, n.Bytes = x.cache.Size()
	}
	return n
}

// indexes keeps the indexes of blobs, and counts how often one was there. nil: none are kept.
type indexes struct {
	cache         *indexcache.Cache
	hits, lookups atomic.Int64
}

func newIndexes(kept bool) *indexes {
	if !kept {
		return nil
	}
	return &indexes{cache: indexcache.New(indexcache.DefaultBytes)}
}

// forReads is x as reads want it.
func (x *indexes) forReads() blobs.Indexes {
	if x == nil {
		return nil
	}
	return x
}

// Get implements [blobs.Indexes].
func (x *indexes) Get(name string, batch blobfmt.BatchID) *blobfmt.Index {
	x.lookups.Add(1)
	index := x.cache.Get(name, batch)
	if index != nil {
		x.hits.Add(1)
	}
	return index
}

// Put implements [blobs.Indexes].
func (x *indexes) Put(name string, batch blobfmt.BatchID, index *blobfmt.Index) {
	x.cache.Put(name, batch, index)
}
