package journald_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/rs/zerolog"

	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/source/httpsource"
	"blobtail/source/journald"
)

// recorder keeps the lines that a source appends to the log.
type recorder struct {
	mu    sync.Mutex
	keep  bool
	lines []string
	ids   map[string]int // identities, by how often they came
	seen  []record.Outcome
	n     int
	err   error
}

func (r *recorder) Accept(_ context.Context, q *record.Request) (record.Receipt, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return record.Receipt{}, r.err
	}
	r.seen = append(r.seen, q.Outcome)
	for i, l := range q.Lines {
		if r.n++; r.keep {
			r.lines = append(r.lines, strings.TrimSuffix(string(q.Data[l.Off:l.Off+l.Len]), "\n"))
			r.ids[fmt.Sprintf("%s %d", q.Origin, q.Index(uint32(i)))]++
		}
	}
	return record.Receipt{Wait: func(context.Context, bool) error { return nil }}, nil
}

func newRecorder() *recorder { return &recorder{keep: true, ids: map[string]int{}} }

func newSource(r *recorder) *httpsource.Source {
	return httpsource.New(httpsource.Options{
		Accept: r, Patience: time.Millisecond, Protocols: []httpsource.Protocol{journald.New()},
		Now: func() time.Time { return time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC) },
	})
}

func send(s http.Handler, body io.Reader) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/upload", body)
	r.Header.Set("Content-Type", "application/vnd.fdo.journal")
	r.ContentLength = -1
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// binaryField is a field with its length before its value.
func binaryField(name, value string) string {
	return name + "\n" + string(binary.LittleEndian.AppendUint64(nil, uint64(len(value)))) + value + "\n"
}

const head = "__CURSOR=s=1;i=1\n__REALTIME_TIMESTAMP=1795519265123456\n__MONOTONIC_TIMESTAMP=5\n_BOOT_ID=b\n"

func TestEntries(t *testing.T) {
	long := strings.Repeat("x", 300<<10)
	for _, row := range []struct{ name, entry, want string }{
		{"a service", head + "PRIORITY=4\n_SYSTEMD_UNIT=nginx.service\nSYSLOG_IDENTIFIER=ngx\nMESSAGE=GET /=1\n",
			`"level":"warn","service":"nginx","msg":"GET /=1","_BOOT_ID":"b","_SYSTEMD_UNIT":"nginx.service","SYSLOG_IDENTIFIER":"ngx"}`},
		{"an instance", head + "_SYSTEMD_UNIT=getty@tty1.service\n", `"level":"","service":"getty-tty1","msg":"","_BOOT_ID":"b","_SYSTEMD_UNIT":"getty@tty1.service","service.name":"getty@tty1"}`},
		{"a session", head + "PRIORITY=6\n_SYSTEMD_UNIT=session-3.scope\nSYSLOG_IDENTIFIER=sudo\n", `"level":"info","service":"sudo","msg":"","_BOOT_ID":"b","_SYSTEMD_UNIT":"session-3.scope","SYSLOG_IDENTIFIER":"sudo"}`},
		{"a user's service", head + "_SYSTEMD_UNIT=user@1000.service\n_SYSTEMD_USER_UNIT=pipewire.service\n",
			`"level":"","service":"pipewire","msg":"","_BOOT_ID":"b","_SYSTEMD_UNIT":"user@1000.service","_SYSTEMD_USER_UNIT":"pipewire.service"}`},
		{"the kernel", head + "_TRANSPORT=kernel\nPRIORITY=0\nMESSAGE=oops\n", `"level":"critical","service":"kernel","msg":"oops","_BOOT_ID":"b","_TRANSPORT":"kernel"}`},
		{"binary", head + binaryField("MESSAGE", "two\nlines\x00\xff") + "SYSLOG_IDENTIFIER=a\n", `"level":"","service":"a","msg":"two\nlines\u0000\\xff","_BOOT_ID":"b","SYSLOG_IDENTIFIER":"a"}`},
		{"a field twice", head + "SYSLOG_IDENTIFIER=a\nN=1\nN=2\n", `"level":"","service":"a","msg":"","_BOOT_ID":"b","SYSLOG_IDENTIFIER":"a","N":"1","N.2":"2"}`},
		{"a long line", head + "SYSLOG_IDENTIFIER=a\nMESSAGE=" + long + "\nN=1\n", `"level":"","service":"a","msg":"` + long[:252<<10] + `","_BOOT_ID":"b","SYSLOG_IDENTIFIER":"a","N":"1","omitted_bytes":49152}`},
		{"a long value", head + "SYSLOG_IDENTIFIER=a\n" + binaryField("COREDUMP", long) + "N=1\n", `"level":"","service":"a","msg":"","_BOOT_ID":"b","SYSLOG_IDENTIFIER":"a","COREDUMP":"` + long[:252<<10] + `","N":"1","omitted_bytes":49152}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRecorder()
			w := send(newSource(r), strings.NewReader(row.entry+"\n"))
			if w.Code != http.StatusAccepted || w.Body.String() != "OK.\n" {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			want := `{"ts":"2026-11-24T11:21:05.123456000Z",` + row.want
			if len(r.lines) != 1 || r.lines[0] != want {
				t.Errorf("%.500s\nwant\n%.500s", strings.Join(r.lines, "\n"), want)
			}
		})
	}
}

// journal makes entries of about 500 bytes, numbered from first to last.
func journal(first, last int) io.Reader {
	return &entries{next: first, last: last}
}

type entries struct {
	buf        []byte
	next, last int
}

func (e *entries) Read(p []byte) (int, error) {
	if len(e.buf) == 0 {
		if e.next > e.last {
			return 0, io.EOF
		}
		e.buf = fmt.Appendf(e.buf[:0], "__CURSOR=s=abc;i=%x;b=def\n__REALTIME_TIMESTAMP=%d\nPRIORITY=6\n_SYSTEMD_UNIT=web.service\nMESSAGE=request %d of many %s\n_PID=%d\n\n",
			e.next, 1795500000000000+e.next, e.next, strings.Repeat("y", 300), e.next%30000)
		e.next++
	}
	n := copy(p, e.buf)
	e.buf = e.buf[n:]
	return n, nil
}

// An upload that was cut off, and is sent again when the journal has grown, has the same
// records for the entries that came before. So it has if it begins with a later entry, but for
// the part that this entry is in.
func TestAgain(t *testing.T) {
	r := newRecorder()
	s := newSource(r)
	for _, last := range []int{5000, 9000} {
		if w := send(s, journal(1, last)); w.Code != http.StatusAccepted {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	if len(r.ids) != 9000 || r.n != 14000 {
		t.Errorf("%d records with %d identities, want 14000 with 9000", r.n, len(r.ids))
	}
	if w := send(s, journal(777, 9000)); w.Code != http.StatusAccepted {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if n := len(r.ids) - 9000; n > 4096 {
		t.Errorf("%d new identities", n)
	}
	for id := range r.ids {
		if strings.HasPrefix(id, record.Origin{}.String()) {
			t.Fatalf("no origin: %s", id)
		}
	}
}

// The first cursor of a part does not determine the entries behind it. So two parts are repeats
// only if all their bytes are equal.
func TestOtherBytes(t *testing.T) {
	r := newRecorder()
	s := newSource(r)
	for _, text := range []string{"one", "one", "two"} {
		if w := send(s, strings.NewReader(head+"MESSAGE=first\n\n"+strings.Replace(head, "i=1", "i=2", 1)+"MESSAGE="+text+"\n\n")); w.Code != http.StatusAccepted {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	if len(r.seen) != 3 || !r.seen[0].Same(r.seen[1]) || r.seen[0].Same(r.seen[2]) {
		t.Errorf("%+v", r.seen)
	}
}

// A long upload takes no memory.
func TestLong(t *testing.T) {
	const n = 200_000
	r := &recorder{}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	most := uint64(0)
	w := send(newSource(r), io.TeeReader(journal(1, n), writerFunc(func() {
		if r.n%50_000 == 0 {
			runtime.ReadMemStats(&after)
			most = max(most, after.HeapAlloc)
		}
	})))
	if w.Code != http.StatusAccepted || r.n != n {
		t.Errorf("%d %s: %d records", w.Code, w.Body, r.n)
	}
	if most > before.HeapAlloc+64<<20 {
		t.Errorf("%d MiB of heap", most>>20)
	}
}

type writerFunc func()

func (f writerFunc) Write(p []byte) (int, error) { f(); return len(p), nil }

// A compressed upload is read as it comes.
func TestCompressed(t *testing.T) {
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(z, journal(1, 3000)); err != nil {
		t.Fatal(err)
	}
	z.Close()
	for _, row := range []struct {
		name   string
		body   []byte
		status int
		n      int
	}{
		{"whole", b.Bytes(), http.StatusAccepted, 3000},
		{"cut off", b.Bytes()[:b.Len()/2], http.StatusBadRequest, -1},
	} {
		r := newRecorder()
		q := httptest.NewRequest(http.MethodPost, "/upload", bytes.NewReader(row.body))
		q.Header.Set("Content-Type", "application/vnd.fdo.journal")
		q.Header.Set("Content-Encoding", "zstd")
		w := httptest.NewRecorder()
		newSource(r).ServeHTTP(w, q)
		if w.Code != row.status || row.n >= 0 && r.n != row.n {
			t.Errorf("%s: %d %s: %d records", row.name, w.Code, w.Body, r.n)
		}
	}
}

// The rest of a stream that is not in the format is kept, and the entries before it are stored.
func TestMalformed(t *testing.T) {
	for _, row := range []struct {
		name, rest string
		good       int
		status     int
	}{
		{"a name in lower case", "name=x\n\n", 1, 202},
		{"no line feed behind a value", "A\n\x01\x00\x00\x00\x00\x00\x00\x00xy\n\n", 1, 202},
		{"a length beyond the end", "A\n\xff\xff\xff\xff\xff\xff\xff\xffxy\n\n", 1, 202},
		{"a line without an end", "A=b", 1, 202},
		{"no empty line at the end", "MESSAGE=x\n", 2, 202},
		{"good entries behind it", "lower=1\nMESSAGE=x\n\n" + head + "MESSAGE=y\n\n" + head + "MESSAGE=z\n\n", 3, 202},
		{"only empty lines", "\n\n\n", 1, 202},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRecorder()
			w := send(newSource(r), strings.NewReader(head+"MESSAGE=good\n\n"+row.rest))
			good := 0
			for _, l := range r.lines {
				if !strings.Contains(l, `"service":"_rejected"`) {
					good++
				}
			}
			if w.Code != row.status || good != row.good || len(r.lines) == good && row.rest[0] != '\n' && row.good == 1 || row.good == 3 && len(r.lines) != 4 {
				t.Errorf("%d %s\n%s", w.Code, w.Body, strings.Join(r.lines, "\n"))
			}
		})
	}
	r := newRecorder()
	if w := send(newSource(r), strings.NewReader("this is text\n")); w.Code != http.StatusBadRequest || len(r.lines) != 1 {
		t.Errorf("%d %s %q", w.Code, w.Body, r.lines)
	}
}

// The answer to an upload that breaks off is no success, and a full log is one to come back to.
func TestRefused(t *testing.T) {
	r := newRecorder()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := httpsource.NewServer(newSource(r), zerolog.Nop())
	go server.Serve(l)
	defer server.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /upload HTTP/1.1\r\nHost: x\r\nContent-Type: application/vnd.fdo.journal\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%sMESSAGE=x\n\n\r\nzz\r\n", len(head)+len("MESSAGE=x\n\n"), head)
	conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	answer, _ := io.ReadAll(conn)
	if !bytes.HasPrefix(answer, []byte("HTTP/1.1 400")) || !bytes.Contains(answer, []byte("broke off")) || r.n != 0 {
		t.Errorf("%s, %d records", answer, r.n)
	}
	for _, row := range []struct {
		method, contentType string
		status              int
	}{{"GET", "application/vnd.fdo.journal", 405}, {"POST", "text/plain", 415}} {
		q := httptest.NewRequest(row.method, "/upload", strings.NewReader(head))
		q.Header.Set("Content-Type", row.contentType)
		w := httptest.NewRecorder()
		newSource(newRecorder()).ServeHTTP(w, q)
		if w.Code != row.status {
			t.Errorf("%s %s: %d %s", row.method, row.contentType, w.Code, w.Body)
		}
	}
}

// Any stream is answered, and each record is valid.
func FuzzEntries(f *testing.F) {
	f.Add([]byte(head + "MESSAGE=x\n\n" + head + binaryField("MESSAGE", "a\nb") + "\n"))
	f.Add([]byte("A\n\xff\xff\xff\xff\xff\xff\xff\xffxy\n\n"))
	f.Add([]byte("A=1\nA=2\n\n\n\n__CURSOR=x\n\nbad"))
	r := newRecorder()
	s := newSource(r)
	f.Fuzz(func(t *testing.T, b []byte) {
		*r = *newRecorder()
		if w := send(s, bytes.NewReader(b)); w.Code != http.StatusAccepted && w.Code != http.StatusBadRequest {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		p := meaning.NewReader()
		for _, l := range r.lines {
			if n, err := p.Scan([]byte(l)); err != nil || n != len(l) {
				t.Errorf("%q: %v", l, err)
			}
		}
	})
}

// waits notes for each part of a request how it was waited for.
type waits struct {
	mu     sync.Mutex
	stored []bool
}

func (w *waits) Accept(context.Context, *record.Request) (record.Receipt, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.stored)
	w.stored = append(w.stored, false)
	return record.Receipt{Wait: func(_ context.Context, stored bool) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.stored[n] = w.stored[n] || stored
		return nil
	}}, nil
}

// With Ack: stored each part of an upload is in a blob, however many there are.
func TestAckStored(t *testing.T) {
	w := &waits{}
	s := httpsource.New(httpsource.Options{Accept: w, Protocols: []httpsource.Protocol{journald.New()}})
	r := httptest.NewRequest(http.MethodPost, "/upload", journal(1, 40_000))
	r.Header.Set("Content-Type", "application/vnd.fdo.journal")
	r.Header.Set("Ack", "stored")
	r.ContentLength = -1
	a := httptest.NewRecorder()
	s.ServeHTTP(a, r)
	if a.Code/100 != 2 || len(w.stored) < 40 || slices.Contains(w.stored, false) {
		t.Errorf("%d %s, stored: %v", a.Code, a.Body, w.stored)
	}
}
