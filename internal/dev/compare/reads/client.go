package reads

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"blobtail/internal/dev/compare/canon"
)

// mostRequests is the number of requests of a burst.
const mostRequests = 128

// client asks both sides in the same way, over connections that it keeps.
type client struct {
	http http.Client
	seed maphash.Seed // of lines
	// lines has the lines of each large answer. They are compared with the corpus when all rounds
	// of a question are over.
	lines map[asked]lines
}

// asked is a variant that a side was asked.
type asked struct {
	*system
	*variant
}

func newClient() *client {
	t := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true, ReadBufferSize: 64 << 10}
	return &client{http: http.Client{Transport: t}, seed: maphash.MakeSeed(), lines: map[asked]lines{}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// ask sends the request of a question, and writes the body of its answer to w. A server that is busy
// with other clients may refuse it: then ask counts the refusal, waits as long as it is told to and asks
// again, as clients do. The time goes on.
func (c *client) ask(ctx context.Context, s *system, url string, f *form, w io.Writer, buffer []byte) (time.Duration, error) {
	begun := time.Now()
	for {
		err := c.once(ctx, url, f, w, buffer)
		busy, refused := errors.AsType[*busyError](err)
		if !refused || time.Since(begun) > 2*time.Minute {
			return time.Since(begun), err
		}
		s.refused.Add(1)
		select {
		case <-time.After(busy.after):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// busyError is a refusal of a request that may be sent again.
type busyError struct {
	after time.Duration
	text  string
}

func (e *busyError) Error() string { return e.text }

// once is ask without further requests.
func (c *client) once(ctx context.Context, url string, f *form, w io.Writer, buffer []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 500))
		err := fmt.Errorf("%s: %s", res.Status, text)
		if res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable {
			seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
			return &busyError{time.Duration(max(1, seconds)) * time.Second, err.Error()}
		}
		return err
	}
	for {
		n, err := res.Body.Read(buffer)
		_, _ = w.Write(buffer[:n]) // to memory
		if err == io.EOF {
			break
		} else if err != nil {
			return err
		}
	}
	if complete := res.Trailer.Get("Blobtail-Complete"); f.trailer && complete != "1" {
		return fmt.Errorf("it is not complete: its trailer says %q, and %q", complete, res.Trailer.Get("Blobtail-Problems"))
	}
	return nil
}

// whole asks for a variant once, and compares the answer with the corpus.
func (c *client) whole(ctx context.Context, s *system, q *question, v *variant) (time.Duration, error) {
	f := q.form(s)
	var body bytes.Buffer
	took, err := c.ask(ctx, s, q.url(s, v), f, &body, make([]byte, 64<<10))
	if err == nil {
		err = v.want.check(f, body.Bytes())
	}
	if err == nil && q.large {
		l := lines{seed: c.seed}
		_, _ = l.Write(body.Bytes()) // to memory
		err = c.same(asked{s, v}, l.whole(), f.order)
	}
	return took, wrong(s, q.command(s, v), err)
}

// same holds lines of an answer against those of another one to the same variant.
func (c *client) same(a asked, l lines, o order) error {
	before, ok := c.lines[a]
	if !ok {
		c.lines[a] = l
		return nil
	}
	return l.differ(before, o)
}

// verify compares all large answers with the corpus: a side is asked once more, the answer is
// compared record by record, and the answers before must have had its lines.
func (c *client) verify(ctx context.Context, q *question) error {
	for a := range c.lines {
		if !slices.Contains(q.variants, a.variant) {
			continue
		}
		if _, err := c.whole(ctx, a.system, q, a.variant); err != nil {
			return err
		}
	}
	return nil
}

// reply is an answer in a burst.
type reply struct {
	took  time.Duration
	body  []byte
	lines lines // of a large answer, in place of its body
}

// burst has clients ask for variants at once, each for the next one that nobody has asked for yet.
// It returns the times of all requests.
func (c *client) burst(ctx context.Context, s *system, q *question, variants []*variant, clients int) ([]time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		all     sync.WaitGroup
		begin   = make(chan struct{})
		next    atomic.Int64
		replies = make([]reply, len(variants))
		errs    = make([]error, clients)
		f       = q.form(s)
	)
	for i := range clients {
		all.Go(func() {
			buffer := make([]byte, 64<<10)
			<-begin
			for n := next.Add(1) - 1; n < int64(len(variants)); n = next.Add(1) - 1 {
				var err error
				if replies[n], err = c.reply(ctx, s, q.url(s, variants[n]), f, q.large, buffer); err != nil {
					errs[i] = wrong(s, q.command(s, variants[n]), err)
					cancel()
					return
				}
			}
		})
	}
	close(begin)
	all.Wait()
	if err := firstCause(errs); err != nil {
		return nil, err
	}
	var times []time.Duration
	for n, r := range replies {
		times = append(times, r.took)
		var err error
		if q.large {
			err = c.same(asked{s, variants[n]}, r.lines, f.order)
		} else {
			err = variants[n].want.check(f, r.body)
		}
		if err != nil {
			return nil, wrong(s, q.command(s, variants[n]), err)
		}
	}
	return times, nil
}

// reply asks once, and keeps of the answer as much as a check after the burst needs.
func (c *client) reply(ctx context.Context, s *system, url string, f *form, large bool, buffer []byte) (r reply, err error) {
	if large {
		l := lines{seed: c.seed}
		r.took, err = c.ask(ctx, s, url, f, &l, buffer)
		r.lines = l.whole()
		return r, err
	}
	var body bytes.Buffer
	r.took, err = c.ask(ctx, s, url, f, &body, buffer)
	r.body = body.Bytes()
	return r, err
}

// firstCause returns an error of a client, rather one that is no consequence of another's.
func firstCause(errs []error) (cause error) {
	for _, err := range errs {
		if err != nil && (cause == nil || errors.Is(cause, context.Canceled)) {
			cause = err
		}
	}
	return cause
}

// lines hashes the lines of a body as it arrives, with and without their order.
type lines struct {
	seed     maphash.Seed
	n        int
	sum, row uint64 // in any order; in this order
	part     []byte // of a line whose end has not come
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	size := len(p)
	for {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			l.part = append(l.part, p...)
			return size, nil
		}
		line := p[:end]
		if len(l.part) > 0 {
			l.part = append(l.part, line...)
			line = l.part
		}
		h := canon.Mix(maphash.Bytes(l.seed, line))
		l.n++
		l.sum += h
		l.row = l.row*0x100000001b3 + h
		l.part = l.part[:0]
		p = p[end+1:]
	}
}

// whole returns the lines of the whole body. Text behind the last newline counts as a line.
func (l lines) whole() lines {
	if len(l.part) > 0 {
		_, _ = l.Write([]byte("\n"))
	}
	l.part = nil
	return l
}

// differ tells how lines differ from those of an answer that was right.
func (l lines) differ(right lines, o order) error {
	switch {
	case l.n != right.n:
		return fmt.Errorf("%d records, not %d as in the answer before", l.n, right.n)
	case l.sum != right.sum:
		return fmt.Errorf("%d records, as many as in the answer before, but others", l.n)
	case o != anyOrder && l.row != right.row:
		return fmt.Errorf("the same %d records as in the answer before in another order", l.n)
	}
	return nil
}
