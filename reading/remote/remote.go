// Package remote asks a server of the reading API, version 1 (package api), for records,
// counts and lists.
//
// A [Client] is a [reading.Source]: questions have the same form as for a store, and so have the
// answers. [Client.Records] passes stored lines on as they come: a slow emit slows the server down,
// and nothing is gathered. [Client.Follow] goes on with new records, also over restarts of the
// server.
//
//	c, err := remote.New("https://logs.example.com", remote.Options{Token: token})
//	out, err := c.Records(ctx, reading.Ask{Services: []string{"web"}, Range: reading.Always(), Limit: 100}, emit)
//
// A refusal of the server is an [*Error], and one for a service that is none a
// [*reading.NoServiceError]. A stream of records that ends before its last event has a [*BrokenError]
// among its problems, and a list that does so is that error.
//
// The module has no path from which another module can fetch it. So the package is for the commands
// of this repository; others use the API (docs/read/api.md) or logquery.
//
// The token goes into a header, never into a URL, and to no other host: redirects are not
// followed. It goes without TLS to this host only, unless [Options.PlainHTTP] allows more.
package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"blobtail/internal/loopback"
	"blobtail/internal/trust"
	"blobtail/reading"
	"blobtail/reading/form"
)

const (
	dialWait = 5 * time.Second
	// headerWait is how long a server may take for the header of an answer. It lets queries
	// run for two minutes, and wait for their turn before.
	headerWait = 150 * time.Second
	// idleWait is how long a server may send nothing within an answer. It tells its progress
	// every second.
	idleWait = time.Minute
	// mostAnswer bounds an answer that is one object.
	mostAnswer = 256 << 20
	// busyTries is how often a request is sent to a server that is too busy for it.
	busyTries = 3
	mostPause = 10 * time.Second
)

// Options tune a Client. The zero value works for a server on this host, and for one that
// asks for no token.
type Options struct {
	// Token is shown to the server, as id.secret; "": none.
	Token string
	// PlainHTTP lets the token go to other hosts without TLS.
	PlainHTTP bool
	// Transport sends the requests; nil: one of its own, with the proxy of the environment.
	Transport http.RoundTripper
	// Trust is what the client believes; nil: what this host believes. Transport has to believe
	// the same.
	Trust *trust.Trust
	// Idle is how long the server may send nothing within an answer; 0: a minute.
	Idle time.Duration
	// Tries is how often a request is sent to a server that is too busy for it; 0: 3 times.
	Tries int
}

// Client asks one server. Several goroutines may use it at once.
type Client struct {
	base  *url.URL
	token string
	http  *http.Client
	trust *trust.Trust
	idle  time.Duration
	tries int
}

// New returns a client of the server at base, an http or https URL.
func New(base string, o Options) (*Client, error) {
	u, err := parseBase(base)
	if err != nil {
		return nil, err
	}
	if o.Token != "" && u.Scheme == "http" && !o.PlainHTTP && !loopback.Host(u.Hostname()) {
		return nil, &PlainError{Host: u.Host}
	}
	c := &Client{base: u, token: o.Token, trust: o.Trust, idle: cmp.Or(o.Idle, idleWait), tries: cmp.Or(o.Tries, busyTries)}
	c.http = &http.Client{
		Transport:     o.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if o.Transport == nil {
		transport := NewTransport()
		transport.TLSClientConfig = o.Trust.Config()
		c.http.Transport = transport
	}
	return c, nil
}

// NewTransport returns a transport as a Client has one of its own.
func NewTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: dialWait, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:    dialWait,
		ResponseHeaderTimeout:  headerWait,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true, // a Client asks for zstd
		ForceAttemptHTTP2:      true,
	}
}

// PlainError says that a token would go to another host without TLS.
type PlainError struct{ Host string }

// Error implements error.
func (e *PlainError) Error() string {
	return fmt.Sprintf("the token is not sent to %s without TLS, where others could read it; use https", e.Host)
}

// parseBase reads the URL of a server. Its errors do not repeat a URL that may hold a secret.
func parseBase(base string) (*url.URL, error) {
	u, err := url.Parse(base)
	const like = "want one like https://logs.example.com"
	shown, _, _ := strings.Cut(base, "?")
	shown, _, _ = strings.Cut(shown, "#")
	switch {
	case !strings.Contains(base, "://") && !strings.ContainsAny(base, "@?#/") && strings.Contains(base, ":"):
		return nil, fmt.Errorf("the URL of the server has no scheme; write http://%.80s, or https://%.80s", base, base)
	case err != nil && !strings.Contains(base, "://"):
		return nil, fmt.Errorf("the URL of the server has no scheme; %s, or http://127.0.0.1:8516", like)
	case err != nil:
		return nil, errors.New("the URL of the server cannot be read; " + like)
	case u.User != nil || strings.Contains(base, "@"):
		return nil, errors.New("the URL of the server has a user or a password in it; leave out what is before the @, and put the token in a file")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%.80q is no URL of a server; %s", shown, like)
	case u.Hostname() == "":
		return nil, fmt.Errorf("%.80q names no host; %s", shown, like)
	case u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" || u.ForceQuery:
		return nil, fmt.Errorf("%.80q has more behind it than a host and a path; %s", shown, like)
	}
	u.Path, u.RawPath = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/api/v1"), ""
	return u, nil
}

var _ reading.Source = (*Client)(nil)

// String is the URL of the server.
func (c *Client) String() string { return c.base.String() }

// Error is a refusal of the server.
type Error struct {
	Status int
	form.Problem
	server, retryAfter string
}

// Error implements error.
func (e *Error) Error() string {
	text := cmp.Or(e.Detail, e.Title, http.StatusText(e.Status))
	return fmt.Sprintf("the server %s answers %d: %s", e.server, e.Status, text)
}

// BrokenError says that the server's answer ended before its end: records are missing.
type BrokenError struct {
	Server string
	Err    error
}

// Error implements error.
func (e *BrokenError) Error() string {
	return fmt.Sprintf("the answer of the server %s broke off, so records are missing: %v", e.Server, e.Err)
}

// Unwrap returns the reason.
func (e *BrokenError) Unwrap() error { return e.Err }

// UnreachableError says that there is no answer of a reading API.
type UnreachableError struct{ Err error }

// Error implements error.
func (e *UnreachableError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *UnreachableError) Unwrap() error { return e.Err }

// request is a question for the server.
type request struct {
	path   string // below api/v1
	loki   bool   // below that of Loki's API
	params url.Values
	kind   string // of a good answer
}

// get sends a request and returns its answer once that is a good one. The caller must close
// its body. A server that is too busy is asked again, a few times.
func (c *Client) get(ctx context.Context, r request) (*http.Response, error) {
	for try := 1; ; try++ {
		resp, err := c.once(ctx, r)
		refused, ok := errors.AsType[*Error](err)
		if !ok || refused.Status != http.StatusTooManyRequests && refused.Status != http.StatusServiceUnavailable || try == c.tries {
			return resp, err
		}
		seconds, _ := strconv.Atoi(refused.retryAfter) // a date is too far away
		select {
		case <-time.After(min(max(time.Duration(seconds)*time.Second, time.Second), mostPause)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (c *Client) once(ctx context.Context, r request) (*http.Response, error) {
	where := c.base.JoinPath("api/v1", r.path)
	if r.loki {
		where = c.base.JoinPath("loki/api/v1", r.path)
	}
	where.RawQuery = r.params.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.base, err)
	}
	req.Header.Set("Accept", r.kind+", "+form.Trouble)
	if !loopback.Host(c.base.Hostname()) { // bytes to this host cost less than their encoding
		req.Header.Set("Accept-Encoding", "zstd")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var u *url.Error
		if errors.As(err, &u) { // the URL would bring its parameters
			err, _ = c.trust.Explain(u.Err, c.base)
		}
		return nil, &UnreachableError{fmt.Errorf("the server %s cannot be reached: %w", c.base, err)}
	}
	if err := c.check(resp, r.kind); err != nil {
		resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// check returns the error of an answer that is not of the wanted kind.
func (c *Client) check(resp *http.Response, wanted string) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode == http.StatusOK && kind == wanted {
		return nil
	}
	e := &Error{Status: resp.StatusCode, server: c.base.String(), retryAfter: resp.Header.Get("Retry-After")}
	body, err := readAll(resp, 64<<10)
	if fix := trust.WantsTLS(resp, body, c.base); fix != "" {
		return &UnreachableError{fmt.Errorf("there is no reading API at %s: %s", c.base, fix)}
	}
	switch {
	case kind == form.Trouble && err == nil && json.Unmarshal(body, &e.Problem) == nil:
		return e
	case kind == "text/plain" && err == nil && resp.StatusCode >= 400 && resp.StatusCode != http.StatusNotFound: // of Loki's API
		e.Detail = strings.TrimSpace(string(body))
		return e
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return &UnreachableError{fmt.Errorf("the server %s sends elsewhere (%d), which is not followed; is that its URL?", c.base, resp.StatusCode)}
	case resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusMethodNotAllowed:
		return &UnreachableError{fmt.Errorf("there is no reading API at %s: it answers %d with %.60q; is that the URL of logquery serve?", c.base, resp.StatusCode, kind)}
	}
	e.Detail = http.StatusText(resp.StatusCode) // of a proxy, most likely
	return e
}
