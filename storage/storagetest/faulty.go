package storagetest

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"sync"
	"time"

	"blobtail/storage"
)

// ErrFault is the error of scripted faults without another one. It is none of storage's
// sentinels, so after a write it means: outcome unknown.
var ErrFault = errors.New("scripted fault")

// Op names a method of a store.
type Op string

// The methods that call a [Script].
const (
	Create Op = "create"
	Stat   Op = "stat"
	Get    Op = "get"
	List   Op = "list" // key is the prefix
	Dirs   Op = "dirs" // key is the prefix
	Delete Op = "delete"
	Upsert Op = "upsert" // key is "table/partition"
	Swap   Op = "swap"   // key is "table/partition"
	Scan   Op = "scan"   // key is "table/partition"
	Tables Op = "tables" // key is the prefix
	Drop   Op = "drop"
)

// writes reports whether a method changes the store.
func (op Op) writes() bool {
	switch op {
	case Create, Delete, Upsert, Swap, Drop:
		return true
	}
	return false
}

// Fault is the fault of one call. The zero Fault lets the call through.
type Fault struct {
	Delay  time.Duration // wait first, or until the context ends
	Before error         // fail without asking the store: a lost request
	After  error         // ask the store, then fail: a lost response
	// Block, if not nil, delays the call until the channel is closed or the context
	// ends.
	Block <-chan struct{}
	// Late, if not nil, makes a write fail at once, with Before or [ErrFault]. The
	// store carries it out when the channel is closed, like a request that was held up
	// on its way. Reads only fail.
	Late <-chan struct{}
}

// Script decides the fate of a call. It is called once for each call, or for each key
// of a Delete, and from any goroutine.
type Script func(op Op, key string) Fault

// Times is a script that applies f to the first n calls of op with a key that contains part, and
// lets all others through. A negative n is for ever.
func Times(n int, op Op, part string, f Fault) Script {
	var mu sync.Mutex
	return func(o Op, key string) Fault {
		if o != op || !strings.Contains(key, part) {
			return Fault{}
		}
		mu.Lock()
		defer mu.Unlock()
		if n == 0 {
			return Fault{}
		}
		n--
		return f
	}
}

// InTurn is a script of scripts: the first with a fault for a call decides.
func InTurn(scripts ...Script) Script {
	return func(op Op, key string) Fault {
		for _, s := range scripts {
			if f := s(op, key); f != (Fault{}) {
				return f
			}
		}
		return Fault{}
	}
}

// Faulty returns s with the faults of the script.
func Faulty(s storage.BlobStore, script Script) storage.BlobStore { return faultyBlobs{s, script} }

// FaultyTables returns s with the faults of the script.
func FaultyTables(s storage.TableStore, script Script) storage.TableStore {
	return faultyTables{s, script}
}

// do makes one call under its fault.
func (script Script) do(ctx context.Context, op Op, key string, call func(context.Context) error) error {
	f := script(op, key)
	if f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if f.Block != nil {
		select {
		case <-f.Block:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if f.Late != nil && op.writes() {
		go func() {
			<-f.Late
			_ = call(context.WithoutCancel(ctx)) // the caller has gone
		}()
	}
	if f.Before != nil || f.Late != nil {
		return cmp.Or(f.Before, ErrFault)
	}
	if err := call(ctx); f.After == nil {
		return err
	}
	return f.After
}

// walk puts a sequence under one fault: Before it, or After its last element.
func walk[T any](ctx context.Context, script Script, op Op, key string, seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		stopped := false
		err := script.do(ctx, op, key, func(context.Context) error {
			for v, err := range seq {
				if stopped = !yield(v, err) || err != nil; stopped {
					break
				}
			}
			return nil
		})
		if err != nil && !stopped {
			var zero T
			yield(zero, err)
		}
	}
}

type faultyBlobs struct {
	s      storage.BlobStore
	script Script
}

func (f faultyBlobs) Create(ctx context.Context, key string, body []byte, attrs storage.Attrs) error {
	return f.script.do(ctx, Create, key, func(ctx context.Context) error { return f.s.Create(ctx, key, body, attrs) })
}

func (f faultyBlobs) Stat(ctx context.Context, key string) (b storage.Blob, err error) {
	err = f.script.do(ctx, Stat, key, func(ctx context.Context) error { b, err = f.s.Stat(ctx, key); return err })
	if err != nil {
		return storage.Blob{}, err
	}
	return b, nil
}

func (f faultyBlobs) Get(ctx context.Context, key string, off, n int64) (r io.ReadCloser, err error) {
	err = f.script.do(ctx, Get, key, func(ctx context.Context) error { r, err = f.s.Get(ctx, key, off, n); return err })
	if err != nil {
		if r != nil {
			r.Close()
		}
		return nil, err
	}
	return r, nil
}

func (f faultyBlobs) List(ctx context.Context, prefix, startAfter string) iter.Seq2[storage.Blob, error] {
	return walk(ctx, f.script, List, prefix, f.s.List(ctx, prefix, startAfter))
}

func (f faultyBlobs) Dirs(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return walk(ctx, f.script, Dirs, prefix, f.s.Dirs(ctx, prefix))
}

func (f faultyBlobs) Delete(ctx context.Context, blobs ...storage.Blob) error {
	var errs []error
	for _, b := range blobs {
		err := f.script.do(ctx, Delete, b.Key, func(ctx context.Context) error { return f.s.Delete(ctx, b) })
		var ke *storage.KeyError
		if err != nil && !errors.As(err, &ke) {
			err = &storage.KeyError{Op: "delete", Key: b.Key, Err: err}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

type faultyTables struct {
	s      storage.TableStore
	script Script
}

func (f faultyTables) Upsert(ctx context.Context, table, partition string, rows []storage.Row) error {
	return f.script.do(ctx, Upsert, table+"/"+partition, func(ctx context.Context) error { return f.s.Upsert(ctx, table, partition, rows) })
}

func (f faultyTables) Swap(ctx context.Context, table, partition string, row storage.Row) (version string, err error) {
	written := new(string) // of this call alone: the write may come late
	err = f.script.do(ctx, Swap, table+"/"+partition, func(ctx context.Context) error {
		var err error
		*written, err = f.s.Swap(ctx, table, partition, row)
		return err
	})
	if err != nil {
		return "", err
	}
	return *written, nil
}

func (f faultyTables) Scan(ctx context.Context, table, partition, from, to string, limit int, props ...string) iter.Seq2[storage.Row, error] {
	return walk(ctx, f.script, Scan, table+"/"+partition, f.s.Scan(ctx, table, partition, from, to, limit, props...))
}

func (f faultyTables) Tables(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return walk(ctx, f.script, Tables, prefix, f.s.Tables(ctx, prefix))
}

func (f faultyTables) Drop(ctx context.Context, table string) error {
	return f.script.do(ctx, Drop, table, func(ctx context.Context) error { return f.s.Drop(ctx, table) })
}
