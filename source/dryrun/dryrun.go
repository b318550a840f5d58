// Package dryrun passes the parcels of shippers through the real sources, and appends nothing. So
// tests and people see the records that an ingester would make, without a server, a store and a log
// on disk.
//
// [Send] takes a parcel of package blobtail/source/carry.
package dryrun

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	natsio "github.com/nats-io/nats.go"

	"blobtail/record"
	"blobtail/source/body"
	"blobtail/source/carry"
	"blobtail/source/httpsource"
	"blobtail/source/natssource"
	"blobtail/source/shippers"
	"blobtail/source/syslog"
)

// Options are the settings of the sources. The zero value is usable.
type Options struct {
	// Arrived is the time of arrival. Zero: now.
	Arrived time.Time
	// HTTP are the settings of the source of HTTP; its Fields are those of NATS too. Accept, Now
	// and Protocols are set here.
	HTTP httpsource.Options
	// Shippers are those of the protocols over HTTP.
	Shippers shippers.Options
	// Syslog are those of the source of syslog. Accept and Now are set here.
	Syslog syslog.Options
	// Accept takes the requests. Nil: nobody does.
	Accept body.Accepter
	// Watch is told of each record, in their order. Nil: nobody is.
	Watch body.Watch
}

// An Answer is the answer to a parcel. Syslog and NATS have none.
type Answer struct {
	Status int // of HTTP, 0 for none
	Text   string
	Note   string // of the native protocol
}

// Refused reports whether the parcel was refused as a whole.
func (a Answer) Refused() bool { return a.Status >= http.StatusMultipleChoices }

// Send passes a parcel. The error says that it could not be passed; a refusal is an answer.
func Send(ctx context.Context, p carry.Parcel, o Options) (Answer, error) {
	if o.Arrived.IsZero() {
		o.Arrived = time.Now()
	}
	if o.Accept == nil {
		o.Accept = nowhere{}
	}
	now := func() time.Time { return o.Arrived }
	switch p.By {
	case carry.Syslog:
		o.Syslog.Accept, o.Syslog.Now, o.Syslog.Watch = o.Accept, now, o.Watch
		return Answer{}, sendSyslog(ctx, p, o.Syslog)
	case carry.NATS:
		q, bad := natssource.Read(&natsio.Msg{Subject: p.Subject, Data: p.Body}, o.Arrived, o.HTTP.Fields, o.Watch)
		if bad != nil {
			return Answer{Status: http.StatusUnsupportedMediaType, Text: bad.Error()}, nil
		}
		_, err := o.Accept.Accept(ctx, q)
		return Answer{}, err
	}
	o.HTTP.Accept, o.HTTP.Now, o.HTTP.Watch = o.Accept, now, o.Watch
	o.HTTP.Protocols = shippers.Protocols(o.Shippers)
	return sendHTTP(ctx, p, o.HTTP)
}

// nowhere is an Accepter that keeps nothing.
type nowhere struct{}

// Accept implements [body.Accepter].
func (nowhere) Accept(context.Context, *record.Request) (record.Receipt, error) {
	return record.Receipt{Wait: func(context.Context, bool) error { return nil }}, nil
}

func sendHTTP(ctx context.Context, p carry.Parcel, o httpsource.Options) (Answer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1"+p.Path, bytes.NewReader(p.Body))
	if err != nil {
		return Answer{}, fmt.Errorf("make the request for %s: %w", p.Path, err)
	}
	r.RemoteAddr = "127.0.0.1:1"
	if p.ContentType != "" {
		r.Header.Set("Content-Type", p.ContentType)
	}
	w := &writer{header: http.Header{}}
	httpsource.New(o).ServeHTTP(w, r)
	a := Answer{Status: w.status, Text: w.text.String()}
	var native struct{ Note string }
	if json.Unmarshal(w.text.Bytes(), &native) == nil {
		a.Note = native.Note
	}
	return a, nil
}

// A writer keeps an answer of HTTP.
type writer struct {
	header http.Header
	status int
	text   bytes.Buffer
}

// Header implements [http.ResponseWriter].
func (w *writer) Header() http.Header { return w.header }

// WriteHeader implements [http.ResponseWriter].
func (w *writer) WriteHeader(status int) { w.status = status }

// Write implements [http.ResponseWriter].
func (w *writer) Write(p []byte) (int, error) { return w.text.Write(p) }

// sendSyslog writes to a connection of the source, and waits until it has read all.
func sendSyslog(ctx context.Context, p carry.Parcel, o syslog.Options) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	ours, theirs := net.Pipe()
	done := make(chan error, 1)
	s := syslog.New(o)
	go func() { done <- s.Run(ctx, newListener(theirs)) }()
	_, err := ours.Write(p.Body)
	if closed := ours.Close(); err == nil {
		err = closed
	}
	end() // the source reads all of the connection before it ends
	if ran := <-done; err == nil {
		err = ran
	}
	if err != nil {
		return fmt.Errorf("send messages of syslog: %w", err)
	}
	return nil
}

// A listener has one connection.
type listener struct {
	conn   chan net.Conn
	closed context.Context
	end    context.CancelFunc
	addr   net.Addr
}

func newListener(c net.Conn) *listener {
	l := &listener{conn: make(chan net.Conn, 1), addr: c.LocalAddr()}
	l.closed, l.end = context.WithCancel(context.Background())
	l.conn <- c
	return l
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed.Done():
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *listener) Close() error { l.end(); return nil }

// Addr implements [net.Listener].
func (l *listener) Addr() net.Addr { return l.addr }
