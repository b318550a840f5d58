package scale_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/gob"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"

	"blobtail/blobfmt"
	"blobtail/internal/dev/scale"
	"blobtail/internal/storeid"
	"blobtail/reading"
	"blobtail/reading/blobs"
	"blobtail/reading/fan"
	"blobtail/reading/form"
	"blobtail/reading/remote"
	"blobtail/record"
	"blobtail/serve/api"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/tailindex"
)

// A week is the estate of the case: 7 TB of lines of 200 services, a compacted blob for each hour of
// each. A blob of some hundred bytes stands for one of shareOf.
const (
	weekHours, weekServices = 7 * 24, 200
	weekRaw                 = 7e12
	ratio                   = 4.56 // of raw to stored bytes: docs/measured/scale, a.default
	hourStored              = weekRaw / ratio / weekHours
	part                    = 64 << 20 // as package fan has it
)

// speed is what the machine of the test takes of a CPU, in seconds for a byte.
type speed struct {
	Scan float64 `json:"scan_raw"`   // a count by a text without an index, for a byte of lines
	TLS  float64 `json:"tls_stored"` // HTTP over TLS, both ends, for a byte
	Show float64 `json:"show_raw"`   // an asker takes a byte of a line of a worker: TLS, zstd
}

// cpu is the CPU time that a call takes.
func cpu(t *testing.T, do func()) float64 {
	t.Helper()
	now := func() float64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
	}
	before := now()
	do()
	return now() - before
}

// measureSpeed measures on lines of the reference generator's kind.
func measureSpeed(t *testing.T) (s speed) {
	store := mem.New(mem.Options{})
	raw, stored := 0, 0
	enc, err := blobfmt.NewEncoder(blobfmt.EncoderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	lines := scale.NewLines(1)
	var line []byte
	for n := range 6 {
		enc.Reset()
		for i := range 100_000 {
			at := begin.Add(time.Duration(n)*time.Hour + time.Duration(i)*30*time.Millisecond)
			line = lines.Append(line[:0], "svc-008", at)
			rest := line[bytes.Index(line, []byte(`","level`)):]
			line = append(record.AppendTime([]byte(`{"ts":"`), at.UnixNano()), rest...)
			raw += len(line)
			if err := enc.Add(line, at.UnixNano(), record.Origin{1: byte(n + 1)}, uint32(i)); err != nil {
				t.Fatal(err)
			}
		}
		body, meta, err := enc.Finish(blobfmt.BatchID{0: byte(n + 1)})
		if err != nil {
			t.Fatal(err)
		}
		stored += len(body)
		name := blobfmt.Name{Service: "svc-008", Period: begin.Add(time.Duration(n) * time.Hour), Number: 1}
		if err := store.Create(t.Context(), name.String(), bytes.Clone(body), storage.Attrs{Metadata: meta.Map()}); err != nil {
			t.Fatal(err)
		}
	}
	tail := tailindex.Options{Prefix: "tail"}
	r, err := reading.Open(reading.OpenOptions{Blobs: store, Tables: store, Now: time.Now, Unasked: true, Tail: tail})
	if err != nil {
		t.Fatal(err)
	}
	ask := reading.Ask{Services: []string{"*"}, Range: reading.Always(), Texts: []string{"a timeout"}}
	count := func() {
		if _, err := r.For(nil).Count(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
	}
	count()
	s.Scan = math.Inf(1)
	for range 3 {
		s.Scan = min(s.Scan, cpu(t, count)/float64(raw))
	}
	body := bytes.Repeat([]byte("0123456789abcdef"), 16<<20)
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(body)
	}))
	defer srv.Close()
	s.TLS = math.Inf(1)
	for range 3 {
		s.TLS = min(s.TLS, cpu(t, func() {
			resp, err := srv.Client().Get(srv.URL + "/blob")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				t.Fatal(err)
			}
		})/float64(len(body)))
	}
	s.Show = showSpeed(t, r, s.TLS)
	return s
}

// canned answers with one body.
type canned []byte

// RoundTrip implements [http.RoundTripper].
func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	return answerOf(r, form.Lines, c, "zstd"), nil
}

// answerOf is an answer of a worker.
func answerOf(r *http.Request, kind string, body []byte, coding ...string) *http.Response {
	h := http.Header{"Content-Type": {kind}, "Content-Encoding": coding}
	from := io.NopCloser(bytes.NewReader(body))
	return &http.Response{StatusCode: http.StatusOK, Header: h, Body: from, Request: r, ProtoMajor: 1, ProtoMinor: 1}
}

// showSpeed measures what an asker takes for the lines of workers, but for TLS: the encoding of HTTP, and
// the lines.
func showSpeed(t *testing.T, r *reading.Reader, tls float64) float64 {
	all := reading.Ask{Services: []string{"*"}, Range: reading.Always()}
	var text bytes.Buffer
	enc, err := zstd.NewWriter(&text, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		t.Fatal(err)
	}
	raw := 0
	out, err := r.For(nil).Records(t.Context(), all, func(lines []byte) error {
		raw += len(lines)
		_, err := enc.Write(lines)
		return err
	})
	if err == nil {
		_, err = fmt.Fprintf(enc, `{"end":{"complete":true,"records":%d}}`+"\n", out.Records)
	}
	if err == nil {
		err = enc.Close()
	}
	var c *remote.Client
	if err == nil {
		c, err = remote.New("http://worker", remote.Options{Transport: canned(text.Bytes())})
	}
	if err != nil {
		t.Fatal(err)
	}
	best := math.Inf(1)
	for range 3 {
		best = min(best, cpu(t, func() {
			if out, err := c.Records(t.Context(), all, silent); err != nil || !out.Complete() {
				t.Fatal(err, out.Problems())
			}
		})/float64(raw))
	}
	return best + tls*float64(text.Len())/float64(raw)
}

// A meter is a limit of the account, or the cores of a machine: what is taken waits for what was
// before.
type meter struct {
	mu   sync.Mutex
	rate float64 // a second
	free time.Time
	all  float64
}

// take returns how long it takes until n are taken.
func (m *meter) take(n float64) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if m.free.Before(now) {
		m.free = now
	}
	m.all += n
	m.free = m.free.Add(time.Duration(n / m.rate * 1e9))
	return m.free.Sub(now)
}

// A fleet answers for workers as long as they would take.
type fleet struct {
	speed          speed
	cores          float64
	bytes          *meter // of the account
	requests       *meter
	lists, parts   float64
	waits          time.Duration // of a part for the account, beside bytes and limits: listing, first bytes
	mu             sync.Mutex
	knows          map[string]map[int64]bool // hours whose indexes a worker has
	stored, gotten float64
}

// RoundTrip implements [http.RoundTripper].
func (f *fleet) RoundTrip(r *http.Request) (*http.Response, error) {
	at := func(name string) time.Time {
		t, err := time.Parse(time.RFC3339Nano, r.URL.Query().Get(name))
		if err != nil {
			panic(fmt.Sprintf("%s: %v", r.URL, err))
		}
		return t
	}
	from, to := at("from"), at("to")
	stored := to.Sub(from).Hours() * hourStored
	f.mu.Lock()
	gets := 0.0
	for hour := from.Truncate(time.Hour); hour.Before(to); hour = hour.Add(time.Hour) {
		if gets += weekServices; !f.knows[r.URL.Host][hour.Unix()] { // and their indexes
			gets += weekServices
			if f.knows[r.URL.Host] == nil {
				f.knows[r.URL.Host] = map[int64]bool{}
			}
			f.knows[r.URL.Host][hour.Unix()] = true
		}
	}
	f.parts++
	f.stored, f.gotten = f.stored+stored, f.gotten+gets
	f.mu.Unlock()
	work := time.Duration((stored*ratio*f.speed.Scan + stored*f.speed.TLS) / f.cores * 1e9)
	time.Sleep(f.waits + max(work, f.bytes.take(stored), f.requests.take(f.lists+gets)))
	var body bytes.Buffer
	err := gob.NewEncoder(&body).Encode(form.Part{End: form.End{Records: 1, Outcome: form.Outcome{Complete: true}}, Of: &reading.Part{}})
	return answerOf(r, form.Portable, body.Bytes()), err
}

// own is the store of the asker: what it reads itself takes its cores.
type own struct {
	storage.BlobStore
	f     *fleet
	cores *meter
	share float64 // stored bytes that a GET of a blob stands for
}

func (o *own) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	if key[0] != '_' {
		work := o.share * (ratio*o.f.speed.Scan + o.f.speed.TLS)
		time.Sleep(max(o.cores.take(work), o.f.bytes.take(o.share)))
	}
	return o.BlobStore.Get(ctx, key, off, n)
}

// fillWeek fills an account, and returns the bytes of its blobs in an hour.
func fillWeek(t *testing.T, a *scale.Account, begin time.Time) (hour float64) {
	enc, err := blobfmt.NewEncoder(blobfmt.EncoderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all, made := 0, uint64(0)
	for h := range weekHours {
		for n := range weekServices {
			enc.Reset()
			made++
			var id blobfmt.BatchID
			binary.BigEndian.PutUint64(id[8:], made)
			for i, after := range []time.Duration{0, time.Hour - time.Nanosecond} {
				at := begin.Add(time.Duration(h)*time.Hour + after).UnixNano()
				const form = `{"ts":"%s","level":"info","service":"%s","msg":"a timeout"}` + "\n"
				line := fmt.Sprintf(form, record.AppendTime(nil, at), serviceName(n))
				if err := enc.Add([]byte(line), at, record.Origin(id), uint32(i)); err != nil {
					t.Fatal(err)
				}
			}
			body, meta, err := enc.Finish(id)
			if err != nil {
				t.Fatal(err)
			}
			all += len(body)
			name := blobfmt.Name{Service: serviceName(n), Period: begin.Add(time.Duration(h) * time.Hour), Number: 1}
			a.Add(name.String(), body, storage.Attrs{Metadata: meta.Map()})
		}
	}
	free, err := a.OpenFree()
	if err == nil {
		_, err = storeid.Ensure(t.Context(), free)
	}
	if err != nil {
		t.Fatal(err)
	}
	return float64(all) / weekHours
}

// shared is one question of the case.
type shared struct {
	Workers  int     `json:"workers"`
	Gbits    float64 `json:"account_gbit_s"`
	Hours    float64 `json:"hours"` // of the case
	Seconds  float64 `json:"seconds"`
	Parts    float64 `json:"parts_of_workers"`
	Requests float64 `json:"requests_of_workers"`
	Asker    int64   `json:"requests_of_asker"`
	Stored   float64 `json:"stored_bytes_of_workers"`
	Limit    string  `json:"limited_by,omitempty"`
}

// run asks for the count of the week.
func run(t *testing.T, a *scale.Account, begin time.Time, hour float64, f *fleet, workers int, gbits float64, span time.Duration) shared {
	t.Helper()
	f.knows, f.parts, f.stored, f.gotten = map[string]map[int64]bool{}, 0, 0, 0
	f.bytes, f.requests = &meter{rate: gbits / 8 * 1e9}, &meter{rate: 20_000}
	var places []string
	for n := range workers {
		places = append(places, fmt.Sprintf("http://w%d", n))
	}
	o := fan.Options{Part: int64(part * hour / hourStored), Remote: remote.Options{Transport: f}}
	o.Failed = func(worker string, err error) { t.Errorf("%s: %v", worker, err) }
	store, err := a.Open()
	if err != nil {
		t.Fatal(err)
	}
	slices := 1.0
	if workers > 0 {
		slices = math.Floor(16 * hourStored / weekServices / part)
	}
	of := reading.OpenOptions{Tables: store, Now: time.Now, Distant: true, Unasked: true, Tail: tailindex.Options{Prefix: "tail"}}
	of.Blobs = &own{store, f, &meter{rate: f.cores}, hourStored / weekServices / slices}
	if workers > 0 {
		if of.Sharing, err = fan.New(places, o); err != nil {
			t.Fatal(err)
		}
	}
	r, err := reading.Open(of)
	if err != nil {
		t.Fatal(err)
	}
	before, started := a.Counts(), time.Now()
	q := reading.Ask{Services: []string{"*"}, Texts: []string{"a timeout"}}
	q.Range = blobs.Range{From: begin.UnixNano(), To: begin.Add(span).UnixNano()}
	out, err := r.For(nil).Count(t.Context(), q)
	if err != nil || !out.Complete() {
		t.Fatal(err, out.Problems())
	}
	s := shared{Workers: workers, Gbits: gbits, Hours: span.Hours(), Parts: f.parts, Stored: f.stored}
	s.Seconds = time.Since(started).Seconds()
	c := a.Counts().Since(before)
	s.Requests, s.Asker = f.parts*f.lists+f.gotten, c.List+c.Get+c.Head
	if s.Seconds > 0 {
		most := max(f.bytes.all/f.bytes.rate, f.requests.all/f.requests.rate)
		if most > 0.9*s.Seconds {
			s.Limit = map[bool]string{true: "requests of the account", false: "bits of the account"}[f.requests.all/f.requests.rate == most]
		}
	}
	return s
}

// TestScaleWorkers has a week of a terabyte a day counted by a text, with workers: the asker, its plan,
// its listings and what it reads itself are the code of production, in virtual time. The workers are
// simulated: each takes the CPU that this machine takes for so many bytes, and what a real worker waits
// for the account, which is measured by one.
func TestScaleWorkers(t *testing.T) {
	dir := os.Getenv("BLOBTAIL_SCALE")
	if dir == "" {
		t.Skip("BLOBTAIL_SCALE is not set")
	}
	speed := measureSpeed(t)
	t.Logf("a worker of 2 cores: %.2f GB/s of lines, %.2f GB/s over TLS; an asker of 2 cores shows %.2f GB/s",
		2e-9/speed.Scan, 2e-9/speed.TLS, 2e-9/speed.Show)
	var all []shared
	f := &fleet{speed: speed, cores: 2}
	synctest.Test(t, func(t *testing.T) {
		a := scale.New(scale.Options{})
		begin := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -9)
		hour := fillWeek(t, a, begin)
		f.measure(t, a, begin)
		t.Logf("a part has %.0f LISTs and others, and waits %v for the account", f.lists, f.waits)
		for _, c := range []shared{
			{Workers: 50, Gbits: 200, Hours: weekHours}, {Workers: 50, Gbits: 50, Hours: weekHours},
			{Workers: 0, Gbits: 200, Hours: 24}, {Workers: 1, Gbits: 200, Hours: 24}, {Workers: 3, Gbits: 200, Hours: 24},
			{Workers: 15, Gbits: 200, Hours: 24}, {Workers: 16, Gbits: 200, Hours: 24},
		} {
			s := run(t, a, begin, hour, f, c.Workers, c.Gbits, time.Duration(c.Hours)*time.Hour)
			t.Logf("%+v", s)
			all = append(all, s)
		}
	})
	if s := all[0].Seconds; s > 150 {
		t.Errorf("7 TB take %.0f s", s)
	}
	if faster := all[2].Seconds / all[5].Seconds; faster < 12 {
		t.Errorf("16 machines are %.1f times as fast as one", faster)
	}
	parts := map[string]any{"speed": speed, "lists_of_a_part": f.lists, "waits_of_a_part_s": f.waits.Seconds(), "questions": all}
	file, err := scale.Update(dir, map[string]any{"workers": parts})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("written to %s", file)
}

// measure has a real worker read some parts, without work of a CPU.
func (f *fleet) measure(t *testing.T, a *scale.Account, begin time.Time) {
	t.Helper()
	store, err := a.Open()
	if err != nil {
		t.Fatal(err)
	}
	of := reading.OpenOptions{Blobs: store, Tables: store, Now: time.Now, Distant: true, Unasked: true, KeepIndexes: true}
	of.Tail.Prefix = "tail"
	r, err := reading.Open(of)
	if err != nil {
		t.Fatal(err)
	}
	id, err := storeid.Read(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	worker := api.New(api.Options{Reader: r, Forms: "json"})
	const parts = 4
	var c scale.Counts
	var took time.Duration
	for n := range parts {
		before, started := a.Counts(), time.Now()
		from := begin.Add(time.Duration(n) * time.Hour)
		path := fmt.Sprintf("/api/v1/%s?joint=%%7B%%22Count%%22:true%%7D&service=*&text=a+timeout&from=%s&to=%s&part=3.%s.0", form.Parts,
			from.Format(time.RFC3339), from.Add(59*time.Minute).Format(time.RFC3339), id)
		w := httptest.NewRecorder()
		worker.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		var part form.Part
		if err := gob.NewDecoder(w.Body).Decode(&part); err != nil || !part.Complete {
			t.Fatalf("%s: %v, %d: %+v", path, err, w.Code, part.Outcome)
		}
		took += time.Since(started)
		more := a.Counts().Since(before)
		c.List, c.Get, c.Head = c.List+more.List, c.Get+more.Get, c.Head+more.Head
	}
	t.Logf("%d parts of a real worker: %+v, %v", parts, c, took)
	f.lists, f.waits = float64(c.List+c.Head+c.Get)/parts-weekServices, took/parts
}
