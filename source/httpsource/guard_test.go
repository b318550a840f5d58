package httpsource_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/source/httpsource"
)

// gate is a guard that reads the name of a sender from a header. The sender may send the services
// that begin with its name.
type gate struct{ charged int64 }

func (g *gate) Admit(r *http.Request) (httpsource.Sender, error) {
	who := r.Header.Get("Who")
	if who == "" {
		return nil, httpsource.Refuse(http.StatusUnauthorized, "who are you?")
	}
	return sender{g, who}, nil
}

type sender struct {
	*gate
	name string
}

func (s sender) ID() string         { return s.name }
func (s sender) Charge(bytes int64) { s.charged += bytes }

func (s sender) Open(service string, bytes int64, patience time.Duration) (time.Duration, error) {
	s.charged += bytes
	switch {
	case s.name == "slow":
		return patience / 2, nil
	case s.name == "fast":
		f := httpsource.Refuse(http.StatusTooManyRequests, "too fast")
		f.After = 1500 * time.Millisecond
		return 0, f
	case service != "" && !strings.HasPrefix(service, s.name):
		return 0, httpsource.Refuse(http.StatusForbidden, "%s may not send %s", s.name, service)
	}
	return 0, nil
}

func (s sender) Allow(service string) (string, bool) {
	switch {
	case strings.HasSuffix(service, "-new"):
		return "too many new services", false
	case !strings.HasPrefix(service, s.name):
		return fmt.Sprintf("%s may not send %s", s.name, service), true
	}
	return "", false
}

func TestGuard(t *testing.T) {
	const two = `{"service":"web-1","n":1}` + "\n" + `{"service":"db","n":2}` + "\n"
	for name, c := range map[string]struct {
		who, path, body string
		status          int
		reason          string // in the error, or of the first record
		kept            string // services, in the order of the records
	}{
		"nobody":              {"", "/ingest/web", "x", 401, "who are you?", ""},
		"nobody, at no path":  {"", "/nowhere", "x", 401, "who are you?", ""},
		"its own service":     {"web", "/ingest/web-1", "x", 200, "", "web-1"},
		"another's":           {"web", "/ingest/db", "x", 403, "web may not send db", ""},
		"no path":             {"web", "/nowhere", "x", 404, "no such path", ""},
		"records of two":      {"web", "/ingest", two, 200, "web may not send db", "web-1 _rejected"},
		"none of its own":     {"web", "/ingest", `{"service":"db"}`, 403, "web may not send db; the records are kept in the service _rejected", "_rejected"},
		"none, and a bad one": {"web", "/ingest", `{"service":"db"}` + "\n" + `{"service":"web","a":}`, 200, "web may not send db", "_rejected _rejected"},
		"too many services":   {"web", "/ingest", `{"service":"web-new"}`, 200, "too many new services", "_rejected"},
		"too fast":            {"fast", "/ingest", "x", 429, "too fast", ""},
	} {
		t.Run(name, func(t *testing.T) {
			m, guard := &memory{}, &gate{}
			s := newSource(m, func(o *httpsource.Options) { o.Guard = guard })
			header := []string{"X-Other", "1"}
			if c.who != "" {
				header = append(header, "Who", c.who)
			}
			a := send(t, s, c.path, c.body, header...)
			reason := a.Error
			if len(a.Errors) > 0 {
				reason = a.Errors[0].Reason
			}
			if a.Status != c.status || !strings.HasPrefix(reason, c.reason) {
				t.Errorf("%+v", a)
			}
			var kept []string
			for _, line := range m.lines(t) {
				kept = append(kept, line["service"].(string))
			}
			if got := strings.Join(kept, " "); got != c.kept {
				t.Errorf("kept %q", got)
			}
			if challenged := len(a.Header.Values("WWW-Authenticate")) == 2; challenged != (c.status == 401) {
				t.Error(a.Header)
			}
			if c.status == 429 && a.RetryAfter != "2" {
				t.Error(a.Header)
			}
			if c.status == 200 && guard.charged != int64(len(c.body)) {
				t.Errorf("charged %d bytes of %d", guard.charged, len(c.body))
			}
		})
	}
}

// A sender pays for the lines in the log if a short body makes many: here dead letters.
func TestGuardChargesLines(t *testing.T) {
	guard := &gate{}
	s := newSource(&memory{}, func(o *httpsource.Options) { o.Guard = guard })
	body := "[" + strings.Repeat("0,", 100_000) + "0]"
	send(t, s, "/ingest/web", body, "Who", "web", "Content-Type", "application/json")
	if least := int64(50 * len(body)); guard.charged < least {
		t.Errorf("%d bytes are charged for a body of %d, want %d", guard.charged, len(body), least)
	}
}

// A sender that sends too much waits, for at most the patience of the source.
func TestGuardHoldsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(&memory{}, func(o *httpsource.Options) { o.Guard, o.Patience = &gate{}, 4*time.Second })
		begun := time.Now()
		if a := send(t, s, "/ingest/slow", "x", "Who", "slow"); a.Status != 200 || time.Since(begun) != 2*time.Second {
			t.Error(a, time.Since(begun))
		}
	})
}

// Two senders may use the same key, and send the same body: neither hides the records of
// the other.
func TestGuardKeepsSendersApart(t *testing.T) {
	for _, key := range []string{"key-1", ""} {
		m := &memory{}
		s := newSource(m, func(o *httpsource.Options) { o.Guard = &gate{} })
		for _, who := range []string{"a", "ab", "a"} {
			header := []string{"Who", who}
			if key != "" {
				header = append(header, "Idempotency-Key", key)
			}
			a := send(t, s, "/ingest", `{"service":"abc","ts":"2026-11-20T11:04:05.1Z"}`, header...)
			wantStatus(t, a, 200, "")
		}
		if all := m.origins(); len(all) != 2 || all[0].IsZero() || all[1].IsZero() {
			t.Errorf("key %q: %v", key, all)
		}
	}
}

// The source itself may reject services, also for senders that a guard has admitted.
func TestAllow(t *testing.T) {
	for _, guarded := range []bool{false, true} {
		m := &memory{}
		s := newSource(m, func(o *httpsource.Options) {
			o.Allow = func(service string) string {
				if service == "web-9" {
					return "too many services"
				}
				return ""
			}
			if guarded {
				o.Guard = &gate{}
			}
		})
		a := send(t, s, "/ingest", `{"service":"web-1"}`+"\n"+`{"service":"web-9"}`+"\n"+`{"service":"web-1"}`, "Who", "web")
		if a.Status != 200 || a.Accepted != 2 || a.Rejected != 1 || a.Errors[0].Reason != "too many services" {
			t.Errorf("guarded %v: %+v", guarded, a)
		}
		if a := send(t, s, "/ingest", `{"service":"web-9"}`, "Who", "web"); a.Status != 200 || a.Rejected != 1 {
			t.Errorf("guarded %v: %+v", guarded, a)
		}
	}
}
