package sim_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/blobwriter"
	"blobtail/buffer"
	"blobtail/buffer/wal"
	"blobtail/internal/count"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
	"blobtail/record/origin"
	"blobtail/storage"
	"blobtail/storage/mem"
)

// load is what one of 20 ingesters takes of 1 TB a day from a stream, in lines of 323 bytes.
type load struct {
	services int
	rate     float64 // lines a second of each
	lines    int     // of a message
	sharing  int     // ingesters that share a consumer of the stream
	min      int64
	seconds  int
}

// counts are those of one ingester.
type counts struct {
	puts, rows float64            // an hour
	reasons    map[string]float64 // of the batches that were cut
	held       int                // messages that were not stored, at most
}

// rows counts the rows of the tail: one for each service and 5 s with records. It has the
// account of messages too.
type taking struct {
	mu   sync.Mutex
	seen map[string]int64
	rows int
	held int
	most int
}

func (k *taking) Accepted(_ uint64, run *record.Run) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if at := time.Now().Unix()/5 + 1; k.seen[run.Service] != at {
		k.seen[run.Service] = at
		k.rows++
	}
}

func (k *taking) Found(string)   {}
func (k *taking) Dropped(string) {}
func (k *taking) Stored(string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held--
}

func (k *taking) unacked(add int) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held += add
	k.most = max(k.most, k.held)
	return k.held
}

// counted counts the creates of a store.
type counted struct {
	storage.BlobStore
	mu   sync.Mutex
	puts int
}

func (c *counted) Create(ctx context.Context, key string, body []byte, attrs storage.Attrs) error {
	c.mu.Lock()
	c.puts++
	c.mu.Unlock()
	return c.BlobStore.Create(ctx, key, body, attrs)
}

// measure lets one ingester take a load in virtual time.
func measure(t *testing.T, l load) (got counts) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		log, err := wal.Open(dir, wal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		store := &counted{BlobStore: mem.New(mem.Options{})}
		kept := &taking{seen: map[string]int64{}}
		reg := new(count.Registry)
		buf := buffer.New(log, sink{blobwriter.New(store, blobwriter.Options{}, nil), nil}, buffer.Options{
			Min: l.min, MaxAge: 10 * time.Minute, Tail: kept, Messages: kept, Metrics: reg,
			// The server stops at 500,000 of a consumer; the source speaks up at three quarters.
			Crowded: func() bool { return l.sharing*kept.unacked(0) >= 375_000 },
		})
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- buf.Run(ctx) }()
		offerLoad(t, buf, kept, l)
		synctest.Wait()
		hour := 3600 / float64(l.seconds)
		store.mu.Lock()
		got.puts = float64(store.puts) * hour
		store.mu.Unlock()
		got.rows, got.held, got.reasons = float64(kept.rows)*hour, kept.most, map[string]float64{}
		for series, n := range count.Read(reg.Page()) {
			if reason, ok := strings.CutPrefix(series, `blobtail_buffer_batches_cut_total{reason="`); ok && n > 0 {
				got.reasons[strings.TrimSuffix(reason, `"}`)] = n
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	return got
}

// offerLoad hands over the messages of a load, each service at its own moments.
func offerLoad(t *testing.T, buf *buffer.Buffer, kept *taking, l load) {
	t.Helper()
	text := fmt.Sprintf(`{"ts":"2000-01-01T15:00:00.000000000Z","level":"info","service":"web","msg":"%s"}`+"\n", strings.Repeat("request ", 30))
	text += strings.Repeat(" ", max(0, 323-len(text)))
	r := &record.Request{Services: []string{""}}
	for range l.lines {
		r.Lines = append(r.Lines, record.Line{Time: epoch.UnixNano(), Off: uint32(len(r.Data)), Len: uint32(strings.Index(text, "\n") + 1)})
		r.Data = append(r.Data, text...)
	}
	every := time.Duration(float64(l.lines) / l.rate * float64(time.Second))
	const step = 50 * time.Millisecond
	begun, sent := time.Now(), make([]int, l.services)
	for seq := uint64(0); time.Since(begun) < time.Duration(l.seconds)*time.Second; time.Sleep(step) {
		for i := range sent {
			first := every * time.Duration(i) / time.Duration(l.services)
			for ; begun.Add(first + every*time.Duration(sent[i])).Before(time.Now()); sent[i]++ {
				seq++
				r.Services[0], r.Reply = fmt.Sprintf("s%d", i), fmt.Sprintf("$JS.ACK.LOGS.blobtail-12.1.%[1]d.%[1]d.1795730277579534843.123456", seq)
				r.Origin = origin.OfStream(epoch, "LOGS", seq)
				kept.unacked(1)
				if _, err := buf.Accept(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// Of 1 TB a day in 200 services, each ingester has all services without partitions. With
// partitions it has ten, or twenty if each partition goes to two. The rows of the tail fall to a
// tenth by that alone. The blobs do if flush.min is larger: else the age of 60 s decides.
// docs/operate/partitions.md has these figures, of `make torture`; `make test` takes the shortest cases.
func TestPartitionsCost(t *testing.T) {
	testkit.FullOnly(t, "it handles a GB")
	const hundred, day = 100, 24.0
	seconds := testkit.Portion(2450, 1300, 0)
	all, shared, own := load{200, 9, hundred, 20, 2 << 20, seconds}, load{20, 90, hundred, 2, 16 << 20, seconds}, load{10, 180, hundred, 1, 16 << 20, seconds}
	sharedMin, ownMin := shared, own
	sharedMin.min, ownMin.min = 2<<20, 2<<20
	got := map[string]counts{}
	for _, c := range []struct {
		name string
		load
		long bool // only in `make torture`
	}{
		{"no partitions", all, false}, {"two ingesters, 2 MiB", sharedMin, true}, {"one ingester, 2 MiB", ownMin, false},
		{"two ingesters, 16 MiB", shared, true}, {"one ingester, 16 MiB", own, false},
		{"no partitions, one line", load{200, 9, 1, 20, 2 << 20, 120}, false},
		{"two ingesters, one line", load{20, 90, 1, 2, 16 << 20, 360}, true},
	} {
		if c.long && !testkit.Torture() {
			continue
		}
		g := measure(t, c.load)
		got[c.name] = g
		t.Logf("%-24s of 20 ingesters a day: %10.0f PUTs, %10.0f rows; cut for %v; at most %d messages held by one",
			c.name, 20*day*g.puts, 20*day*g.rows, g.reasons, g.held)
	}
	base := got["no partitions"]
	for _, name := range []string{"two ingesters, 16 MiB", "one ingester, 16 MiB"} {
		if g := got[name]; g.puts > base.puts/9 {
			t.Errorf("%s: %v PUTs an hour, want a tenth of %v", name, g.puts, base.puts)
		}
	}
	// Without partitions a message of 100 lines comes every 11 s, so not each 5 s has a row.
	if one := got["no partitions, one line"]; got["two ingesters, one line"].rows > one.rows/9 || got["one ingester, 2 MiB"].rows > base.rows/8 {
		t.Errorf("%v rows an hour without partitions, want a tenth with them", one.rows)
	}
	for name, want := range map[string]string{
		"no partitions": "max_age", "two ingesters, 2 MiB": "age", "one ingester, 2 MiB": "age",
		"two ingesters, 16 MiB": "age", "one ingester, 16 MiB": "age", "no partitions, one line": "messages", "two ingesters, one line": "messages",
	} {
		if g, ok := got[name]; ok && (g.reasons[want] == 0 || len(g.reasons) != 1) {
			t.Errorf("%s: cut for %v, want %s", name, g.reasons, want)
		}
	}
}

// An open message takes so much memory of the ingester, with its place in the log.
func TestMemoryOfOpenMessages(t *testing.T) {
	testkit.FullOnly(t, "the race detector takes memory too")
	log, err := wal.Open(t.TempDir(), wal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	kept := &taking{seen: map[string]int64{}}
	buf := buffer.New(log, sink{blobwriter.New(mem.New(mem.Options{}), blobwriter.Options{}, nil), nil}, buffer.Options{Messages: kept})
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // the first fills pools that the second empties
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	const n = 90_000
	before := heap()
	line := []byte(`{"ts":"2026-11-20T15:00:00.000000000Z","level":"info","service":"web","msg":"a"}` + "\n")
	for i := range n {
		r := &record.Request{Services: []string{"web"}, Lines: []record.Line{{Time: epoch.UnixNano(), Len: uint32(len(line))}}, Data: line,
			Origin: origin.OfStream(epoch, "LOGS", uint64(i)), Reply: fmt.Sprintf("$JS.ACK.LOGS.blobtail-12.1.%[1]d.%[1]d.1795730277579534843.123456", i)}
		if _, err := buf.Accept(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	each := float64(heap()-before) / n
	t.Logf("%.0f bytes of memory for each open message", each)
	if each > 800 {
		t.Errorf("%.0f bytes for each open message, want at most 800", each)
	}
	runtime.KeepAlive(buf)
}
