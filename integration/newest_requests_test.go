package integration_test

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
	"blobtail/internal/dev/testkit/meter"
	"blobtail/record"
	"blobtail/tailindex"
)

// metered returns a place with all its requests recorded.
func metered(t testing.TB, at place) (through place, blobs, tables *meter.Proxy) {
	t.Helper()
	a := shared.Azurite(t)
	through = place{store: at.store, env: slices.Clone(at.env)}
	lay := func(endpoint string) *meter.Proxy {
		u, err := url.Parse(endpoint)
		if err != nil {
			t.Fatal(err)
		}
		m, err := meter.New(u.Host)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Close)
		through.env[0] = strings.ReplaceAll(through.env[0], u.Host, m.Address())
		return m
	}
	return through, lay(a.BlobURL), lay(a.TableURL)
}

// logquery tail web -n 100 asks each shard of the tail at most twice, today's table
// and yesterday's. It reads few blobs, however many there are.
func TestRequestsOfTail(t *testing.T) {
	t.Parallel()
	at, _ := azureStore(t)
	h := newHouse(t, at, 3)
	// Other tests, with stores that have these tables too, do not use this service.
	service := testenv.Name("s")
	fillOldAndNew(t, h, service)
	through, blobs, tables := metered(t, at)
	asking := through
	asking.env = append(slices.Clone(through.env), h.read.env[len(h.read.env)-1])
	for _, row := range []struct {
		name   string
		at     place
		n      int
		shard  int // queries of a shard, at most
		blobs  int // requests for blobs, at most
		newest bool
	}{
		// Four of the blob requests read the expired days: two before the first
		// query, and two concurrently with the read. If no ingester can be asked, two or
		// three guess the newest hour meanwhile. Three look for days after today.
		{"rows", through, 100, 2, 14, true},
		{"live", asking, 100, 2, 11, true},
		{"one", asking, 1, 2, 11, true},
		{"blobs", through, 1000, 4, 40, false}, // 460 of them, 50 in each
	} {
		var out []byte
		var errs string
		var code, shards, most, others int
		var asked, reads []meter.Request
		few := func() bool {
			return shards <= tailindex.DefaultShards && most <= row.shard && others <= 2 && len(reads) <= row.blobs
		}
		// A client asks once more when a busy machine is late, so a read has some tries.
		for try := 0; try < 5 && (try == 0 || code != 0 || !few()); try++ {
			blobs.Take()
			tables.Take()
			out, errs, code = answered(t, row.at, "tail", service, "-n", fmt.Sprint(row.n))
			asked, reads = tables.Take(), blobs.Take()
			shards, most, others = byShard(asked, service)
		}
		if lines := strings.Count(string(out), "\n"); code != 0 || lines != row.n {
			t.Errorf("%s: exit code %d with %d lines: %s", row.name, code, lines, errs)
		}
		var last int64
		for line := range strings.Lines(string(out)) {
			at, _ := record.LineTime([]byte(line))
			if at < last || row.newest && !strings.Contains(line, `"msg":"new`) {
				t.Errorf("%s: not among the newest, or out of order: %s", row.name, line)
			}
			last = at
		}
		t.Logf("%s: %d queries of %d shards and %d more of tables, %d requests for blobs", row.name, len(asked)-others, shards, others, len(reads))
		if !few() {
			t.Errorf("%s: %d queries of one shard: %.2000q; %.2000q", row.name, most, asked, reads)
		}
	}
}

// fillOldAndNew makes two days of blobs, one an hour with 50 records, and 540 new
// records in rows and logs.
func fillOldAndNew(t *testing.T, h *house, service string) {
	post := func(i int, at int64, n int, id string) {
		var body []byte
		for k := range n {
			body = appendRecord(body, at+int64(k), fmt.Sprintf("%s-%d", id, k), "what is said")
		}
		h.p(i%3).mustPost("/ingest/"+service, body)
	}
	for i := range 48 {
		post(i, time.Now().Add(-time.Duration(i+2)*time.Hour).UnixNano(), 50, fmt.Sprintf("old%d", i))
	}
	for i := range 3 {
		h.p(i).mustFlush()
	}
	for round := range 3 {
		for i := range 3 {
			post(i, time.Now().UnixNano(), 60, fmt.Sprintf("new%d-%d", round, i))
		}
		time.Sleep(1100 * time.Millisecond) // one row each
	}
	rows := tailReader(t, h.at)
	testkit.Until(t, "the rows are there", func() bool {
		all, err := rows.Written(t.Context(), service, false, time.Now().Add(-time.Hour))
		told := 0
		for _, r := range all {
			told += r.Count
		}
		return err == nil && told >= 3*3*60
	})
}

var partitionOf = regexp.MustCompile(`PartitionKey eq '([^']*)'`)

// byShard counts queries by shard: the number of shards of a service, the most
// queries of one shard, and the queries that are not about its shards.
func byShard(asked []meter.Request, service string) (shards, most, others int) {
	count := map[string]int{}
	for _, r := range asked {
		if m := partitionOf.FindStringSubmatch(r.Query); m != nil && strings.HasPrefix(m[1], service+"~") {
			count[m[1]]++
			most = max(most, count[m[1]])
		} else {
			others++
		}
	}
	return len(count), most, others
}
