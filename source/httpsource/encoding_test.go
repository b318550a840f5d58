package httpsource_test

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"blobtail/internal/dev/testkit"
	"blobtail/source/httpsource"
)

// compress compresses a body in a form: a Content-Encoding, or a variant of one.
func compress(t testing.TB, form, body string) string {
	t.Helper()
	var buf bytes.Buffer
	var w io.WriteCloser
	var err error
	switch form {
	case "gzip":
		w = gzip.NewWriter(&buf)
	case "zstd":
		w, err = zstd.NewWriter(&buf, zstd.WithEncoderConcurrency(1))
	case "zstd with a big window":
		w, err = zstd.NewWriter(&buf, zstd.WithWindowSize(16<<20), zstd.WithEncoderConcurrency(1))
	case "deflate":
		w = zlib.NewWriter(&buf)
	case "raw deflate":
		w, err = flate.NewWriter(&buf, 6)
	case "snappy":
		return string(s2.EncodeSnappy(nil, []byte(body)))
	case "framed snappy":
		w = s2.NewWriter(&buf, s2.WriterSnappyCompat(), s2.WriterConcurrency(1))
	default:
		t.Fatalf("what is %s?", form)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

// encodingOf is the header for a form.
func encodingOf(form string) string {
	for _, e := range []string{"gzip", "zstd", "deflate", "snappy"} {
		if strings.Contains(form, e) {
			return e
		}
	}
	return form
}

var forms = []string{"gzip", "zstd", "deflate", "raw deflate", "snappy", "framed snappy"}

func TestEncodings(t *testing.T) {
	testkit.FullOnly(t, "many MiB in one goroutine")
	m := &memory{}
	s := newSource(m)
	small := "{\"msg\":\"a\"}\n"
	var b strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&b, "{\"msg\":\"%d\"}\n", i*i)
	}
	large := b.String()
	for range 2 { // the second time with used decompressors
		for _, form := range forms {
			for _, body := range []string{small, large} {
				a := send(t, s, "/ingest/web", compress(t, form, body), "Content-Encoding", strings.ToUpper(encodingOf(form)))
				if want := strings.Count(body, "\n"); a.Status != 200 || a.Accepted != want {
					t.Errorf("%s: %+v, want %d", form, a, want)
				}
			}
		}
	}
	for _, h := range []string{"identity", "", " x-gzip "} {
		body := small
		if h == " x-gzip " {
			body = compress(t, "gzip", small)
		}
		if a := send(t, s, "/ingest/web", body, "Content-Encoding", h); a.Accepted != 1 {
			t.Errorf("%s: %+v", h, a)
		}
	}
	for _, form := range forms {
		if a := send(t, s, "/ingest/web", "", "Content-Encoding", encodingOf(form)); a.Status != 200 || a.Accepted != 0 {
			t.Errorf("%s, no body: %+v", form, a)
		}
	}
	// Two members are one body, as in the gzip standard.
	if a := send(t, s, "/ingest/web", compress(t, "gzip", small)+compress(t, "gzip", small), "Content-Encoding", "gzip"); a.Accepted != 2 {
		t.Errorf("two members: %+v", a)
	}
}

func TestUndecodable(t *testing.T) {
	m := &memory{}
	s := newSource(m)
	for _, form := range forms {
		whole := compress(t, form, strings.Repeat("{\"msg\":\"abc\"}\n", 100))
		for name, body := range map[string]string{
			"cut":      whole[:len(whole)-3],
			"garbage":  "this is not compressed at all",
			"trailing": whole + "xyzxyz",
			"flipped":  whole[:len(whole)/2] + "\xff\xff\xff\xff" + whole[len(whole)/2+4:],
		} {
			if name == "flipped" && form == "raw deflate" || name == "flipped" && form == "snappy" {
				continue // they have no checksum
			}
			a := send(t, s, "/ingest/web", body, "Content-Encoding", encodingOf(form))
			if a.Status != 400 || a.Error == "" {
				t.Errorf("%s, %s: %+v", form, name, a)
			}
		}
	}
	for _, h := range []string{"br", "gzip, gzip", "gzip,zstd", "compress", strings.Repeat("x", 5000)} {
		wantStatus(t, send(t, s, "/ingest/web", "{}", "Content-Encoding", h), 415, "gzip, zstd")
	}
	wantStatus(t, send(t, s, "/ingest/web", "{}", "Content-Encoding", "gzip", "Content-Encoding", "gzip"), 415, "one only")
	if m.calls != 0 {
		t.Errorf("%d requests appended", m.calls)
	}
}

// A client that forgets the header gets an error, and no noise is stored.
func TestCompressedWithoutHeader(t *testing.T) {
	m := &memory{}
	s := newSource(m)
	for _, form := range []string{"gzip", "zstd"} {
		for _, contentType := range []string{"", text, "application/octet-stream", "application/x-www-form-urlencoded"} {
			body := compress(t, form, "a line\n")
			a := send(t, s, "/ingest/web", body, "Content-Type", contentType)
			wantStatus(t, a, 415, "Content-Encoding: "+form)
			wantStatus(t, send(t, s, "/ingest/web", body, "Content-Type", contentType, "Content-Encoding", "identity"), 415, "Content-Encoding: "+form)
		}
	}
	if m.calls != 0 {
		t.Errorf("%d requests appended", m.calls)
	}
	for _, body := range []string{"\x1f", "\x1fx", "\x28\xb5\x2f", "(x", " \x1f\x8b"} {
		if a := send(t, s, "/ingest/web", body); a.Accepted != 1 {
			t.Errorf("%q: %+v", body, a)
		}
	}
}

func TestBombs(t *testing.T) {
	testkit.FullOnly(t, "many MiB in one goroutine")
	s := newSource(&memory{})
	zeros := strings.Repeat("\x00", 10<<20)
	for _, form := range []string{"gzip", "zstd", "deflate", "raw deflate"} {
		wantStatus(t, send(t, s, "/ingest/web", compress(t, form, zeros), "Content-Encoding", encodingOf(form)), 413, "200 times")
	}
	for _, form := range []string{"snappy", "framed snappy"} { // at most 21:1, so only the size limit can be passed
		wantStatus(t, send(t, s, "/ingest/web", compress(t, form, strings.Repeat(zeros, 7)), "Content-Encoding", encodingOf(form)), 413, "64 MiB")
	}
	// A length that is only claimed.
	wantStatus(t, send(t, s, "/ingest/web", "\xff\xff\xff\xff\x0f", "Content-Encoding", "snappy"), 413, "200 times")
	// Within the first MiB any ratio is allowed.
	if a := send(t, s, "/ingest/web", compress(t, "gzip", strings.Repeat("{}\n", 100_000)), "Content-Encoding", "gzip"); a.Accepted != 100_000 {
		t.Errorf("%+v", a)
	}
	wantStatus(t, send(t, s, "/ingest/web", compress(t, "zstd with a big window", strings.Repeat("{}\n", 3<<20)), "Content-Encoding", "zstd"), 413, "window over 8 MiB")
}

// A bomb is detected without allocating all of its output.
func TestBombsTakeNoMemory(t *testing.T) {
	s := newSource(&memory{}, func(o *httpsource.Options) { o.MaxInFlight = 4 << 20 }) // alone it may have more
	bomb := compress(t, "gzip", strings.Repeat("\x00", 20<<20))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	wantStatus(t, send(t, s, "/ingest/web", bomb, "Content-Encoding", "gzip"), 413, "200 times")
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 20<<20 {
		t.Errorf("%d bytes allocated for a bomb of 20 MiB", got)
	}
}
