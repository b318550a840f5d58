package scale_test

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"blobtail/blobfmt"
	"blobtail/internal/dev/scale"
	"blobtail/internal/dev/testkit"
	"blobtail/storage/storagetest"
)

// ingester is a process of the command ingest that stores in an account. Its time is real.
type ingester struct {
	t             *testing.T
	account       *scale.Account
	binary, dir   string
	blobs, tables string // URLs
	listen, admin string
	process       *exec.Cmd
}

// ingesterStats are the results of an ingester with many services.
type ingesterStats struct {
	Services int `json:"services"`
	// Records is what the services had in the log when all of it was flushed.
	Records      int64   `json:"records"`
	RSSMB        float64 `json:"rss_mb"`
	FlushSeconds float64 `json:"flush_seconds"`
	PutsAtOnce   int     `json:"puts_at_once"`
}

// startStats are the results of a start with a full log.
type startStats struct {
	LogBytes     int64   `json:"log_bytes"`
	ReadySeconds float64 `json:"ready_seconds"`
	// DrainSeconds is the time until all of the log was stored, from the start of the process.
	DrainSeconds float64 `json:"drain_seconds"`
	RSSMB        float64 `json:"rss_mb"`
}

// outageStats are the results of a time of 503.
type outageStats struct {
	Seconds         float64 `json:"seconds"`
	Records         int64   `json:"records"` // sent during the outage
	Lost            int64   `json:"lost"`
	Refused         int64   `json:"refused_requests"`
	RSSMB           float64 `json:"rss_mb"`
	RecoverySeconds float64 `json:"recovery_seconds"`
}

func newIngester(t *testing.T) *ingester {
	in := &ingester{t: t, account: scale.New(scale.Options{}), binary: testkit.Command(t, "../../..", "ingest"), dir: t.TempDir()}
	blobs, tables := httptest.NewServer(in.account.Blobs()), httptest.NewServer(in.account.Tables())
	t.Cleanup(blobs.Close)
	t.Cleanup(tables.Close)
	in.blobs, in.tables = blobs.URL, tables.URL
	in.listen, in.admin = free(t), free(t)
	return in
}

// free is an address that nobody listens at.
func free(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start starts the process, with as many cores as it takes for 16 PUTs at once.
func (in *ingester) start() {
	in.t.Helper()
	config := filepath.Join(in.dir, "ingest.yaml")
	if err := os.WriteFile(config, []byte("limits: {new-services: 0}\n"), 0o600); err != nil {
		in.t.Fatal(err)
	}
	in.process = exec.Command(in.binary, "--config", config, "--store", "azure:scale/logs", "--wal", filepath.Join(in.dir, "wal"), "--listen", in.listen, "--admin", in.admin,
		"--advertise", "http://"+in.listen)
	in.process.Env = append(os.Environ(), "GOMAXPROCS=8", "AZURE_STORAGE_ACCOUNT=scale", "AZURE_STORAGE_KEY="+scale.Getenv("AZURE_STORAGE_KEY"),
		"AZURE_STORAGE_BLOB_ENDPOINT="+in.blobs, "AZURE_STORAGE_TABLE_ENDPOINT="+in.tables)
	log, err := os.OpenFile(filepath.Join(in.dir, "ingest.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		in.t.Fatal(err)
	}
	in.process.Stderr = log
	if err := in.process.Start(); err != nil {
		in.t.Fatal(err)
	}
	process := in.process
	in.t.Cleanup(func() { _ = process.Process.Kill(); _ = process.Wait(); _ = log.Close() })
	testkit.Until(in.t, "the ingester is ready", func() bool {
		resp, err := http.Get("http://" + in.admin + "/readyz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// send sends some records of each service, in requests of a thousand services.
func (in *ingester) send(services, records int) (sent int64) {
	lines := scale.NewLines(uint64(time.Now().UnixNano()))
	for first := 0; first < services; first += 1000 {
		var body []byte
		for n := first; n < min(services, first+1000); n++ {
			for range records {
				body = lines.Append(body, serviceName(n), time.Now())
				sent++
			}
		}
		resp, err := http.Post("http://"+in.listen+"/ingest", "application/x-ndjson", bytes.NewReader(body))
		if err != nil {
			in.t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode/100 != 2 {
			in.t.Fatalf("send: %s", resp.Status)
		}
	}
	return sent
}

// flush has all records stored, and returns how long that took.
func (in *ingester) flush() time.Duration {
	in.t.Helper()
	begun := time.Now()
	for {
		resp, err := http.Post("http://"+in.admin+"/flush", "", nil)
		if err != nil {
			in.t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return time.Since(begun)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// rss is the greatest memory of the process so far, in MB.
func (in *ingester) rss() float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", in.process.Process.Pid))
	if err != nil {
		in.t.Skip("this system does not tell the memory of a process")
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	fields := strings.Fields(rest)
	kb, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		in.t.Fatal(err)
	}
	return kb / 1000
}

// stored is the number of records in blobs.
func (in *ingester) stored() (records int64) {
	s, err := in.account.OpenFree()
	if err != nil {
		in.t.Fatal(err)
	}
	for _, b := range storagetest.Objects(in.t, s, "") {
		if meta, err := blobfmt.ParseMeta(b.Metadata); err == nil {
			records += meta.Records
		}
	}
	return records
}

// An ingester with 10,000 services flushes them, keeps its records through an outage of the store,
// and starts with a full log. BLOBTAIL_SCALE_OUTAGE is the length of the outage (10m), and
// BLOBTAIL_SCALE_LOG the bytes of the log.
func TestScaleManyServices(t *testing.T) {
	dir := os.Getenv("BLOBTAIL_SCALE")
	if dir == "" {
		t.Skip("BLOBTAIL_SCALE names no directory for the results (make scale)")
	}
	const services = 10_000
	in := newIngester(t)
	in.start()
	sent := in.send(services, 50)
	many := ingesterStats{Services: services, Records: sent, PutsAtOnce: 16, FlushSeconds: in.flush().Seconds(), RSSMB: in.rss()}
	if n := in.stored(); n != sent {
		t.Errorf("%d of %d records are in blobs", n, sent)
	}
	t.Logf("%+v", many)
	if many.RSSMB > 400 || many.FlushSeconds > 60 {
		t.Errorf("an ingester with %d services takes %.0f MB and %.1f s", services, many.RSSMB, many.FlushSeconds)
	}
	length, err := time.ParseDuration(cmp.Or(os.Getenv("BLOBTAIL_SCALE_OUTAGE"), "10m"))
	if err != nil {
		t.Fatal(err)
	}
	before := in.account.Counts().Refused
	in.account.SetDown(true)
	var out outageStats
	for begun := time.Now(); time.Since(begun) < length; time.Sleep(10 * time.Second) {
		out.Records += in.send(services, 1)
	}
	out.Refused = in.account.Counts().Refused - before
	in.account.SetDown(false)
	out.Seconds, out.RecoverySeconds, out.RSSMB = length.Seconds(), in.flush().Seconds(), in.rss()
	out.Lost = sent + out.Records - in.stored()
	t.Logf("%+v", out)
	if out.Lost != 0 || out.RSSMB > 400 {
		t.Errorf("an outage: %+v", out)
	}
	update(t, dir, map[string]any{"ingester": many, "outage": out})
}

// A start with a log of many bytes, which the ingester before it could not store.
func TestScaleStart(t *testing.T) {
	dir := os.Getenv("BLOBTAIL_SCALE")
	if dir == "" {
		t.Skip("BLOBTAIL_SCALE names no directory for the results (make scale)")
	}
	wanted, err := strconv.ParseInt(cmp.Or(os.Getenv("BLOBTAIL_SCALE_LOG"), "10000000000"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	in := newIngester(t)
	in.start()
	in.send(200, 1) // its row says that it holds records
	in.account.SetDown(true)
	sent := int64(200)
	for size := int64(0); size < wanted; size = in.logBytes() {
		sent += in.send(200, 200)
	}
	_ = in.process.Process.Kill()
	_ = in.process.Wait()
	in.account.SetDown(false)
	s := startStats{LogBytes: in.logBytes()}
	begun := time.Now()
	in.start()
	s.ReadySeconds = time.Since(begun).Seconds()
	in.flush()
	s.DrainSeconds, s.RSSMB = time.Since(begun).Seconds(), in.rss()
	if n := in.stored(); n != sent {
		t.Errorf("%d of %d records are in blobs", n, sent)
	}
	t.Logf("%+v", s)
	update(t, dir, map[string]any{"start": s})
}

// logBytes is the size of the log.
func (in *ingester) logBytes() (n int64) {
	_ = filepath.Walk(filepath.Join(in.dir, "wal"), func(_ string, info os.FileInfo, err error) error {
		if err == nil && strings.HasSuffix(info.Name(), ".seg") {
			n += info.Size()
		}
		return nil
	})
	return n
}
