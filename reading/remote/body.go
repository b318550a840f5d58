package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/klauspost/compress/zstd"

	"blobtail/reading/form"
)

// mostWindow bounds the memory of a decoder: an answer of a server is not trusted.
const mostWindow = 8 << 20

// errIdle is a server that sends nothing any more.
var errIdle = errors.New("it sends nothing any more")

// body is the body of an answer, decoded. Its Close ends the request.
type body struct {
	io.Reader
	closers []func()
}

func (b *body) Close() {
	for _, end := range b.closers {
		end()
	}
}

// open sends a request and returns the body of its answer. The server may be silent for some
// time, while somebody waits for it.
func (c *Client) open(ctx context.Context, r request) (*body, http.Header, error) {
	running, cancel := context.WithCancelCause(ctx)
	resp, err := c.get(running, r)
	if err != nil {
		cancel(nil)
		return nil, nil, err
	}
	b := &body{closers: []func(){func() { cancel(nil); resp.Body.Close() }}}
	b.Reader = &watched{from: resp.Body, ctx: running, cancel: cancel, idle: c.idle}
	if resp.Header.Get("Content-Encoding") == "zstd" {
		d, err := decoder(b.Reader)
		if err != nil {
			b.Close()
			return nil, nil, err
		}
		b.Reader, b.closers = d, append([]func(){d.Close}, b.closers...)
	}
	return b, resp.Header, nil
}

func decoder(from io.Reader) (*zstd.Decoder, error) {
	return zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(mostWindow), zstd.WithDecoderLowmem(true))
}

// watched ends a request if its answer stays away. The time that its reader takes between two reads
// does not count.
type watched struct {
	from   io.Reader
	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   time.Duration
}

func (w *watched) Read(p []byte) (int, error) {
	late := time.AfterFunc(w.idle, func() { w.cancel(errIdle) })
	n, err := w.from.Read(p)
	late.Stop()
	if errors.Is(context.Cause(w.ctx), errIdle) {
		return 0, errIdle // also if bytes came late: the server knows that nobody waits
	}
	return n, err
}

// readAll reads an answer that may have most bytes.
func readAll(resp *http.Response, most int64) ([]byte, error) {
	from := io.Reader(resp.Body)
	if resp.Header.Get("Content-Encoding") == "zstd" {
		d, err := decoder(from)
		if err != nil {
			return nil, err
		}
		defer d.Close()
		from = d
	}
	return io.ReadAll(io.LimitReader(from, most))
}

// object asks for an answer that is one object.
func (c *Client) object(ctx context.Context, path string, params url.Values, to any) error {
	return c.answer(ctx, request{path: path, params: params, kind: form.JSON}, to)
}

// answer asks for an answer that is one object.
func (c *Client) answer(ctx context.Context, r request, to any) error {
	b, _, err := c.open(ctx, r)
	if err != nil {
		return err
	}
	defer b.Close()
	text, err := io.ReadAll(io.LimitReader(b, mostAnswer+1))
	if err == nil && len(text) > mostAnswer {
		return fmt.Errorf("the server %s answers with more than %d bytes", c.base, mostAnswer)
	}
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return &BrokenError{c.base.String(), err}
	}
	return nil
}
