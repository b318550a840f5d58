package scale

import (
	"bufio"
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/storage"
)

// object is a blob. It is never changed.
type object struct {
	body    []byte
	size    int
	sum     [md5.Size]byte
	created time.Time
	version string
	storage.Attrs
}

// blobKind is the kind of a request to the service of blobs.
func (q *request) blobKind() what {
	_, key, _ := strings.Cut(q.path, "/")
	whole := q.query.Get("restype") == "container"
	switch {
	case q.query.Get("comp") == "list":
		return what{List, class(q.query.Get("prefix")), 1}
	case q.query.Get("comp") == "batch":
		return what{Delete, "batch", 1}
	case whole && q.method == http.MethodPut:
		return what{List, "container", 1}
	case whole:
		return what{Head, "container", 1}
	case q.method == http.MethodPut:
		return what{Put, class(key), 1}
	case q.method == http.MethodDelete:
		return what{Delete, class(key), 1}
	case q.method == http.MethodHead:
		return what{Head, class(key), 1}
	}
	return what{Get, class(key), 1}
}

// blob answers a request to the service of blobs.
func (s service) blob(q *request, w *answer, is *what) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var parts []part
	if q.query.Get("comp") == "batch" {
		parts = q.parts()
		is.n += len(parts)
	}
	if !s.admit(w, is.n) {
		return
	}
	name, key, _ := strings.Cut(q.path, "/")
	in := s.containers[name]
	switch {
	case q.query.Get("restype") == "container" && q.method == http.MethodPut && in == nil:
		s.containers[name] = newOrdered[object]()
		w.status = http.StatusCreated
	case q.query.Get("restype") == "container" && q.method == http.MethodPut:
		w.refuse(false, http.StatusConflict, "ContainerAlreadyExists")
	case in == nil:
		w.refuse(false, http.StatusNotFound, "ContainerNotFound")
	case is.kind == List:
		s.list(in, q, w)
	case parts != nil:
		s.batch(in, parts, w)
	case q.query.Get("restype") == "container": // its attributes
	case q.method == http.MethodPut:
		s.put(in, key, q, w)
	case q.method == http.MethodDelete:
		s.remove(in, key, q, w)
	default:
		s.get(in, key, q, w)
	}
}

func (s service) put(in *ordered[object], key string, q *request, w *answer) {
	if _, ok := in.all[key]; ok && q.header.Get("If-None-Match") == "*" {
		w.refuse(false, http.StatusConflict, "BlobAlreadyExists")
		return
	}
	sum := md5.Sum(q.body)
	if want := q.header.Get("Content-Md5"); want != "" && want != base64.StdEncoding.EncodeToString(sum[:]) {
		w.refuse(false, http.StatusBadRequest, "Md5Mismatch")
		return
	}
	attrs := storage.Attrs{ContentType: q.header.Get("x-ms-blob-content-type"), ContentEncoding: q.header.Get("x-ms-blob-content-encoding")}
	for name, values := range q.header {
		if name, ok := strings.CutPrefix(strings.ToLower(name), "x-ms-meta-"); ok {
			if attrs.Metadata == nil {
				attrs.Metadata = map[string]string{}
			}
			attrs.Metadata[name] = values[0]
		}
	}
	o := s.object(key, q.body, attrs)
	in.set(key, o)
	w.header.Set("ETag", `"`+o.version+`"`)
	w.header.Set("Last-Modified", o.created.Format(http.TimeFormat))
	w.status = http.StatusCreated
}

// object makes an object. The caller holds mu.
func (a *Account) object(key string, body []byte, attrs storage.Attrs) object {
	a.made++
	o := object{size: len(body), sum: md5.Sum(body), created: time.Now().UTC(), version: "0x" + strconv.FormatUint(a.made|1<<60, 16), Attrs: attrs}
	if !a.o.ForgetBody(key) {
		o.body = bytes.Clone(body)
	}
	return o
}

// Add puts a blob into the account as if it had long been there: it is neither counted nor
// delayed. It replaces a blob of the same key.
func (a *Account) Add(key string, body []byte, attrs storage.Attrs) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.containers[container] == nil {
		a.containers[container] = newOrdered[object]()
	}
	a.containers[container].set(key, a.object(key, body, attrs))
}

func (s service) remove(in *ordered[object], key string, q *request, w *answer) {
	o, ok := in.all[key]
	match := q.header.Get("If-Match")
	switch {
	case !ok:
		w.refuse(false, http.StatusNotFound, "BlobNotFound")
	case match != "" && match != `"`+o.version+`"`:
		w.refuse(false, http.StatusPreconditionFailed, "ConditionNotMet")
	default:
		in.remove(key)
		w.status = http.StatusAccepted
	}
}

// get answers with a blob, a part of it, or its attributes.
func (s service) get(in *ordered[object], key string, q *request, w *answer) {
	o, ok := in.all[key]
	match := q.header.Get("If-Match")
	switch {
	case !ok:
		w.refuse(false, http.StatusNotFound, "BlobNotFound")
		return
	case match != "" && match != `"`+o.version+`"`:
		w.refuse(false, http.StatusPreconditionFailed, "ConditionNotMet")
		return
	case q.method == http.MethodGet && s.o.ForgetBody(key):
		w.refuse(false, http.StatusConflict, "BlobArchived")
		return
	}
	h := w.header
	h.Set("Content-Type", o.ContentType)
	h.Set("ETag", `"`+o.version+`"`)
	h.Set("Last-Modified", o.created.Format(http.TimeFormat))
	h.Set("x-ms-blob-type", "BlockBlob")
	if o.ContentEncoding != "" {
		h.Set("Content-Encoding", o.ContentEncoding)
	}
	for name, v := range o.Metadata {
		h.Set("x-ms-meta-"+name, v)
	}
	if q.method == http.MethodHead {
		h.Set("Content-Length", strconv.Itoa(o.size))
		return
	}
	w.body = o.body
	if text := cmpHeader(q.header, "x-ms-range", "Range"); text != "" {
		w.cut(o, text)
	}
}

func cmpHeader(h http.Header, names ...string) string {
	for _, name := range names {
		if v := h.Get(name); v != "" {
			return v
		}
	}
	return ""
}

// cut leaves a range of the body.
func (w *answer) cut(o object, text string) {
	first, last, _ := strings.Cut(strings.TrimPrefix(text, "bytes="), "-")
	from, err := strconv.Atoi(first)
	if err != nil || from >= o.size {
		clear(w.header)
		w.refuse(false, http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
		return
	}
	to := o.size - 1
	if n, err := strconv.Atoi(last); err == nil {
		to = min(to, n)
	}
	w.status = http.StatusPartialContent
	w.body = o.body[from : to+1]
	w.header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, o.size))
}

// list answers with a page of blobs, of one level or of all. Its marker is the last name.
func (s service) list(in *ordered[object], q *request, w *answer) {
	prefix, delimiter := q.query.Get("prefix"), q.query.Get("delimiter")
	most := s.o.Page
	if n, err := strconv.Atoi(q.query.Get("maxresults")); err == nil {
		most = min(most, n)
	}
	marker, _ := base64.URLEncoding.DecodeString(q.query.Get("marker"))
	var b bytes.Buffer
	b.WriteString(`<?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="https://scale.blob.core.windows.net/" ContainerName="logs"><Prefix>` + escaped(prefix) + `</Prefix><Blobs>`)
	next, n := "", 0
	for at := max(prefix, string(marker)); ; n++ {
		keys := in.from(at)
		if len(keys) == 0 || !strings.HasPrefix(keys[0], prefix) {
			break
		}
		if n == most {
			next = base64.URLEncoding.EncodeToString([]byte(at))
			break
		}
		key := keys[0]
		at = key + "\x00"
		if dir, _, ok := strings.Cut(key[len(prefix):], delimiter); ok && delimiter != "" {
			dir = prefix + dir + delimiter
			b.WriteString("<BlobPrefix><Name>" + escaped(dir) + "</Name></BlobPrefix>")
			at = dir + "\U0010FFFF"
			continue
		}
		item(&b, key, in.all[key], strings.Contains(q.query.Get("include"), "metadata"))
	}
	b.WriteString("</Blobs><NextMarker>" + next + "</NextMarker></EnumerationResults>")
	w.header.Set("Content-Type", "application/xml")
	w.body = b.Bytes()
}

// item writes a blob as a list of Azure has it, with all of the properties that make it long.
func item(b *bytes.Buffer, key string, o object, metadata bool) {
	at := o.created.Format(http.TimeFormat)
	fmt.Fprintf(b, "<Blob><Name>%s</Name><Properties><Creation-Time>%s</Creation-Time><Last-Modified>%s</Last-Modified><Etag>%s</Etag>"+
		"<Content-Length>%d</Content-Length><Content-Type>%s</Content-Type><Content-Encoding>%s</Content-Encoding><Content-Language /><Content-CRC64 /><Content-MD5>%s</Content-MD5>"+
		"<Cache-Control /><Content-Disposition /><BlobType>BlockBlob</BlobType><AccessTier>Hot</AccessTier><AccessTierInferred>true</AccessTierInferred>"+
		"<LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState><ServerEncrypted>true</ServerEncrypted></Properties>",
		escaped(key), at, at, o.version, o.size, escaped(o.ContentType), escaped(o.ContentEncoding), base64.StdEncoding.EncodeToString(o.sum[:]))
	if metadata && len(o.Metadata) > 0 {
		b.WriteString("<Metadata>")
		for _, name := range slices.Sorted(maps.Keys(o.Metadata)) {
			fmt.Fprintf(b, "<%s>%s</%s>", name, escaped(o.Metadata[name]), name)
		}
		b.WriteString("</Metadata>")
	}
	b.WriteString("<OrMetadata /></Blob>")
}

func escaped(s string) string {
	if !strings.ContainsAny(s, "<>&'\"\r\n\t") {
		return s
	}
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes all
	return strings.NewReplacer("&#34;", "&quot;", "&#39;", "&apos;").Replace(b.String())
}

// part is a request of a batch.
type part struct {
	id string
	q  request
}

// parts are the requests of a batch, as far as they can be read.
func (q *request) parts() []part {
	parts := []part{}
	_, params, err := mime.ParseMediaType(q.header.Get("Content-Type"))
	if err != nil {
		return parts
	}
	for r := multipart.NewReader(bytes.NewReader(q.body), params["boundary"]); ; {
		p, err := r.NextPart()
		if err != nil {
			return parts
		}
		text, err := io.ReadAll(p)
		if err != nil {
			return parts
		}
		one, err := http.ReadRequest(bufio.NewReader(io.MultiReader(bytes.NewReader(text), strings.NewReader("\r\n"))))
		if err != nil {
			return parts
		}
		parts = append(parts, part{p.Header.Get("Content-Id"), request{method: one.Method, path: strings.TrimPrefix(one.URL.Path, "/"), query: url.Values{}, header: one.Header}})
	}
}

// batch deletes several blobs.
func (s service) batch(in *ordered[object], parts []part, w *answer) {
	var b bytes.Buffer
	for _, p := range parts {
		_, key, _ := strings.Cut(p.q.path, "/")
		one := &answer{status: http.StatusOK, header: http.Header{}}
		s.remove(in, key, &p.q, one)
		fmt.Fprintf(&b, "--batchresponse_1\r\nContent-Type: application/http\r\nContent-ID: %s\r\n\r\nHTTP/1.1 %d %s\r\n", p.id, one.status, http.StatusText(one.status))
		_ = one.header.Write(&b) // a Buffer takes all
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s\r\n", len(one.body), one.body)
	}
	b.WriteString("--batchresponse_1--\r\n")
	w.header.Set("Content-Type", "multipart/mixed; boundary=batchresponse_1")
	w.body = b.Bytes()
	w.status = http.StatusAccepted
}
