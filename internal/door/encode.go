package door

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// A coder compresses an answer.
type coder interface {
	io.WriteCloser
	Flush() error
	Reset(io.Writer)
}

// coders keeps coders for later answers: each has some 100 KiB.
type coders struct{ gzip, zstd sync.Pool }

// eventCoder is gzip without memory of earlier bytes: a hundred tails keep a hundred of them.
type eventCoder struct{ *gzip.Writer }

// get returns a coder that writes to w.
func (c *coders) get(name string, events bool, w io.Writer) coder {
	if events {
		z, err := gzip.NewWriterLevel(w, gzip.StatelessCompression)
		if err != nil {
			panic(err) // the level is a constant
		}
		return eventCoder{z}
	}
	pool := c.pool(name)
	if kept, ok := pool.Get().(coder); ok {
		kept.Reset(w)
		return kept
	}
	if name == "gzip" {
		z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
		if err != nil {
			panic(err) // the level is a constant
		}
		return z
	}
	// A window of 1 MiB bounds the memory of a browser and ours.
	z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return z
}

// put takes a coder back; nil is none.
func (c *coders) put(used coder) {
	switch used.(type) {
	case nil, eventCoder:
		return
	case *gzip.Writer:
		used.Reset(io.Discard)
		c.gzip.Put(used)
	default:
		used.Reset(nil)
		c.zstd.Put(used)
	}
}

func (c *coders) pool(name string) *sync.Pool {
	if name == "gzip" {
		return &c.gzip
	}
	return &c.zstd
}

// compressible reports whether an answer may be compressed at all, for another client too.
func (a *answer) compressible() bool {
	h := a.Header()
	if h.Get("Content-Encoding") != "" || h.Get("Content-Range") != "" || a.r.Method == http.MethodHead {
		return false
	}
	switch a.status {
	case http.StatusNoContent, http.StatusPartialContent, http.StatusNotModified:
		return false
	}
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	return strings.HasPrefix(kind, "text/") || strings.Contains(kind, "json") || strings.Contains(kind, "yaml") || strings.Contains(kind, "javascript")
}

// encoding is the encoding of an answer, "" for none.
func (a *answer) encoding() string {
	switch {
	case !a.compressible():
		return ""
	case a.events() && accepted(a.r.Header.Values("Accept-Encoding"), "gzip") > 0:
		return "gzip" // zstd has a window for each tail
	case a.events():
		return ""
	}
	return Encoding(a.r)
}

// Encoding is the encoding that the client of a request prefers: "zstd", "gzip", or "" for none. A
// client that does not name zstd does not get it.
func Encoding(r *http.Request) string {
	best, most := "", 0.0
	for _, name := range []string{"zstd", "gzip"} {
		if q := accepted(r.Header.Values("Accept-Encoding"), name); q > most {
			best, most = name, q
		}
	}
	return best
}

// events reports whether an answer is a stream of events.
func (a *answer) events() bool {
	return strings.HasPrefix(a.Header().Get("Content-Type"), "text/event-stream")
}

// accepted is the weight that a client gives an encoding by its name, 0 to 1.
func accepted(headers []string, name string) float64 {
	for _, header := range headers {
		for entry := range strings.SplitSeq(header, ",") {
			coding, parameters, _ := strings.Cut(entry, ";")
			if !strings.EqualFold(strings.TrimSpace(coding), name) {
				continue
			}
			weight, ok := strings.CutPrefix(strings.TrimSpace(parameters), "q=")
			if !ok {
				return 1
			}
			q, err := strconv.ParseFloat(strings.TrimSpace(weight), 64)
			if err != nil {
				return 0
			}
			return q
		}
	}
	return 0
}

// Gzip compresses the answers of a handler for clients that take that.
func Gzip(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept-Encoding")
		if accepted(r.Header.Values("Accept-Encoding"), "gzip") <= 0 {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		next.ServeHTTP(zipped{w, z}, r)
		_ = z.Close() // a client that has gone needs no answer
	})
}

// zipped is an answer with a compressed body.
type zipped struct {
	http.ResponseWriter
	to io.Writer
}

// Write implements [io.Writer].
func (z zipped) Write(p []byte) (int, error) { return z.to.Write(p) }
