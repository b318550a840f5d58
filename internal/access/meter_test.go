package access_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/access"
)

func TestTake(t *testing.T) {
	const patience = 5 * time.Second
	for name, c := range map[string]struct {
		limits string
		bytes  int64
		most   float64 // accepted in 100 s, if the client sends again as soon as it may
		least  float64
	}{
		"requests":             {"{requests: 10/s}", 1, 1020, 990},
		"bytes":                {"{bytes: 1MiB/s}", 100 << 10, 1050, 1020},
		"larger than a second": {"{bytes: 1MiB/s}", 16 << 20, 8, 6},
		"both":                 {"{bytes: 1MiB/s, requests: 2/s}", 1 << 10, 205, 195},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tokens := open(t, "tokens:\n  - {id: a, sha256: [SECRET], limits: "+c.limits+"}\n")
				begun, taken := time.Now(), 0.0
				for time.Since(begun) < 100*time.Second {
					token, err := tokens.Check("a", "s3cret")
					if err != nil {
						t.Fatal(err)
					}
					wait, err := token.Take(c.bytes/2, patience)
					if limit, ok := errors.AsType[*access.LimitError](err); ok {
						time.Sleep(limit.After)
						continue
					}
					if wait > patience {
						t.Fatal("too long", wait)
					}
					time.Sleep(wait)
					token.Charge(c.bytes - c.bytes/2)
					taken++
					if err := tokens.Reload(); err != nil { // the used amounts stay used
						t.Fatal(err)
					}
				}
				if taken < c.least || taken > c.most {
					t.Errorf("%v requests in 100 s", taken)
				}
			})
		})
	}
}

// A client that does not wait is refused, and told when to come again.
func TestTakeRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := open(t, "tokens:\n  - {id: a, sha256: [SECRET], limits: {requests: 2/s}}\n")
		token, err := tokens.Check("a", "s3cret")
		if err != nil {
			t.Fatal(err)
		}
		held := 0
		for err == nil {
			var wait time.Duration
			if wait, err = token.Take(0, 5*time.Second); wait > 0 {
				held++
			}
		}
		limit, ok := errors.AsType[*access.LimitError](err)
		if !ok || held < 9 || held > 11 || err.Error() != "token a is over its limit of 2 requests in a second" {
			t.Errorf("%v after %d that were held back", err, held)
		}
		time.Sleep(limit.After)
		if _, err := token.Take(0, 5*time.Second); err != nil {
			t.Error(err)
		}
	})
}

func TestTakeService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := open(t, "tokens:\n  - {id: a, sha256: [SECRET], limits: {services-per-hour: 10}}\n")
		token, err := tokens.Check("a", "s3cret")
		if err != nil {
			t.Fatal(err)
		}
		take := func(from, to int) (taken int) {
			for i := from; i < to; i++ {
				if token.TakeService(fmt.Sprint("service-", i)) == nil {
					taken++
				}
			}
			return taken
		}
		if n := take(0, 100); n != 10 {
			t.Errorf("%d at once", n)
		}
		if n := take(0, 10); n != 10 {
			t.Error("services that it has sent are not new")
		}
		time.Sleep(30 * time.Minute)
		if n := take(100, 200); n != 5 {
			t.Errorf("%d in half an hour", n)
		}
		time.Sleep(25 * time.Hour)
		if n := take(0, 200); n != 10 {
			t.Errorf("%d after a day, when all are new again", n)
		}
	})
}

// A start knows the services from before it.
func TestRemember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := write(t, "tokens:\n  - {id: a, sha256: [SECRET], limits: {services-per-hour: 10}}\n")
		memory := filepath.Join(t.TempDir(), "services")
		start := func() (token *access.Token, stop func()) {
			tokens, err := access.Open(path, zerolog.Nop())
			if err != nil {
				t.Fatal(err)
			}
			tokens.Remember(memory)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); tokens.Run(ctx) }()
			if token, err = tokens.Check("a", "s3cret"); err != nil {
				t.Fatal(err)
			}
			return token, func() { cancel(); <-done }
		}
		take := func(token *access.Token, from, to int) (taken int) {
			for i := from; i < to; i++ {
				if token.TakeService(fmt.Sprint("service-", i)) == nil {
					taken++
				}
			}
			return taken
		}
		token, stop := start()
		if n := take(token, 0, 10); n != 10 {
			t.Error(n)
		}
		stop()
		token, stop = start()
		if n := take(token, 10, 30); n != 10 {
			t.Errorf("%d new ones", n)
		}
		if n := take(token, 0, 20); n != 20 {
			t.Errorf("%d known ones", n)
		}
		stop()
		if err := os.WriteFile(memory, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		token, stop = start()
		if n := take(token, 0, 30); n != 10 {
			t.Errorf("%d of a damaged file", n)
		}
		stop()
	})
}

// A start knows the services that all senders together have sent before it, and asks about others
// only before it refuses one.
func TestEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "new-services")
		start := func() (e *access.Everybody, stop func()) {
			e = access.NewEverybody(10, path, zerolog.Nop())
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); e.Run(ctx) }()
			return e, func() { cancel(); <-done }
		}
		asked := 0
		take := func(e *access.Everybody, from, to int, held bool) (taken int) {
			for i := from; i < to; i++ {
				if e.Take(fmt.Sprint("service-", i), func(string) bool { asked++; return held }) == nil {
					taken++
				}
			}
			return taken
		}
		e, stop := start()
		if n := take(e, 0, 30, false); n != 10 || asked != 20 {
			t.Errorf("%d new ones, %d questions", n, asked)
		}
		if n := take(e, 100, 150, true); n != 50 {
			t.Errorf("%d that others hold", n)
		}
		stop()
		e, stop = start()
		if asked = 0; take(e, 0, 10, false)+take(e, 100, 150, false) != 60 || asked > 0 {
			t.Errorf("known ones are new, %d questions", asked)
		}
		if n := take(e, 200, 250, false); n != 10 {
			t.Errorf("%d new ones after a start", n)
		}
		time.Sleep(2 * time.Minute) // the process is killed later
		stopped := access.NewEverybody(10, path, zerolog.Nop())
		if n := take(stopped, 200, 210, false) + take(stopped, 300, 350, false); n != 20 {
			t.Errorf("%d after a kill", n)
		}
		stop()
		if access.NewEverybody(0, "", zerolog.Nop()).Take("web", nil) != nil {
			t.Error("no limit refuses")
		}
	})
}
