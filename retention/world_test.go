package retention_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"blobtail/blobfmt"
	"blobtail/catalog/horizon"
	"blobtail/retention"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

const (
	day   = 24 * time.Hour
	grace = time.Hour
)

// noon is the time of most tests.
func noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

// world is a store with a clock that only the test moves.
type world struct {
	t     testing.TB
	store *mem.Store
	now   time.Time
	made  int
	bare  bool // jobs see the store without its clock
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, now: noon()}
	w.store = mem.New(mem.Options{Now: w.clock})
	return w
}

func (w *world) clock() time.Time { return w.now }

// metadata makes metadata of a blob with some records, as our writer does.
func metadata(batch int, at time.Time, records int64) map[string]string {
	m := blobfmt.Meta{First: at.UnixNano(), Last: at.UnixNano(), Records: records, RawBytes: 100 * records}
	m.Batch[0], m.Batch[1], m.Batch[2] = byte(batch), byte(batch>>8), byte(batch>>16)
	m.Levels[0] = records
	return m.Map()
}

// put stores an object under a key.
func (w *world) put(key string, size int, meta map[string]string) {
	w.t.Helper()
	storagetest.Put(w.t, w.store, key, bytes.Repeat([]byte{'x'}, size), storage.Attrs{Metadata: meta})
}

// blob stores a blob of a service with the given age, and returns its key.
func (w *world) blob(service string, ago time.Duration, size int) string {
	w.t.Helper()
	w.made++
	at := w.now.Add(-ago).UTC().Truncate(time.Hour)
	key := blobfmt.Name{Service: service, Period: at, Number: w.made}.String()
	w.put(key, size, metadata(w.made, at, 10))
	return key
}

func (w *world) table(names ...string) {
	w.t.Helper()
	for _, name := range names {
		if err := w.store.Upsert(context.Background(), name, "p", []storage.Row{{Key: "k", Props: map[string]any{"A": "b"}}}); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) publish(service string, ago time.Duration) {
	w.t.Helper()
	if err := horizon.Publish(context.Background(), w.store, service, horizon.DayOf(w.now.Add(-ago))); err != nil {
		w.t.Fatal(err)
	}
}

// options are the options of a job in this world.
func (w *world) options(p retention.Policy) retention.Options {
	return retention.Options{Policy: p, Grace: grace, Prefix: "tail", Clock: w.clock}
}

func (w *world) job(p retention.Policy) *retention.Job {
	if w.bare {
		return w.clocklessJob(p)
	}
	return retention.New(w.store, w.store, w.options(p))
}

// clockless is a store without its own clock, like a directory.
type clockless struct{ storage.BlobStore }

func (w *world) clocklessJob(p retention.Policy) *retention.Job {
	return retention.New(clockless{w.store}, w.store, w.options(p))
}

// clocked gives a store that a test wraps the clock of the world.
func (w *world) clocked(s storage.BlobStore) storage.BlobStore {
	return struct {
		storage.BlobStore
		storage.Clock
	}{s, w.store}
}

// apply runs a job with any confirmation that it needs. The run must not fail.
func (w *world) apply(p retention.Policy) *retention.Result {
	w.t.Helper()
	r, err := confirmedRun(w.job(p))
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func confirmedRun(j *retention.Job) (*retention.Result, error) {
	p, err := j.Plan(context.Background())
	if err != nil {
		return nil, err
	}
	return j.Apply(context.Background(), p.Hash)
}

// state is the contents of the store, without creation times and the times in policy
// names.
func (w *world) state() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for _, b := range storagetest.Objects(w.t, w.store, "") {
		body := storagetest.Body(w.t, w.store, b.Key)
		key := b.Key
		if strings.HasPrefix(key, "_policy/") {
			key = "_policy/" + key[len(key)-64:]
		}
		all[key] = string(body)
	}
	for name, err := range w.store.Tables(context.Background(), "") {
		if err != nil {
			w.t.Fatal(err)
		}
		all["table "+name] = ""
	}
	return all
}

func (w *world) has(key string) bool {
	_, err := w.store.Stat(context.Background(), key)
	if err != nil && !errors.Is(err, storage.ErrNotExist) {
		w.t.Fatal(err)
	}
	return err == nil
}

// diff describes the difference of two states.
func diff(got, want map[string]string) string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if body, ok := want[key]; !ok || body != got[key] {
			lines = append(lines, "+ "+key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if _, ok := got[key]; !ok {
			lines = append(lines, "- "+key)
		}
	}
	return strings.Join(lines, "\n")
}

// audit is a job's log.
type audit struct{ bytes.Buffer }

func (a *audit) log() zerolog.Logger { return zerolog.New(&a.Buffer) }

func days(n int) time.Duration { return time.Duration(n) * day }

// planned abbreviates a plan: service, days ago, step.
func planned(w *world, p *retention.Plan) (out []string) {
	for _, d := range p.Days {
		out = append(out, fmt.Sprintf("%s -%d %s", d.Service, int(horizon.DayOf(w.now)-d.Day), d.Step))
	}
	return out
}
