package natssource_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"blobtail/internal/dev/testenv"
	"blobtail/source/natssource"
)

// permissions are the permissions of an ingester in deploy/nats/README.md.
func permissions(t *testing.T) *server.Permissions {
	t.Helper()
	page, err := os.ReadFile("../../deploy/nats/README.md")
	if err != nil {
		t.Fatal(err)
	}
	row := func(may string) []string {
		_, text, ok := strings.Cut(string(page), "| "+may+" |")
		text, _, _ = strings.Cut(text, "\n")
		var subjects []string
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text, -1) {
			subjects = append(subjects, m[1])
		}
		if !ok || len(subjects) == 0 {
			t.Fatalf("the page does not say what to %s", may)
		}
		return subjects
	}
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: row("publish")},
		Subscribe: &server.SubjectPermission{Allow: row("subscribe")},
	}
}

// newLoginEnv starts a server with a user for the tests and one for ingesters.
func newLoginEnv(t *testing.T) *env {
	e := &env{t: t, log: &syncBuffer{}}
	e.nats = testenv.StartNATS(t, func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "admin", Password: "s3cret"},
			{Username: "ingest", Password: "s3cret", Permissions: permissions(t)},
		}
	})
	url := e.nats.URL
	e.nats.URL = strings.Replace(url, "://", "://admin:s3cret@", 1)
	e.conn, e.js = e.nats.Connect()
	create(t, e.js, testenv.Stream("LOGS"))
	e.nats.URL = strings.Replace(url, "://", "://ingest:s3cret@", 1)
	return e
}

// A user with the permissions in that page can do everything that an ingester does.
func TestPermissions(t *testing.T) {
	t.Parallel()
	e := newLoginEnv(t)
	m, first := e.taken()
	e.source.Dropped(first.Reply)
	e.source.Stored(m.await(t, 2)[1].Reply)
	e.left(0)
	if s := e.log.String(); strings.Contains(s, "iolation") || strings.Contains(s, "s3cret") {
		t.Error(s)
	}
}

// A wrong password does not prevent a start, and is not logged; the server and its
// reason are.
func TestWrongPassword(t *testing.T) {
	t.Parallel()
	e := newLoginEnv(t)
	e.nats.URL = strings.Replace(e.nats.URL, "s3cret", "wr0ng", 1)
	_, host, _ := strings.Cut(e.nats.URL, "@")
	unhurried(t, time.Second, func(t *testing.T, wait time.Duration) error {
		e.log = &syncBuffer{}
		s, err := e.open(within(wait))
		if err != nil {
			t.Fatal(err)
		}
		s.Close(t.Context())
		text := e.log.String()
		if strings.Contains(text, "wr0ng") {
			t.Error(text)
		}
		for _, want := range []string{`"servers":"` + host + `"`, "no connection to NATS at " + host + ": nats: Authorization Violation"} {
			if !strings.Contains(text, want) {
				return fmt.Errorf("%s, want %s", text, want)
			}
		}
		return nil
	})
}

// Missing files end the start.
func TestNoCredentials(t *testing.T) {
	e := newEnv(t)
	for name, change := range map[string]func(*natssource.Options){
		"creds": func(o *natssource.Options) { o.Credentials = "/nowhere/a.creds" },
		"ca":    func(o *natssource.Options) { o.CA = "/nowhere/ca.pem" },
		"cert":  func(o *natssource.Options) { o.Cert, o.Key = "/nowhere/cert.pem", "/nowhere/key.pem" },
	} {
		if s, err := e.open(change); err == nil || !strings.Contains(err.Error(), "/nowhere") {
			t.Errorf("%s: %v", name, err)
			if err == nil {
				s.Close(t.Context())
			}
		}
	}
}
