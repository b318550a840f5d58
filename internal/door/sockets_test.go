package door_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/dev/testkit"
	"blobtail/internal/door"
)

// hall is a server with bounded connections, in virtual time.
type hall struct {
	t   *testing.T
	l   *testkit.Pipes
	log *journal
}

func inHall(t *testing.T, most int, h http.HandlerFunc, test func(s *hall)) {
	synctest.Test(t, func(t *testing.T) {
		s := &hall{t, testkit.NewPipes(nil), new(journal)}
		log := zerolog.New(s.log)
		srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Hour, IdleTimeout: time.Hour}
		l := door.FirstBytes(door.NewSockets(most, log).Watch(srv, s.l), false, log)
		var serving sync.WaitGroup
		serving.Go(func() { _ = srv.Serve(l) })
		test(s)
		srv.Close()
		serving.Wait()
	})
}

// connect connects from an address, sends a text, and waits a little.
func (s *hall) connect(address, text string) net.Conn {
	ours, _ := s.l.DialFrom(context.Background(), &net.UnixAddr{Name: address, Net: "unix"}) // it listens
	go func() { _, _ = io.WriteString(ours, text) }()                                        // it may be closed before it is read
	time.Sleep(time.Millisecond)
	synctest.Wait()
	return ours
}

const whole = "GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n"

// asks wants an answer on a new connection.
func (s *hall) asks(address string) net.Conn {
	s.t.Helper()
	c := s.connect(address, fmt.Sprintf(whole, ""))
	s.reads(c)
	return c
}

func (s *hall) reads(c net.Conn) {
	s.t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		s.t.Errorf("no answer: %v", err)
		return
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 {
		s.t.Errorf("%d, %v", resp.StatusCode, err)
	}
}

// isOpen reports whether the server has not closed a connection.
func isOpen(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := c.Read(make([]byte, 1))
	return !errors.Is(err, io.EOF)
}

func reader(w http.ResponseWriter, r *http.Request) {
	if d, err := time.ParseDuration(strings.TrimPrefix(r.URL.Path, "/")); err == nil {
		time.Sleep(d)
	}
	if _, err := io.Copy(io.Discard, r.Body); err == nil {
		fmt.Fprint(w, "answer")
	}
}

// However many connections an address opens and leaves without a request, with half a header or with
// half a body, others are answered at once, and so is another one of its own.
func TestIdleSocketsMakeRoom(t *testing.T) {
	for name, text := range map[string]string{
		"silent": "", "half a header": "GET / HTTP/1.1\r\nHost: lo", "half a body": "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf",
	} {
		t.Run(name, func(t *testing.T) {
			inHall(t, 20, reader, func(s *hall) {
				for range 60 {
					defer s.connect("hog", text).Close()
					time.Sleep(200 * time.Millisecond)
				}
				time.Sleep(time.Second)
				for _, address := range []string{"one", "hog", "two", "hog", "one"} {
					defer s.asks(address).Close()
				}
			})
		})
	}
}

// The connection that has been silent for longest makes room, and a working one never does.
func TestSocketsMakeRoomInOrder(t *testing.T) {
	inHall(t, 4, reader, func(s *hall) {
		idle := s.asks("a")
		busy := s.connect("a", fmt.Sprintf(whole, "30s"))
		if c := s.asks("a"); isOpen(idle) || !isOpen(busy) || !isOpen(c) {
			t.Error("the idle one did not make room for the new one")
		}
		other := s.connect("b", fmt.Sprintf(whole, "30s"))
		working := []net.Conn{busy, s.connect("a", fmt.Sprintf(whole, "30s"))}
		if c := s.connect("a", fmt.Sprintf(whole, "30s")); isOpen(c) || !strings.Contains(s.log.String(), `"remote":"a"`) {
			t.Errorf("one more than half is open:\n%s", s.log)
		}
		for _, c := range append(working, other) {
			_ = c.SetReadDeadline(time.Time{})
			s.reads(c)
			c.Close()
		}
	})
}

// Many addresses with a connection each leave room too.
func TestSocketsOfManyAddresses(t *testing.T) {
	inHall(t, 10, reader, func(s *hall) {
		for i := range 50 {
			defer s.asks(fmt.Sprint("host-", i)).Close()
		}
	})
}
