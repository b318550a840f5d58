package reads

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"blobtail/internal/dev/compare/canon"
)

// mostRequests is the number of requests of a burst, beside one of each client.
const mostRequests = 64

// client asks both sides in the same way, over connections that it keeps.
type client struct {
	http http.Client
	seed maphash.Seed // of lines
	// lines has the lines of the first answer to a question, which were compared with the
	// corpus.
	lines map[*form]lines
}

func newClient() *client {
	t := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true, ReadBufferSize: 64 << 10}
	return &client{http: http.Client{Transport: t}, seed: maphash.MakeSeed(), lines: map[*form]lines{}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// ask sends the request of a question, and writes the body of its answer to w. A server that is busy
// with other clients may refuse it: then ask waits and asks again, as clients do, and the time goes
// on.
func (c *client) ask(ctx context.Context, url string, f *form, w io.Writer, buffer []byte) (time.Duration, error) {
	begun := time.Now()
	for {
		err := c.once(ctx, url, f, w, buffer)
		busy, refused := errors.AsType[*busyError](err)
		if !refused || time.Since(begun) > 2*time.Minute {
			return time.Since(begun), err
		}
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

// first asks a question once, and compares the answer with the corpus.
func (c *client) first(ctx context.Context, s *system, q *question) error {
	f := q.form(s)
	var body bytes.Buffer
	if _, err := c.ask(ctx, q.url(s), f, &body, make([]byte, 64<<10)); err != nil {
		return err
	}
	if err := q.check(f, body.Bytes()); err != nil {
		return err
	}
	if !f.kept() {
		l := lines{seed: c.seed}
		_, _ = l.Write(body.Bytes()) // to memory
		c.lines[f] = l.whole()
	}
	return nil
}

// burst has clients ask at once, again and again for a time, and at least once each. It returns the
// times of all requests.
func (c *client) burst(ctx context.Context, s *system, q *question, clients int, span time.Duration) ([]time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		all   sync.WaitGroup
		begin = make(chan struct{})
		took  = make([][]time.Duration, clients)
		kept  = make([][][]byte, clients)
		errs  = make([]error, clients)
		f     = q.form(s)
		url   = q.url(s)
		begun time.Time
	)
	for i := range clients {
		all.Go(func() {
			buffer := make([]byte, 64<<10)
			<-begin
			for n := 0; n == 0 || n < mostRequests/clients && time.Since(begun) < span; n++ {
				d, body, err := c.again(ctx, url, f, buffer)
				if err != nil {
					errs[i] = err
					cancel()
					return
				}
				took[i] = append(took[i], d)
				if body != nil {
					kept[i] = append(kept[i], body)
				}
			}
		})
	}
	begun = time.Now()
	close(begin)
	all.Wait()
	if err := firstCause(errs); err != nil {
		return nil, err
	}
	var times []time.Duration
	for i := range clients {
		times = append(times, took[i]...)
		for _, body := range kept[i] {
			if err := q.check(f, body); err != nil {
				return nil, err
			}
		}
	}
	return times, nil
}

// again asks a question that was answered before. A body that is checked after the burst is
// returned. The lines of others are checked here.
func (c *client) again(ctx context.Context, url string, f *form, buffer []byte) (took time.Duration, body []byte, err error) {
	if f.kept() {
		var kept bytes.Buffer
		took, err = c.ask(ctx, url, f, &kept, buffer)
		return took, kept.Bytes(), err
	}
	l := lines{seed: c.seed}
	took, err = c.ask(ctx, url, f, &l, buffer)
	if err == nil {
		err = l.whole().differ(c.lines[f], f.order)
	}
	return took, nil, err
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
