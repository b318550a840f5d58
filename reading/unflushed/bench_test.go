package unflushed_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"testing"
	"time"

	"blobtail/internal/lease"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
	"blobtail/reading/unflushed/live"
	"blobtail/storage/mem"
)

// canned answers each question of a follower with the next of some answers.
type canned struct {
	answers [][]byte
	next    int
	end     func()
}

// RoundTrip implements [http.RoundTripper].
func (c *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	header := http.Header{
		"Content-Type": {"text/plain"}, "Blobtail-Ingester": {"00000001"}, "Blobtail-Process": {"10000000"}, "Blobtail-Store": {storeID},
		"Blobtail-Snapshots": {"00000001.10000000"}, "Blobtail-Positions": {fmt.Sprintf("00000001.%x", c.next+1)},
	}
	body := []byte("end 0 0 0\n")
	if r.URL.Query().Get("after") != "now" {
		if c.next < len(c.answers) {
			body = c.answers[c.next]
			c.next++
		} else {
			c.end()
		}
	}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, nil
}

func processor() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// The cost of a follower for each record, from the bytes of an answer to Emit.
func BenchmarkFollow(b *testing.B) {
	const polls, each = 40, 10_000 // 50,000 records/s at five polls a second
	now := time.Now().UnixNano()
	var answers [][]byte
	for p := range polls {
		var text bytes.Buffer
		for i := range each {
			e := entryAt(now+int64(p*each+i)*20_000, 1, "web")
			fmt.Fprintf(&text, "%032x %d %s", p, i, bytes.Replace(e.Line, []byte(`"1"`), []byte(`"GET /api/v1/orders/4711 200 in 12.3 ms","client":"10.1.2.3","trace":"4bf92f3577b34da6a3ce929d0e0e4736"`), 1))
		}
		fmt.Fprintf(&text, "end %d 0 0\n", each)
		answers = append(answers, text.Bytes())
	}
	var took time.Duration
	for b.Loop() {
		ctx, cancel := context.WithCancel(b.Context())
		wire := &canned{answers: answers, end: cancel}
		client, err := live.NewClient("http://ingester", live.ClientOptions{HTTP: &http.Client{Transport: wire}})
		if err != nil {
			b.Fatal(err)
		}
		r := unflushed.New(unflushed.Options{
			Blobs: blobs.New(mem.New(mem.Options{}), blobs.Options{}), Live: client, Pace: 20 * time.Millisecond,
			Store:     func(context.Context) (string, error) { return storeID, nil },
			Ingesters: func(context.Context) ([]lease.Ingester, time.Time, error) { return nil, time.Now(), nil },
		})
		lines := 0
		before := processor()
		_, err = r.Follow(ctx, unflushed.FollowOptions{
			Query: blobs.Query{Services: []string{"web"}, Range: blobs.Always()},
			Emit: func(text []byte) error {
				lines += bytes.Count(text, []byte("\n"))
				return nil
			},
		})
		took += processor() - before
		if lines != polls*each {
			b.Fatalf("%d records were given out: %v", lines, err)
		}
	}
	b.ReportMetric(took.Seconds()/float64(b.N*polls*each)*1e6, "CPU-s/million")
}
