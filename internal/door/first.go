package door

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/signpost"
)

const (
	// headWait is how long the header of a request may take that came to the wrong protocol.
	headWait = time.Second
	// farewell is how long a client is read after that answer, at most. Many clients send all of a
	// body before they read. A connection that is closed with unread bytes is reset, and the answer
	// is lost with it.
	farewell = time.Second
)

// FirstBytes returns a listener that looks at the first bytes of each connection. If a client
// speaks another protocol than the listener, it gets an answer that says so, and the log has a
// line. sealed says that the listener is below one of TLS.
func FirstBytes(l net.Listener, sealed bool, log zerolog.Logger) net.Listener {
	return &greeter{l, sealed, log.Sample(&zerolog.BurstSampler{Burst: 1, Period: time.Second})}
}

type greeter struct {
	net.Listener
	sealed bool
	log    zerolog.Logger
}

// Accept implements [net.Listener].
func (l *greeter) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &beginning{Conn: nc, of: l}, nil
}

// beginning is a connection with first bytes that are looked at.
type beginning struct {
	net.Conn
	of   *greeter
	seen atomic.Bool
}

// Read implements [net.Conn].
func (c *beginning) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n == 0 || c.seen.Swap(true) {
		return n, err
	}
	speech := signpost.SpeechOf(p[:n])
	switch {
	case c.of.sealed && speech == signpost.HTTP:
		return 0, c.wantTLS(p[:n])
	case c.of.sealed && speech != signpost.Proxy || speech == signpost.HTTP && mayBeRequest(p[:n]) || speech == signpost.Other && err == nil && n < 2:
		return n, err
	}
	text := speech.Instead()
	c.of.log.Warn().Str("remote", c.RemoteAddr().String()).Msg("a client spoke no HTTP: " + text)
	c.answer(text)
	return 0, io.EOF // net/http answers nothing more
}

// mayBeRequest reports whether the first line of a connection is a request, or is not whole yet.
func mayBeRequest(b []byte) bool {
	line, _, whole := bytes.Cut(b, []byte("\n"))
	return !whole || signpost.IsRequest(line)
}

// NetConn returns the connection below.
func (c *beginning) NetConn() net.Conn { return c.Conn }

// CloseWrite ends the sending half, which net/http does before it closes a connection.
func (c *beginning) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// wantTLS answers a request that came without TLS, of which head has come. The error is for the log.
func (c *beginning) wantTLS(head []byte) error {
	const most = 8 << 10
	const words = "Client sent an HTTP request to an HTTPS server. " // as net/http says it, for clients that look for that
	head = bytes.Clone(head)
	_ = c.SetReadDeadline(time.Now().Add(headWait))
	for buf := make([]byte, 1<<10); len(head) < most && !bytes.Contains(head, []byte("\r\n\r\n")); {
		n, err := c.Conn.Read(buf)
		if head = append(head, buf[:n]...); err != nil {
			break
		}
	}
	text := words + "Use https://"
	if r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(head))); err == nil && isHost(r.Host) {
		text += r.Host
	}
	c.answer(text)
	return errors.New("the client sent HTTP to a listener with TLS: it has to use https://")
}

// isHost reports whether a text of a client looks like a host.
func isHost(text string) bool {
	const most = 260
	return text != "" && len(text) <= most && strings.IndexFunc(text, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune(".-_:[]", c)
	}) < 0
}

// answer answers with a line of text, and reads the client until it hangs up, for a short while.
func (c *beginning) answer(text string) {
	_ = c.SetDeadline(time.Now().Add(farewell))
	fmt.Fprintf(c.Conn, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s\n", len(text)+1, text)
	_ = c.CloseWrite()
	_, _ = io.Copy(io.Discard, c.Conn)
}
