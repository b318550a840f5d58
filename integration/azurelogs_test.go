package integration_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"blobtail/internal/azurelogs/logstest"
	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
)

// An hour of each kind must come back whole, each record once, in order, with every
// field. All other forms of reads must agree.
func TestAzureLogsHour(t *testing.T) {
	t.Parallel()
	for _, k := range azureKinds() {
		t.Run(k.name, func(t *testing.T) {
			hour, lines := growingHour(), testkit.Setting("BLOBTAIL_AZURE_LINES", 25_000)
			// A blob of either kind is read in several parts.
			logs := k.compose(logstest.Options{Seed: newSeed(t), Hour: hour, Lines: lines, BlobLines: lines / 5, Unfinished: true})
			at, _ := azureDir(t, logs.Blobs)
			out, _ := readTo(t, at, 0, "read", k.service, "-o", "json")
			compareRecords(t, out, k.service, logs.Want)
			azureCounts(t, at, k.service, logs.Want)
			azureNewest(t, at, k.service, logs.Want)
			azureHist(t, at, k.service, logs.Want)
			azureRanges(t, at, k.service, logs.Want, hour)
		})
	}
}

// azureCounts counts all records, those of each level, and those with a text.
func azureCounts(t *testing.T, at place, service string, want []logstest.Record) {
	t.Helper()
	if n := count(t, at, "read", service); n != len(want) {
		t.Errorf("--count prints %d, want %d", n, len(want))
	}
	for _, level := range []string{"trace", "debug", "warn"} {
		some := selected(want, func(r logstest.Record) bool { return r.Level == level })
		if n := count(t, at, "read", service, "--level", level); n != len(some) {
			t.Errorf("--level %s: %d records, want %d", level, n, len(some))
		}
	}
	errors := selected(want, func(r logstest.Record) bool { return r.Level == "error" || r.Level == "critical" })
	out, _ := readTo(t, at, 0, "read", service, "--level", "error+", "-o", "json")
	compareRecords(t, out, service, errors)
	id := ""
	for _, r := range want { // some record's own id
		if id = fmt.Sprint(cmp.Or(r.Fields()["request-id-header"], r.Fields()["correlationId"])); id != "<nil>" {
			break
		}
	}
	for _, text := range []string{"GetBlobProperties", id} {
		out, _ := readTo(t, at, 0, "read", service, "-F", text, "-o", "json")
		compareRecords(t, out, service, having(want, text))
	}
}

// azureNewest reads the end.
func azureNewest(t *testing.T, at place, service string, want []logstest.Record) {
	t.Helper()
	some := newest(want, 100)
	out, _ := readTo(t, at, 0, "read", service, "-n", strconv.Itoa(len(some)), "-o", "json")
	compareRecords(t, out, service, some)
	slices.Reverse(some)
	out, _ = readTo(t, at, 0, "read", service, "-n", strconv.Itoa(len(some)), "-r", "-o", "json")
	compareRecords(t, out, service, some)
	slices.Reverse(some)
	some = newest(want, 50)
	out, _ = readTo(t, at, 0, "tail", service, "-n", strconv.Itoa(len(some)), "-o", "json")
	compareRecords(t, out, service, some)
}

// azureHist compares counts by minute and level.
func azureHist(t *testing.T, at place, service string, want []logstest.Record) {
	t.Helper()
	left := map[string]int{}
	for _, r := range want {
		left[r.TS[:16]+" "+r.Level]++
	}
	for line := range strings.Lines(string(query(t, at, "hist", service, "--by", "1m", "-o", "json"))) {
		var b struct {
			TS     string
			Levels map[string]int
		}
		if err := json.Unmarshal([]byte(line), &b); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		for level, n := range b.Levels {
			minute := b.TS[:16] + " " + level
			if left[minute] -= n; left[minute] == 0 {
				delete(left, minute)
			}
		}
	}
	if len(left) > 0 {
		t.Errorf("hist: these are too few, or too many if negative: %v", left)
	}
}

// azureRanges reads parts of the time. A record that came hours later than its time is
// found by a read that allows for so much.
func azureRanges(t *testing.T, at place, service string, want []logstest.Record, hour time.Time) {
	t.Helper()
	window := func(from, to time.Duration, args ...string) []string {
		return append([]string{"read", service, "-o", "json", "--from", hour.Add(from).Format(time.RFC3339), "--to", hour.Add(to).Format(time.RFC3339)}, args...)
	}
	for _, w := range [][2]time.Duration{{10 * time.Minute, 20 * time.Minute}, {-time.Hour, 0}, {50 * time.Minute, 2 * time.Hour}} {
		some := between(want, hour.Add(w[0]), hour.Add(w[1]))
		out, _ := readTo(t, at, 0, window(w[0], w[1])...)
		compareRecords(t, out, service, some)
	}
	late := between(want, hour.Add(-5*time.Hour), hour.Add(-3*time.Hour))
	if len(late) == 0 {
		return // these logs have none
	}
	readTo(t, at, 1, window(-5*time.Hour, -3*time.Hour)...)
	out, _ := readTo(t, at, 0, window(-5*time.Hour, -3*time.Hour, "--late", "5h")...)
	compareRecords(t, out, service, late)
}

// A malformed line must be named, with exit code 3, and cost no other line. So is one that
// was cut, since its hour is over.
func TestAzureLogsMalformed(t *testing.T) {
	t.Parallel()
	for _, k := range azureKinds() {
		t.Run(k.name, func(t *testing.T) {
			seed := newSeed(t)
			for i := range uint64(testkit.Setting("BLOBTAIL_AZURE_SEEDS", 2)) {
				logs := k.compose(logstest.Options{Seed: seed + i, Hour: pastHour(), Lines: 2000, Malformed: 8, BlobLines: 700, Unfinished: true})
				logs.Malformed = append(logs.Malformed, logs.Cut...) // the rest never comes
				at, _ := azureDir(t, logs.Blobs)
				out, stderr := readTo(t, at, 3, "read", k.service, "-o", "json")
				compareRecords(t, out, k.service, logs.Want)
				named(t, stderr, logs.Malformed)
				if _, _, code := answered(t, at, "read", k.service, "--count"); code != 3 {
					t.Errorf("--count exits %d", code)
				}
			}
		})
	}
}

// A blob of Azure Monitor grows between reads. Each read must have the lines that are
// whole, also a last one without its newline, and must not call the blob incomplete.
func TestAzureLogsGrow(t *testing.T) {
	t.Parallel()
	seed := newSeed(t)
	r := rand.New(rand.NewPCG(seed, 3))
	logs := logstest.Resource(logstest.Options{Seed: seed, Hour: growingHour(), Lines: 3000, Unfinished: true})
	at, root := azureDir(t, nil)
	lengths := map[string]int{}
	for range 8 {
		for _, b := range logs.Blobs {
			end := lengths[b.Key] + r.IntN(len(b.Body)-lengths[b.Key]+1)
			line := bytes.LastIndexByte(b.Body[:end], '\n')
			switch r.IntN(4) {
			case 0:
				end = max(line+1, lengths[b.Key]) // no part of a line
			case 1:
				end = max(line, lengths[b.Key]) // only the newline is missing
			}
			lengths[b.Key] = end
			b.Body = b.Body[:lengths[b.Key]]
			if err := logstest.Write(root, []logstest.Blob{b}); err != nil {
				t.Fatal(err)
			}
		}
		want, code := written(logs.Want, lengths), 0
		if len(want) == 0 {
			code = 1
		}
		out, stderr := readTo(t, at, code, "read", "storageread", "-o", "json", "-q")
		compareRecords(t, out, "storageread", want)
		if stderr != "" && code == 0 {
			t.Errorf("notes: %s", stderr)
		}
	}
}

// An hour of Storage Analytics gets more blobs, with duplicates of lines in earlier ones.
func TestAzureLogsMoreBlobs(t *testing.T) {
	t.Parallel()
	logs := logstest.Classic(logstest.Options{Seed: newSeed(t), Hour: pastHour(), Lines: 3000, BlobLines: 500})
	at, root := azureDir(t, nil)
	lengths := map[string]int{}
	for _, b := range logs.Blobs {
		if err := logstest.Write(root, []logstest.Blob{b}); err != nil {
			t.Fatal(err)
		}
		lengths[b.Key] = len(b.Body)
		out, _ := readTo(t, at, 0, "read", "logsamples.blob", "-o", "json")
		compareRecords(t, out, "logsamples.blob", written(logs.Want, lengths))
	}
}

// A flow log is one JSON object with an array of records.
func TestAzureLogsFlow(t *testing.T) {
	t.Parallel()
	const service = "networksecuritygroupflowevent"
	for _, spread := range []bool{false, true} {
		logs := logstest.FlowLog(logstest.Options{Seed: newSeed(t), Hour: pastHour(), Lines: 300}, spread)
		at, _ := azureDir(t, logs.Blobs)
		out, _ := readTo(t, at, 0, "read", service, "-o", "json")
		compareRecords(t, out, service, logs.Want)
	}
}

// A directory may hold several containers, or the contents of one under any name.
func TestAzureLogsContainers(t *testing.T) {
	t.Parallel()
	o := logstest.Options{Seed: newSeed(t), Hour: pastHour(), Lines: 1000}
	var all []logstest.Blob
	total := 0
	want := map[string]logstest.Logs{}
	for _, k := range azureKinds() {
		want[k.service] = k.compose(o)
	}
	o.Service = "queue"
	want["logsamples.queue"] = logstest.Classic(o)
	for _, logs := range want {
		all = append(all, logs.Blobs...)
		total += len(logs.Want)
	}
	at, root := azureDir(t, all)
	if n := count(t, at, "read", "*"); n != total {
		t.Errorf("%d records of all services, want %d", n, total)
	}
	listing := string(query(t, at, "ls"))
	for service, logs := range want {
		out, _ := readTo(t, at, 0, "read", service, "-o", "json")
		compareRecords(t, out, service, logs.Want)
		if !strings.Contains(listing, service) {
			t.Errorf("ls does not list %s:\n%s", service, listing)
		}
		name := logs.Blobs[0].Container
		renamed := filepath.Join(t.TempDir(), "copy")
		if err := os.CopyFS(renamed, os.DirFS(filepath.Join(root, name))); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{filepath.Join(root, name), renamed} {
			out, _ := readTo(t, place{store: "azurelogs:dir:" + path}, 0, "read", service, "-o", "json")
			compareRecords(t, out, service, logs.Want)
		}
	}
}

// Azurite serves both kinds: append blobs, with one that grows, and block blobs. Azurite has no
// $logs, so the classic logs are in a container of another name.
func TestAzureLogsAzurite(t *testing.T) {
	t.Parallel()
	shared.emulated <- struct{}{}
	t.Cleanup(func() { <-shared.emulated })
	a := shared.Azurite(t)
	o := logstest.Options{Seed: newSeed(t), Hour: growingHour(), Lines: 3000, BlobLines: 1000, Account: a.Account, Unfinished: true}
	env := []string{"AZURE_STORAGE_CONNECTION_STRING=" + a.ConnectionString}

	copied := testenv.Name("logs")
	c := newContainer(t, a, copied)
	classic := logstest.Classic(o)
	for _, b := range classic.Blobs {
		metadata := map[string]*string{}
		for k, v := range b.Metadata {
			metadata[k] = &v
		}
		if _, err := c.NewBlockBlobClient(b.Key).UploadBuffer(t.Context(), b.Body, &blockblob.UploadBufferOptions{Metadata: metadata}); err != nil {
			t.Fatal(err)
		}
	}
	service := a.Account + ".blob"
	at := place{store: "azurelogs:" + a.Account + "/" + copied, env: env}
	out, _ := readTo(t, at, 0, "read", service, "-o", "json")
	compareRecords(t, out, service, classic.Want)
	azureRanges(t, at, service, classic.Want, o.Hour)

	resource := logstest.Resource(o)
	name := resource.Blobs[0].Container
	c = newContainer(t, a, name)
	lengths := map[string]int{}
	for _, part := range []float64{0.4, 0.8, 1} {
		for _, b := range resource.Blobs {
			end := int(part * float64(len(b.Body)))
			appendTo(t, c.NewAppendBlobClient(b.Key), b.Body[lengths[b.Key]:end], lengths[b.Key] == 0)
			lengths[b.Key] = end
		}
		for _, store := range []string{"azurelogs:" + a.Account, "azurelogs:" + a.Account + "/" + name} {
			out, _ := readTo(t, place{store: store, env: env}, 0, "read", "storageread", "-o", "json")
			compareRecords(t, out, "storageread", written(resource.Want, lengths))
		}
	}

	own := place{store: "azure:" + testenv.Name("imported"), env: append(env, "BLOBTAIL_WAL="+filepath.Join(t.TempDir(), "wal"))}
	all := place{store: "azurelogs:" + a.Account, env: env}
	for range 2 {
		imports(t, at, own, service, 0)
		imports(t, all, own, "storageread", 0)
		imported(t, own, service, classic.Want)
		imported(t, own, "storageread", resource.Want)
	}
}

func newContainer(t *testing.T, a *testenv.Azurite, name string) *container.Client {
	t.Helper()
	key, err := container.NewSharedKeyCredential(a.Account, testenv.Key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := container.NewClientWithSharedKeyCredential(a.BlobURL+"/"+name, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return c
}

// appendTo appends in small blocks, as Azure Monitor does.
func appendTo(t *testing.T, b *appendblob.Client, body []byte, create bool) {
	t.Helper()
	if create {
		if _, err := b.Create(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	for block := range slices.Chunk(body, 256<<10) {
		if _, err := b.AppendBlock(t.Context(), nopCloser{bytes.NewReader(block)}, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// nopCloser is a reader that azblob may seek and close.
type nopCloser struct{ io.ReadSeeker }

func (nopCloser) Close() error { return nil }
