package closing_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"blobtail/catalog"
	"blobtail/storage"
)

// errDead is the end of a killed process: all its operations fail from then on.
var errDead = errors.New("this process was killed")

// A view is the store as one process sees it. Each operation, and each page of a listing, happens
// at a moment of its own. So a listing lacks what comes behind its cursor.
type view struct {
	w     *world
	actor string
	began time.Time
	pause time.Duration // before an operation at most
	hangs bool          // now and then it hangs for hours
	die   context.CancelFunc
	down  func() bool // nil: the store is never down

	mu    sync.Mutex
	asked map[string]uint64
	left  int // operations until it is killed; less than 0: it is not
	how   int // the last operation: 0 is not done, 1 is done, 2 is done late; less than 0: one of these
}

func (w *world) view(actor string, pause time.Duration) *view {
	return &view{w: w, actor: actor, began: time.Now(), pause: pause, asked: map[string]uint64{}, left: -1, how: -1}
}

// mortal has the process die at an operation, counted from 1, and cancels the context then.
func (v *view) mortal(ctx context.Context, at int) context.Context {
	ctx, v.die = context.WithCancel(ctx)
	v.left = at
	return ctx
}

// fate is a source of chance for an operation. It depends on how often the process has done the same
// before, and on nothing else.
func (v *view) fate(op, key string) *rand.Rand {
	what := v.actor + " " + op + " " + key
	v.asked[what]++
	h := fnv.New64a()
	_, _ = h.Write([]byte(what)) // never fails
	return rand.New(rand.NewPCG(v.w.seed^h.Sum64(), v.asked[what]))
}

// step waits for the moment of an operation, and says what becomes of it: before is its error if it
// is not done, after the one if its answer is lost.
func (v *view) step(ctx context.Context, op, key string) (before, after error) {
	v.mu.Lock()
	rng := v.fate(op, key)
	v.mu.Unlock()
	d := time.Duration(rng.Int64N(int64(v.pause)) + 1)
	if v.hangs && rng.IntN(150) == 0 {
		d += time.Duration(rng.Int64N(int64(3 * time.Hour)))
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return ctx.Err(), nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.left == 0:
		return errDead, nil
	case v.left > 1:
		v.left--
	case v.left == 1:
		v.left = 0
		v.die()
		v.w.told("%s is killed at %s %s", v.actor, op, key)
		v.w.count(&v.w.totals.Kills)
		if v.how == 0 || v.how < 0 && rng.IntN(2) == 0 {
			return errDead, nil
		}
		return nil, errDead
	case v.down != nil && v.down():
		return fmt.Errorf("the store is down: %w", errDead), nil
	case v.down != nil && rng.IntN(20) == 0: // for an ingester
		return nil, errDead
	}
	return nil, nil
}

func (v *view) Now(ctx context.Context) (time.Time, error) {
	before, after := v.step(ctx, "clock", "")
	return time.Now(), errors.Join(before, after)
}

func (v *view) Create(ctx context.Context, key string, body []byte, attrs storage.Attrs) error {
	before, after := v.step(ctx, "create", key)
	if before != nil {
		return before
	}
	if late := v.w.lands(v, key); errors.Is(after, errDead) && (late && v.how < 0 || v.how == 2) { // the request goes on without its sender
		body := bytes.Clone(body)
		time.AfterFunc(v.w.lateness(key), func() { _ = v.w.create(v, key, body, attrs) })
		return after
	}
	return errors.Join(v.w.create(v, key, body, attrs), after)
}

func (v *view) Stat(ctx context.Context, key string) (storage.Blob, error) {
	if before, after := v.step(ctx, "stat", key); before != nil || after != nil {
		return storage.Blob{}, errors.Join(before, after)
	}
	return v.w.store.Stat(ctx, key)
}

func (v *view) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	if before, after := v.step(ctx, "get", key); before != nil || after != nil {
		return nil, errors.Join(before, after)
	}
	return v.w.store.Get(ctx, key, off, n)
}

// List yields pages, each as the store is at its moment.
func (v *view) List(ctx context.Context, prefix, startAfter string) iter.Seq2[storage.Blob, error] {
	return func(yield func(storage.Blob, error) bool) {
		for after, more := startAfter, true; more; {
			if before, lost := v.step(ctx, "list", prefix+" "+after); before != nil || lost != nil {
				yield(storage.Blob{}, errors.Join(before, lost))
				return
			}
			more = false
			left := v.w.p.Page
			var page []storage.Blob
			for b, err := range v.w.store.List(ctx, prefix, after) {
				if err != nil {
					yield(storage.Blob{}, err)
					return
				}
				if left--; left < 0 {
					more = true
					break
				}
				page = append(page, b)
			}
			for _, b := range page {
				if after = b.Key; !yield(b, nil) {
					return
				}
			}
		}
	}
}

func (v *view) Dirs(ctx context.Context, prefix string) iter.Seq2[string, error] {
	if before, after := v.step(ctx, "dirs", prefix); before != nil || after != nil {
		return func(yield func(string, error) bool) { yield("", errors.Join(before, after)) }
	}
	return v.w.store.Dirs(ctx, prefix)
}

// Delete deletes object after object, each at a moment of its own.
func (v *view) Delete(ctx context.Context, blobs ...storage.Blob) error {
	var errs []error
	for _, b := range blobs {
		before, after := v.step(ctx, "delete", b.Key)
		if before == nil {
			after = errors.Join(v.w.delete(v, b), after)
		}
		errs = append(errs, storage.AtKey("delete", b.Key, errors.Join(before, after)))
	}
	return errors.Join(errs...)
}

// lands reports whether a create whose sender has died is done later, and lateness how much.
func (w *world) lands(v *view, key string) bool { return w.fate("late", v.actor+key).IntN(2) == 0 }

func (w *world) lateness(key string) time.Duration {
	return time.Duration(w.fate("lateness", key).Int64N(int64(10 * time.Minute)))
}

// dead reports whether the process was killed.
func (v *view) dead() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.left == 0
}

func (w *world) fate(kind, what string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(kind + " " + what)) // never fails
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

// told adds to the story of the world.
func (w *world) told(format string, a ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tell(format, a...)
}

func (w *world) tell(format string, a ...any) {
	w.story = append(w.story, time.Now().UTC().Format("02 15:04:05.000 ")+fmt.Sprintf(format, a...))
}

func (w *world) violation(format string, a ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken(format, a...)
}

func (w *world) broken(format string, a ...any) {
	w.violations = append(w.violations, fmt.Sprintf(format, a...))
	w.tell("VIOLATION: "+format, a...)
}

func (w *world) count(n *int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*n++
}

func (w *world) Found() (violations, troubles []string) { return w.violations, w.troubles }

func (w *world) Story() string {
	return fmt.Sprintf("%+v\n%s", w.p, strings.Join(w.story, "\n"))
}

var bg = context.Background()

// drive is the store as hands see it.
func (w *world) drive() storage.BlobStore { return w.store }

// body is the content of an object.
func (w *world) body(key string) []byte {
	b, err := catalog.Read(bg, w.store, key, 0, -1)
	if err != nil {
		w.broken("%v", err)
	}
	return b
}
