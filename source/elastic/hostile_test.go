package elastic_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/dev/testkit"
	"blobtail/source/elastic"
	"blobtail/source/httpsource"
	"blobtail/source/sourcetest"
)

// listen serves a source on a free port.
func listen(t *testing.T, s http.Handler) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := httpsource.NewServer(s, zerolog.Nop())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	t.Cleanup(func() {
		srv.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// A million tiny actions have an answer of tens of megabytes, which is never held in memory.
func TestMillionActions(t *testing.T) {
	addr := listen(t, httpsource.New(httpsource.Options{Accept: sourcetest.Discard{}, Protocols: []httpsource.Protocol{elastic.New(elastic.Options{})}}))
	for _, row := range []struct {
		name, pair string
		n          int
	}{
		{"alike", "{\"index\":{}}\n{}\n", 1_000_000},
		{"in turn", "{\"index\":{}}\n{}\n{\"create\":{}}\n{}\n", 200_000},
	} {
		t.Run(row.name, func(t *testing.T) {
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			body := strings.Repeat(row.pair, 2*row.n/strings.Count(row.pair, "\n"))
			res, err := (&http.Client{Transport: transport}).Post("http://"+addr+"/a/_bulk", "application/x-ndjson", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			items, ends := 0, 0
			buf, overlap := make([]byte, 1<<20), 0
			for {
				k, err := io.ReadAtLeast(res.Body, buf[overlap:], 1)
				text := buf[:overlap+k]
				items += bytes.Count(text, []byte(`"status":201}}`))
				if i := bytes.LastIndexByte(text, '}'); bytes.HasSuffix(text, []byte("]}")) && i >= 0 {
					ends++
				}
				if err != nil {
					break
				}
				i := max(bytes.LastIndex(text, []byte(`}}`))+2, 2)
				overlap = copy(buf, text[min(i, len(text)):])
			}
			runtime.ReadMemStats(&after)
			if items != row.n || ends == 0 {
				t.Errorf("%d items, %d ends", items, ends)
			}
			if held := int64(after.HeapInuse) - int64(before.HeapInuse); held > 8<<20 {
				t.Errorf("%d bytes more while the answer was read", held)
			}
		})
	}
}

// A client that does not read a long answer is cut off.
func TestAnswerNotRead(t *testing.T) {
	source := httpsource.New(httpsource.Options{
		Accept: sourcetest.Discard{}, ReadGrace: 200 * time.Millisecond, Protocols: []httpsource.Protocol{elastic.New(elastic.Options{})}})
	ended := make(chan struct{})
	addr := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		source.ServeHTTP(w, r)
	}))
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	body := strings.Repeat("{\"index\":{}}\n{}\n", 600_000)
	fmt.Fprintf(c, "POST /a/_bulk HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	_ = c.SetReadDeadline(time.Now().Add(testkit.Patience))
	if _, err := io.ReadFull(c, make([]byte, len("HTTP/1.1 200"))); err != nil {
		t.Fatal(err)
	}
	testkit.Await(t, "the server gives up", ended)
	n, err := io.Copy(io.Discard, c)
	if errors.Is(err, os.ErrDeadlineExceeded) || n == 0 || n > 30<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// Many names and ids are answered with fewer of them, and stored all the same.
func TestManyNames(t *testing.T) {
	const n = 40_000
	var body strings.Builder
	for i := range n {
		fmt.Fprintf(&body, "{\"create\":{\"_index\":\"index%d\",\"_id\":\"%040d\"}}\n{\"message\":\"m\"}\n", i, i)
	}
	m := &sourcetest.Log{}
	items := itemsOf(t, do(t, source(m), http.MethodPost, "/a/_bulk", body.String()))
	if len(items) != n || len(m.Lines()) != n {
		t.Fatalf("%d items, %d lines", len(items), len(m.Lines()))
	}
	named, sent := 0, 0
	for i, it := range items {
		if it.Index != "" && it.Index != fmt.Sprint("index", i) || it.ID == "" || it.Status != 201 {
			t.Fatalf("item %d: %+v", i, it)
		}
		if it.Index != "" {
			named++
		}
		if it.ID == fmt.Sprintf("%040d", i) {
			sent++
		}
	}
	if named == 0 || named == n || sent == 0 || sent == n {
		t.Errorf("%d names, %d ids", named, sent)
	}
	for i, l := range stored(t, m) {
		if l["service"] != fmt.Sprint("index", i) {
			t.Fatalf("line %d: %v", i, l)
		}
	}
}

// A body of several parts has its items in one answer.
func TestParts(t *testing.T) {
	m := &sourcetest.Log{}
	body := strings.Repeat(`{"create":{"_index":"a"}}`+"\n"+`{"@timestamp":"2026-11-24T10:00:00.5Z","message":"`+strings.Repeat("x", 1000)+`"}`+"\n", 10_000)
	items := itemsOf(t, do(t, source(m), http.MethodPost, "/_bulk", body))
	if len(items) != 10_000 || len(m.Lines()) != 10_000 || len(m.Origins()) != 2 {
		t.Errorf("%d items, %d lines, %d parts", len(items), len(m.Lines()), len(m.Origins()))
	}
}
