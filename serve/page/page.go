// Package page serves the page on which people read logs in a browser: its files, and the
// headers that keep it safe.
//
// Mount the handler of [New] at / and at [Prefix]. It asks for no token, because the files
// have no records: the page takes those from the reading API, which asks for one. So
// whoever may reach the server may load the page, and then logs in.
//
// The files are in files/, and nobody builds them. A file loses its comments and is compressed at
// its first request, and the start of a program pays nothing for it. Browsers keep the files
// and ask each time whether they are still right.
package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"blobtail/internal/door"
)

// Prefix is the path of all files but the first one, which is at /.
const Prefix = "/ui/"

// first is the file at /.
const first = "index.html"

//go:embed files/*.html files/*.css files/*.js files/*.txt
var files embed.FS

// policy lets the page load its own files and ask its own server, and nothing else. No text
// becomes markup or script: the page writes text and attributes alone.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// headers stand in each answer.
func headers(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()")
}

// New returns a handler of / and of the paths below [Prefix].
func New() http.Handler { return new(handler) }

type handler struct {
	loaded sync.Map // of *file, by name
}

// file is a file of the page, with its forms for browsers.
type file struct {
	kind  string // its Content-Type
	tag   string // its hash
	forms map[string][]byte
}

// ServeHTTP implements [http.Handler].
func (p *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	headers(w.Header())
	w.Header().Set("Cache-Control", "no-store") // until there is a file
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		door.RefuseMethod("GET, HEAD", "%s is not answered here; send a GET", r.Method).Plain(w)
		return
	}
	f := p.file(r.URL.Path)
	if f == nil {
		door.Refuse(http.StatusNotFound, "the page has no such file; it is at /").Plain(w)
		return
	}
	f.answer(w, r)
}

// file returns the file of a path, nil if there is none.
func (p *handler) file(at string) *file {
	name, ok := strings.CutPrefix(at, Prefix)
	switch {
	case at == "/":
		name = first
	case !ok || name == first:
		return nil
	}
	if f, ok := p.loaded.Load(name); ok {
		return f.(*file)
	}
	text, err := fs.ReadFile(files, path.Join("files", name))
	if err != nil || strings.Contains(name, "/") {
		return nil
	}
	least, err := small(name, text)
	if err != nil {
		least = text // which is the same program; a test fails before this happens
	}
	// Two requests may do this at the same time, and one of the results is kept.
	f, _ := p.loaded.LoadOrStore(name, load(name, least))
	return f.(*file)
}

// load compresses a file.
func load(name string, text []byte) *file {
	sum := sha256.Sum256(text)
	return &file{
		kind: kindOf(name), tag: hex.EncodeToString(sum[:12]),
		forms: map[string][]byte{"": text, "gzip": zipped(text), "zstd": zstdOf(text)},
	}
}

// kindOf is the Content-Type of a file. It does not depend on the tables of this host.
func kindOf(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	}
	return "text/plain; charset=utf-8"
}

func zipped(text []byte) []byte {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is a constant
	}
	_, _ = z.Write(text) // a buffer takes everything
	_ = z.Close()
	return b.Bytes()
}

func zstdOf(text []byte) []byte {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err) // the options are constants
	}
	defer z.Close()
	return z.EncodeAll(text, nil)
}

// answer sends a file in the form that the client prefers, or says that it has it.
func (f *file) answer(w http.ResponseWriter, r *http.Request) {
	form := door.Encoding(r)
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Add("Vary", "Accept-Encoding")
	tag := `"` + f.tag + `"`
	if form != "" {
		tag = `"` + f.tag + "-" + form + `"`
	}
	h.Set("ETag", tag)
	if f.known(r.Header.Values("If-None-Match")) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", f.kind)
	if form != "" {
		h.Set("Content-Encoding", form)
	}
	body := f.forms[form]
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodGet {
		_, _ = w.Write(body) // a client that has gone needs no answer
	}
}

// known reports whether a client has the file, in any form. A proxy may have made the tag weak.
func (f *file) known(headers []string) bool {
	for _, header := range headers {
		for entry := range strings.SplitSeq(header, ",") {
			entry = strings.TrimSpace(entry)
			tag := strings.Trim(strings.TrimPrefix(entry, "W/"), `"`)
			tag, _, _ = strings.Cut(tag, "-")
			if entry == "*" || tag == f.tag {
				return true
			}
		}
	}
	return false
}
