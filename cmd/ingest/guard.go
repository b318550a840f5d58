package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"blobtail/internal/access"
	"blobtail/internal/door"
	"blobtail/reading/unflushed/live"
	"blobtail/record/ack"
	"blobtail/source/httpsource"
)

// kindOf is the kind of the requests of a path, for the listener for records. The source asks
// for the token itself, because its answer has the form of a protocol.
func kindOf(path string) door.Kind {
	if strings.HasPrefix(path, "/live/") {
		return door.Light
	}
	return door.Asks
}

// adminKindOf is kindOf for the listener for operators. Probes are answered to everybody: a
// kubelet has no token, and asks for an address.
func adminKindOf(path string) door.Kind {
	switch path {
	case "/healthz", "/readyz":
		return door.Probe
	}
	return door.Operator
}

// readerOf returns the reader behind a request for unflushed records. The door has let the request
// in.
func readerOf(r *http.Request) (live.Reader, error) {
	token := door.Token(r)
	if token == nil {
		return live.Reader{}, door.Refuse(http.StatusUnauthorized, "no token")
	}
	return live.Reader{Name: token.ID, All: token.Role == access.Peer, Globs: token.Read}, nil
}

// senders asks a door for the sender of a request, and the tokens how much it may send.
type senders struct{ *door.Guard }

// Admit implements [httpsource.Guard].
func (g senders) Admit(r *http.Request) (httpsource.Sender, error) {
	token, f := g.Token(r)
	if f != nil {
		return nil, f
	}
	return &sender{door: g.Guard, r: r, token: token}, nil
}

// sender is the holder of a token that sends a request.
type sender struct {
	door  *door.Guard
	r     *http.Request
	token *access.Token
	told  bool // that some records may not be sent: a request is counted once
}

// ID implements [httpsource.Sender].
func (s *sender) ID() string { return s.token.ID }

// Ack is the least level of acknowledgement, for [httpsource.Sender].
func (s *sender) Ack() ack.Level { return s.token.Ack }

// Open implements [httpsource.Sender].
func (s *sender) Open(service string, bytes int64, patience time.Duration) (time.Duration, error) {
	id := s.token.ID
	switch {
	case !s.token.MayWriteAny():
		return 0, s.door.Forbid(s.r, s.token, "token %s may send no records", id)
	case service != "" && !s.token.MayWrite(service):
		return 0, s.door.Forbid(s.r, s.token, "token %s may not send records of %s", id, service)
	}
	wait, err := s.token.Take(bytes, patience)
	if err == nil && service != "" {
		err = s.token.TakeService(service)
	}
	if limit, ok := errors.AsType[*access.LimitError](err); ok {
		s.door.Deny(s.r, "limit", id, err)
		f := httpsource.Refuse(http.StatusTooManyRequests, "%v; send it again later", err)
		f.After = limit.After
		return 0, f
	}
	return wait, err
}

// Charge implements [httpsource.Sender].
func (s *sender) Charge(bytes int64) { s.token.Charge(bytes) }

// Allow implements [httpsource.Sender].
func (s *sender) Allow(service string) (reason string, forbidden bool) {
	if !s.token.MayWrite(service) {
		return s.tell("forbidden", fmt.Errorf("token %s may not send records of %s", s.token.ID, service)), true
	}
	if err := s.token.TakeService(service); err != nil {
		return s.tell("limit", err), false
	}
	return "", false
}

// tell counts a request with records that may not be sent.
func (s *sender) tell(reason string, err error) string {
	if !s.told {
		s.told = true
		s.door.Deny(s.r, reason, s.token.ID, err)
	}
	return err.Error()
}
