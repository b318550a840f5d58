package main

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"blobtail/internal/access"
	"blobtail/newest/live"
	"blobtail/source/httpsource"
)

// A guard asks the tokens whether a request may do something, for the sources, the answers
// to readers, and the operators. It counts those who may not, and logs one a second.
type guard struct {
	tokens   *access.Tokens
	failures *prometheus.CounterVec // by reason
	log      zerolog.Logger
}

// newFailures makes the counter of a guard.
func newFailures(reg prometheus.Registerer) *prometheus.CounterVec {
	failures := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "blobtail_auth_failures_total",
		Help: "Requests without the right to do what they ask, by reason: missing, unknown, secret, expired, forbidden, limit, host, origin."}, []string{"reason"})
	for _, reason := range []string{"missing", "unknown", "secret", "expired", "forbidden", "limit", "host", "origin"} {
		failures.WithLabelValues(reason)
	}
	reg.MustRegister(failures)
	return failures
}

// token returns the token of a request, or the reason that the client is told.
func (g *guard) token(r *http.Request) (t *access.Token, told string) {
	t, err := g.tokens.Of(r)
	if err == nil {
		return t, ""
	}
	id := ""
	if denied, ok := errors.AsType[*access.DeniedError](err); ok {
		id = denied.ID
	}
	g.failed(r, access.Reason(err), id, err)
	return nil, access.Told(err)
}

// failed counts and logs a request that may not do what it asks. id is that of an existing
// token, or "".
func (g *guard) failed(r *http.Request, reason, id string, err error) {
	g.failures.WithLabelValues(reason).Inc()
	// Not the path: some clients write their key into it.
	g.log.Warn().Err(err).Str("reason", reason).Str("token", id).Str("remote", r.RemoteAddr).Msg("a request was not allowed")
}

// Admit implements [httpsource.Guard].
func (g *guard) Admit(r *http.Request) (httpsource.Sender, error) {
	token, told := g.token(r)
	if token == nil {
		return nil, httpsource.Refuse(http.StatusUnauthorized, "%s", told)
	}
	return &sender{g: g, r: r, token: token}, nil
}

// sender is the holder of a token that sends a request.
type sender struct {
	g     *guard
	r     *http.Request
	token *access.Token
	told  bool // that some records may not be sent: a request is counted once
}

// ID implements [httpsource.Sender].
func (s *sender) ID() string { return s.token.ID }

// Open implements [httpsource.Sender].
func (s *sender) Open(service string, bytes int64, patience time.Duration) (time.Duration, error) {
	id := s.token.ID
	switch {
	case !s.token.MayWriteAny():
		f := httpsource.Refuse(http.StatusForbidden, "token %s may send no records", id)
		s.g.failed(s.r, "forbidden", id, f)
		return 0, f
	case service != "" && !s.token.MayWrite(service):
		f := httpsource.Refuse(http.StatusForbidden, "token %s may not send records of %s", id, service)
		s.g.failed(s.r, "forbidden", id, f)
		return 0, f
	}
	wait, err := s.token.Take(bytes, patience)
	if err == nil && service != "" {
		err = s.token.TakeService(service)
	}
	if limit, ok := errors.AsType[*access.LimitError](err); ok {
		s.g.failed(s.r, "limit", id, err)
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
		s.g.failed(s.r, reason, s.token.ID, err)
	}
	return err.Error()
}

// reader returns who asks for unflushed records. The error is a [live.Refusal].
func (g *guard) reader(r *http.Request) (live.Reader, error) {
	token, told := g.token(r)
	if token == nil {
		return live.Reader{}, &live.Refusal{Status: http.StatusUnauthorized, Reason: told}
	}
	if !token.MayReadAny() {
		f := &live.Refusal{Status: http.StatusForbidden, Reason: "token " + token.ID + " may read no service"}
		g.failed(r, "forbidden", token.ID, f)
		return live.Reader{}, f
	}
	return live.Reader{All: token.Role == access.Peer, Globs: token.Read}, nil
}

// readers answers 401 for every path without a token. The mux behind it answers some paths
// and methods by itself.
func (g *guard) readers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := g.reader(r); err != nil {
			refuse(w, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func refuse(w http.ResponseWriter, err error) {
	status := http.StatusForbidden
	if f, ok := errors.AsType[*live.Refusal](err); ok {
		status = f.Status
	}
	if status == http.StatusUnauthorized {
		w.Header().Add("WWW-Authenticate", `Basic realm="blobtail"`)
		w.Header().Add("WWW-Authenticate", `Bearer realm="blobtail"`)
	}
	http.Error(w, err.Error(), status)
}

// operators answers other hosts only if they have a token of the role operator.
func (g *guard) operators(next http.Handler, door *door) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(probes(), r.URL.Path) && !door.knows(r) {
			token, told := g.token(r)
			if token == nil {
				refuse(w, &live.Refusal{Status: http.StatusUnauthorized, Reason: told})
				return
			}
			if token.Role != access.Operator {
				f := &live.Refusal{Status: http.StatusForbidden, Reason: "token " + token.ID + " has not the role operator"}
				g.failed(r, "forbidden", token.ID, f)
				refuse(w, f)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
