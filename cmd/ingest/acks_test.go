package main

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/internal/config"
	"blobtail/record/ack"
)

// acked sends the request of a route, and returns the status and the header Ack of the answer.
func (r route) acked(t *testing.T, address, token, header string) (status int, says string) {
	t.Helper()
	q, err := http.NewRequest(r.method, "http://"+address+r.path, strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", r.kind)
	q.Header.Set("Authorization", "Bearer "+token)
	q.Header.Set("Ack", header)
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Header.Get("Ack")
}

// Each protocol keeps the level that a setting, a service or a token asks for, says so in its answer,
// and is answered only when the records are there. A header asks for more, and not for less.
func TestAckBehindEachDoor(t *testing.T) {
	const plain, strict = "plain.s3cret-plain", "strict.s3cret-strict"
	for name, c := range map[string]struct {
		change        func(c *config.Config)
		token, header string
		says          string
	}{
		"nobody asks":            {func(*config.Config) {}, plain, "", ""},
		"a token asks":           {func(*config.Config) {}, strict, "", "stored"},
		"the token's counts":     {func(c *config.Config) { c.Ingest.Ack = ack.Shipped }, strict, "disk", "stored"},
		"a setting asks":         {func(c *config.Config) { c.Ingest.Ack = ack.Shipped }, plain, "", "shipped"},
		"a header asks for more": {func(c *config.Config) { c.Ingest.Ack = ack.Shipped }, plain, "stored", "stored"},
		"services ask": {func(c *config.Config) {
			c.Ingest.Acks = map[string]ack.Level{"*": ack.Shipped, "[a-z]*": ack.Stored}
		}, plain, "", "stored"},
		"another service asks": {func(c *config.Config) { c.Ingest.Acks = map[string]ack.Level{"pay*": ack.Stored} }, plain, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := runGuardedWith(t, c.change,
				entry("plain", `, write: ["*"], read: ["*", "_*"]`), entry("strict", `, write: ["*"], ack: stored`))
			var sending sync.WaitGroup
			for _, r := range routes() {
				if r.probe || r.protocol == "" {
					continue
				}
				sending.Go(func() {
					if status, says := r.acked(t, g.listen, c.token, c.header); status/100 != 2 || says != c.says {
						t.Errorf("%s %s: %d, Ack %q, want %q", r.method, r.path, status, says, c.says)
					}
				})
			}
			sending.Wait()
			_, left := (route{"", "GET", "/live/*", "", "", false}).status(t, g.listen, plain)
			unflushed := strings.Contains(left, `"msg":`) || strings.Contains(left, `"message":`)
			if unflushed != (c.says == "") && c.says != "shipped" {
				t.Errorf("in no blob when all is answered: %.300s", left)
			}
		})
	}
}

// An ingester that ships nothing says what to set.
func TestAckShippedByNobody(t *testing.T) {
	g := runGuardedWith(t, func(*config.Config) {}, entry("plain", `, write: ["*"]`))
	if status, _ := routes()[0].acked(t, g.listen, "plain.s3cret-plain", "shipped"); status != http.StatusBadRequest {
		t.Errorf("%d", status)
	}
	g = runGuardedWith(t, func(*config.Config) {}, entry("plain", `, write: ["*"]`), entry("pay", `, write: [pay], ack: shipped`))
	if status, says := routes()[0].acked(t, g.listen, "plain.s3cret-plain", "shipped"); status != http.StatusOK || says != "shipped" {
		t.Errorf("beside a token that asks for it: %d, Ack %q", status, says)
	}
}

// A stop has the batches cut that requests wait for, however seldom that happens else.
func TestStopAnswersThoseWhoWait(t *testing.T) {
	answered, g := make(chan int, 1), &guarded{log: new(safeBuffer)}
	t.Cleanup(func() { // after that of start, which stops the ingester
		if status := <-answered; status != http.StatusOK {
			t.Errorf("a request that waited at the stop: %d", status)
		}
		if strings.Contains(g.log.String(), "requests were cut off") {
			t.Errorf("the stop gave up a request:\n%s", g.log)
		}
	})
	g.start(t, func(c *config.Config) {
		c.Ingest.Ack, c.Flush.StoredEvery, c.Ingest.Grace = ack.Stored, config.Duration(time.Minute), config.Duration(8*time.Second)
	})
	first := routes()[0]
	if status, _ := first.acked(t, g.listen, "", ""); status != http.StatusOK {
		t.Fatal(status)
	}
	go func() {
		status, _ := first.acked(t, g.listen, "", "")
		answered <- status
	}()
	live := route{"", "GET", "/live/web", "", "", false}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, text := live.status(t, g.listen, ""); strings.Contains(text, `"msg"`) {
			return
		} else if time.Now().After(end) {
			t.Fatalf("the second record is not in the log: %s", text)
		}
	}
}

// A start warns of a door that has no answers. Its records are taken all the same.
func TestSyslogHasNoAnswers(t *testing.T) {
	g := &guarded{log: new(safeBuffer)}
	g.start(t, func(c *config.Config) { c.Ingest.Ack, c.Syslog.Listen = ack.Shipped, "127.0.0.1:0" })
	const want = "syslog at 127.0.0.1:0 has no answers, so nobody waits for the level shipped (ingest.ack)"
	if !strings.Contains(g.log.String(), want) {
		t.Errorf("no warning:\n%s", g.log)
	}
}
