package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"blobtail/internal/loopback"
	"blobtail/internal/trust"
)

// HastyWait is how long a silent ingester may take for the header of its answer: most
// likely it does not run.
const HastyWait = time.Second

// OwnWait is longer than an ingester takes to answer for itself, or to say that it cannot.
const OwnWait = headerWait + 2*time.Second

const (
	dialWait = 2 * time.Second
	// headerWait is how long an ingester waits for the header of another one. Its own
	// caller waits a little longer, so that one ingester that hangs does not cost the
	// rest.
	headerWait       = 10 * time.Second
	readerHeaderWait = 15 * time.Second
	// idleWait is how long another ingester may send nothing during a read. A reader
	// waits longer, as for the header.
	idleWait       = 30 * time.Second
	readerIdleWait = 45 * time.Second
)

// ClientOptions tune a client. The zero value works.
type ClientOptions struct {
	// HTTP sends the questions, as a client of [NewHTTP] does; nil: one of its own.
	HTTP *http.Client
	// Trust is what the client believes; nil: what this host believes. HTTP has to believe the same.
	Trust *trust.Trust
	// Token is the credentials of the reader, as id.secret; "": none. It goes over TLS, or to
	// this host, unless PlainHTTP allows more. The writers of the ingesters' rows choose the
	// addresses in them.
	Token string
	// PlainHTTP lets the token go to other hosts without TLS.
	PlainHTTP bool
	// Wait is how long an ingester may take for the header of its answer; 0: 15 s.
	Wait time.Duration
	// Hangs has the ingesters that hang: these take less of Wait. nil: an ingester may take all
	// of it.
	Hangs *Hangs
}

// Client asks one ingester for the live records of all. It is safe for concurrent
// use.
type Client struct {
	base  *url.URL
	http  *http.Client
	trust *trust.Trust
	token string
	// withheld says that there is a token, and that it must not go to this address.
	withheld bool
	alone    bool // asks for the one ingester's own records
	// readable has the globs that the reader of an asking ingester may read; "": all.
	readable string
	// The longest waits: for the header of an answer, and for more of its body.
	wait, idle time.Duration
	hangs      *Hangs // nil: none is remembered
	start      string // of the ingester, if it is known: its id and process
}

// NewClient returns a client of the ingester at base, an http or https URL.
func NewClient(base string, o ClientOptions) (*Client, error) {
	u, err := parseBase(base)
	if err != nil {
		return nil, err
	}
	c := &Client{base: u, http: o.HTTP, trust: o.Trust, token: o.Token, wait: cmp.Or(o.Wait, readerHeaderWait), idle: readerIdleWait, hangs: o.Hangs}
	if c.http == nil {
		c.http = NewHTTP(o.Trust)
	}
	if c.token != "" && u.Scheme == "http" && !o.PlainHTTP && !loopback.Host(u.Hostname()) {
		c.token, c.withheld = "", true
	}
	return c, nil
}

// Close closes the connections that are not in use.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// parseBase reads the URL of an ingester. Its errors do not repeat a URL that may hold
// a secret.
func parseBase(base string) (*url.URL, error) {
	u, err := url.Parse(base)
	shown, _, _ := strings.Cut(base, "?")
	shown, _, _ = strings.Cut(shown, "#")
	switch {
	case err != nil:
		return nil, errors.New("the URL of an ingester cannot be read: want one like http://10.0.0.4:8514")
	case u.User != nil || strings.Contains(base, "@"):
		return nil, errors.New("the URL of an ingester has a user or a password in it; leave out what is before the @")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%.80q is no URL of an ingester: want one like http://10.0.0.4:8514", shown)
	case u.Hostname() == "":
		return nil, fmt.Errorf("%.80q names no host: want a URL like http://10.0.0.4:8514", shown)
	case u.RawQuery != "" || u.Fragment != "" || u.Opaque != "":
		return nil, fmt.Errorf("%.80q has more behind it than a host and a path: want a URL like http://10.0.0.4:8514", shown)
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	return u, nil
}

// NewHTTP returns a client with its own connections, to servers that it believes. It uses the
// proxy of the environment, and follows no redirects.
func NewHTTP(believed *trust.Trust) *http.Client { return newHTTP(http.ProxyFromEnvironment, believed) }

// newHTTP makes the client that both ends use. Ask and Answer bound the times for
// headers and bodies.
func newHTTP(proxy func(*http.Request) (*url.URL, error), believed *trust.Trust) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  proxy,
			DialContext:            (&net.Dialer{Timeout: dialWait, KeepAlive: 15 * time.Second}).DialContext,
			TLSClientConfig:        believed.Config(),
			TLSHandshakeTimeout:    dialWait,
			MaxIdleConnsPerHost:    4,
			IdleConnTimeout:        30 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
			DisableCompression:     true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// errNoHeader and errIdle are causes for which we end a request ourselves.
var (
	errNoHeader = errors.New("no answer in time")
	errIdle     = errors.New("it sends nothing any more")
)

// Ask sends a question. It returns when the header of the answer is there. By then
// every snapshot is taken, and blobs may be listed. The caller must close the answer,
// which ends when ctx does. The error is [*NoAnswerError], or
// a plain one for an invalid question and for the end of ctx.
func (c *Client) Ask(ctx context.Context, q Query) (*Answer, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	caller := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	req, err := c.request(ctx, http.MethodGet, q.Service)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	req.URL.RawQuery = q.values(c.alone).Encode()
	if c.readable != "" {
		req.Header.Set(headerReadable, c.readable)
	}
	if q.Stored && !q.Follow {
		req.Header.Set(headerStored, "1")
	}
	p := c.hangs.use(c.start + " " + c.base.String())
	context.AfterFunc(ctx, p.done)
	resp, err := c.do(ctx, req, p, cancel)
	if err != nil {
		cause := context.Cause(ctx)
		cancel(nil)
		var u *url.Error
		apart := false
		switch {
		case caller.Err() != nil:
			return nil, fmt.Errorf("ask %s: %w", c.base, caller.Err())
		case errors.Is(cause, errNoHeader) || errors.Is(cause, errHung):
			err = cause
		case errors.As(err, &u): // the URL would bring its parameters
			err, apart = c.trust.Explain(u.Err, c.base)
		}
		return nil, &NoAnswerError{TLS: apart, Err: fmt.Errorf("no ingester can be reached at %s: %w", c.base, err)}
	}
	a := newAnswer(caller, ctx, c, q, p, resp, cancel)
	if err := a.header(resp); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

// request makes a request about services.
func (c *Client) request(ctx context.Context, method, services string) (*http.Request, error) {
	where := *c.base
	where.Path, where.RawPath = c.base.Path+"/live/"+services, c.base.EscapedPath()+"/live/"+url.PathEscape(services)
	req, err := http.NewRequestWithContext(ctx, method, where.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.base, err)
	}
	req.Header.Set(headerVersion, strconv.Itoa(Version))
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return req, nil
}

// do sends a question, which cancel ends. It gives the ingester less time if that hangs.
func (c *Client) do(ctx context.Context, req *http.Request, p *pulse, cancel context.CancelCauseFunc) (*http.Response, error) {
	patient, err := p.admit(ctx, c)
	if err != nil {
		cancel(err)
		return nil, err
	}
	late := time.AfterFunc(c.wait, func() { p.late(c.wait); cancel(errNoHeader) })
	stop := p.watch(c, c.wait, patient, cancel)
	resp, err := c.http.Do(req)
	late.Stop()
	stop()
	switch {
	case err == nil:
		p.sign()
	case ctx.Err() == nil && isTimeout(err):
		p.late(hangWait)
	}
	return resp, err
}

// Self returns the ingester that answers at the URL. It asks for no record, and the
// ingester asks no other one. The errors are those of Ask.
func (c *Client) Self(ctx context.Context) (Self, error) {
	one := *c
	one.alone = true
	a, err := one.Ask(ctx, Query{Service: "*", From: math.MinInt64, To: math.MaxInt64, Follow: true, Now: true})
	if err != nil {
		return Self{}, err
	}
	defer a.Close()
	return a.Self, nil
}

// header checks the beginning of an answer.
func (a *Answer) header(resp *http.Response) error {
	runs := resp.Header.Get(headerVersion) != "" || isID(resp.Header.Get(headerIngester))
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	var begin []byte
	tls := ""
	if resp.StatusCode != http.StatusOK {
		begin, _ = io.ReadAll(io.LimitReader(a.body, 1<<10))
	}
	if !runs {
		tls = trust.WantsTLS(resp, begin, a.client.base)
	}
	no := func(form string, args ...any) error {
		return &NoAnswerError{Status: resp.StatusCode, Ingester: runs, TLS: tls != "", Err: fmt.Errorf(form, args...)}
	}
	foreign := func(form string, args ...any) error {
		return no("no ingester's live records at %s: %s", a.client.base, fmt.Sprintf(form, args...))
	}
	self := Self{resp.Header.Get(headerIngester), resp.Header.Get(headerProcess), resp.Header.Get(headerStore)}
	version, known := parseNumber([]byte(cmp.Or(resp.Header.Get(headerVersion), "1")), 32)
	switch {
	case !known || version == 0:
		return foreign("the version of its answer cannot be read: %.20q", resp.Header.Get(headerVersion))
	case version > Version || version < Version && resp.StatusCode == http.StatusOK && isID(self.ID):
		return no("ingester %s at %s speaks version %d of /live%s", plain(self.ID), a.client.base, version, a.client.upgrade(version))
	case tls != "":
		return foreign("%s", tls)
	case resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusMethodNotAllowed:
		return foreign("it does not know /live/ (%d); is it an ingester's listener for records, of this version?", resp.StatusCode)
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return foreign("it sends elsewhere (%d), which is not followed", resp.StatusCode)
	case kind != "text/plain":
		return foreign("it answers %d with %.40q", resp.StatusCode, kind)
	case resp.StatusCode != http.StatusOK:
		return no("the ingester at %s does not answer (%d): %s", a.client.base, resp.StatusCode, a.refusal(begin))
	case !isID(self.ID):
		return foreign("its answer does not say which ingester it is of")
	case !isID(self.Process) || self.Store != "" && (len(self.Store) != 32 || !isHex(self.Store)):
		return foreign("the answer of ingester %s does not say of which start and which store it is", self.ID)
	}
	a.Self, a.Narrowed = self, plain(resp.Header.Get(headerNarrowed))
	var err error
	process := func(text string) (string, bool) { return text, isID(text) }
	if a.Snapshots, err = parseList(resp.Header.Get(headerSnapshots), "those of its process", process); err != nil {
		return foreign("its list of ingesters cannot be read: %v", err)
	}
	age := resp.Header.Get(headerRowsAge)
	ms, known := parseNumber([]byte(cmp.Or(age, "0")), 40)
	if !known {
		return foreign("the age of its list of ingesters cannot be read: %.20q: want milliseconds", age)
	}
	a.RowsAge = time.Duration(ms) * time.Millisecond
	if age == "" {
		a.RowsAge = -time.Millisecond
	}
	if a.positions, err = ParsePositions(resp.Header.Get(headerPositions)); err != nil {
		return foreign("its positions cannot be read: %v", err)
	}
	if text := resp.Header.Get(headerBehind); text != "" {
		a.Behind = strings.Split(text, ",")
	}
	for _, id := range a.Behind {
		if !isID(id) {
			return foreign("%.40q in it is no ingester", id)
		}
	}
	return nil
}

// refusal is the text of an ingester that gives no records. begin is the beginning of its answer.
func (a *Answer) refusal(begin []byte) string {
	text := begin[:min(300, len(begin))]
	if a.client.withheld {
		return plain(string(text)) + " (a token goes to another host only over https, so none was sent)"
	}
	return plain(string(text))
}

// upgrade says which program has to be upgraded before an answer of a version is read.
// Another ingester that asked passes the text on to its reader.
func (c *Client) upgrade(version uint64) string {
	switch {
	case version < Version:
		return ", as before commit a960ca37: upgrade that ingester"
	case c.alone:
		return fmt.Sprintf("; the ingester that asked it knows versions up to %d: upgrade the one that asked", Version)
	}
	return fmt.Sprintf("; this program knows versions up to %d: upgrade this program", Version)
}

// plain makes one short line of any text, without characters that control a terminal.
func plain(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return '?'
		}
		return r
	}, s)
	if len(s) > maxReason {
		s = strings.ToValidUTF8(s[:maxReason], "") + "..."
	}
	return s
}

const maxReason = 400
