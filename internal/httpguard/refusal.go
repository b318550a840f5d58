package httpguard

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// A refusal is an answer of the guard itself.
type refusal struct {
	status int
	title  string // for answers in JSON
	detail string // in one line
	loki   string // the words of Loki, which its clients look for; "": detail
}

// crowded is the refusal of a request for which there is no place.
func crowded(err error) *refusal {
	if errors.Is(err, errCrowded) {
		return &refusal{status: http.StatusTooManyRequests, title: "Too many queries", detail: "too many queries at once"}
	}
	return &refusal{status: http.StatusServiceUnavailable, title: "Not answered", detail: err.Error()}
}

// tooLate is the refusal of a query that has taken too long.
func tooLate(limit time.Duration) *refusal {
	return &refusal{status: http.StatusGatewayTimeout, title: "Too slow",
		detail: fmt.Sprintf("the query took longer than %s; ask for a shorter range, for fewer services, or for a level", limit),
		loki:   "request timed out, decrease the duration of the request or add more label matchers (prefer exact match over regex match) to reduce the amount of data processed"}
}

// refuse writes a refusal in the form of the API that was asked.
func (a *answer) refuse(r *http.Request, f *refusal) {
	h := a.Header()
	h.Del("Content-Length")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	switch f.status {
	case http.StatusUnauthorized:
		h.Add("WWW-Authenticate", `Basic realm="blobtail"`)
		h.Add("WWW-Authenticate", `Bearer realm="blobtail"`)
	case http.StatusTooManyRequests:
		h.Set("Retry-After", "1")
		a.v.g.counts.refuse("crowded")
	}
	if strings.HasPrefix(r.URL.Path, "/api/") {
		h.Set("Content-Type", "application/problem+json")
		a.WriteHeader(f.status)
		text, _ := json.Marshal(struct {
			Type   string `json:"type"`
			Title  string `json:"title"`
			Status int    `json:"status"`
			Detail string `json:"detail"`
		}{"about:blank", f.title, f.status, f.detail})
		_, _ = a.Write(append(text, '\n'))
		return
	}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	a.WriteHeader(f.status)
	text := f.loki
	if text == "" {
		text = f.detail
	}
	_, _ = a.Write([]byte(text + "\n"))
}
