package page_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// recorder is a proxy in front of a server. It keeps each byte of the requests and answers.
type recorder struct {
	server *http.Server

	mu    sync.Mutex
	heard []*heard
}

// heard is a request and its answer.
type heard struct {
	request string

	mu   sync.Mutex
	text bytes.Buffer
}

func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(b)
}

// record puts a recorder in front of the server of a world.
func (w *world) record() error {
	target, err := url.Parse(w.url)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", target.Hostname()+":0")
	if err != nil {
		return err
	}
	p := new(recorder)
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = target.Host
			r.Out.Header.Set("Accept-Encoding", "identity") // what is kept can be searched
			if r.In.Header.Get("Origin") == "http://"+r.In.Host {
				r.Out.Header.Set("Origin", "http://"+target.Host)
			}
		},
		ModifyResponse: func(resp *http.Response) error {
			h := &heard{request: fmt.Sprint(resp.Request.Method, " ", resp.Request.URL.RequestURI())}
			_ = resp.Request.Header.Write(h)
			fmt.Fprintln(h, h.request)
			fmt.Fprintln(h, resp.Status)
			_ = resp.Header.Write(h)
			p.mu.Lock()
			p.heard = append(p.heard, h)
			p.mu.Unlock()
			resp.Body = struct {
				io.Reader
				io.Closer
			}{io.TeeReader(resp.Body, h), resp.Body}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	p.server = &http.Server{Handler: proxy}
	go p.server.Serve(l)
	w.proxy, w.url = p, "http://"+l.Addr().String()
	return nil
}

func (p *recorder) close() { p.server.Close() }

// finding is what a search through the kept bytes has found.
type finding struct {
	Requests []string `json:"requests"` // all of them
	Found    []string `json:"found"`    // the request, the needle and the bytes around it
	Bytes    int      `json:"bytes"`
}

func (p *recorder) find(needles []string) finding {
	p.mu.Lock()
	all := slices.Clone(p.heard)
	p.mu.Unlock()
	f := finding{Found: []string{}}
	for _, h := range all {
		h.mu.Lock()
		text := h.text.String()
		h.mu.Unlock()
		f.Requests = append(f.Requests, h.request)
		f.Bytes += len(text)
		for _, needle := range needles {
			if at := strings.Index(strings.ToLower(text), strings.ToLower(needle)); at >= 0 {
				f.Found = append(f.Found, fmt.Sprintf("%s: %s: …%q…", h.request, needle, text[max(0, at-40):min(len(text), at+60)]))
			}
		}
	}
	return f
}
