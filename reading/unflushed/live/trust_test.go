package live_test

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/testkit/certstest"
	"blobtail/internal/lease"
	"blobtail/internal/trust"
	"blobtail/reading/unflushed/live"
)

// An ingester asks a peer over TLS by the authority and the name that it is told. Without them its
// answer says whose setting is missing. A reader likewise.
func TestTrust(t *testing.T) {
	authority, ca := certstest.New(t), filepath.Join(t.TempDir(), "ca.pem")
	authority.Write(ca)
	b := newIngester(t, "bbbbbbbb")
	b.log.add(entry(1, 1, 0, "web"))
	mux := http.NewServeMux()
	mux.Handle(live.Pattern, b.h)
	secure := httptest.NewUnstartedServer(mux)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.TLS = &tls.Config{Certificates: []tls.Certificate{authority.Server("peers.example.com", time.Hour)}}
	secure.StartTLS()
	defer secure.Close()
	row := b.peer()
	row.Address = secure.URL
	for name, c := range map[string]struct {
		o    trust.Options
		want string // "": it answers
	}{
		"both":         {trust.Options{CA: ca, Name: "peers.example.com"}, ""},
		"no name":      {trust.Options{CA: ca}, "its certificate is for peers.example.com, and not for 127.0.0.1"},
		"no authority": {trust.Options{Name: "peers.example.com"}, "unknown authority; give the certificate of its authority"},
	} {
		believed, err := trust.New(c.o, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		a := newIngesterWith(t, "aaaaaaaa", live.Options{Peers: roll([]lease.Ingester{row}, nil), Trust: believed})
		got, _, err := read(t, a.url, all("web"))
		if c.want == "" && (err != io.EOF || len(got) != 1) {
			t.Errorf("%s: %d records, %v", name, len(got), err)
		}
		if c.want != "" {
			if m := incomplete(t, err, 1, 0); !strings.Contains(m.Reason, "as ingester aaaaaaaa asked, which has the setting: ") || !strings.Contains(m.Reason, c.want) || strings.HasSuffix(m.Reason, "...") {
				t.Errorf("%s: %+v", name, m)
			}
		}
		reader, err := live.NewClient(secure.URL, live.ClientOptions{Trust: believed})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := reader.Ask(t.Context(), all("web"))
		var none *live.NoAnswerError
		switch {
		case err == nil && c.want == "":
			answer.Close()
		case err == nil || c.want == "" || !errors.As(err, &none) || !none.TLS || !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: a reader gets %v", name, err)
		}
		reader.Close()
	}
	plain, err := live.NewClient(strings.Replace(secure.URL, "https:", "http:", 1), live.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := plain.Ask(t.Context(), all("web")); err == nil || !strings.Contains(err.Error(), "it speaks TLS: write "+secure.URL) {
		t.Error(err)
	}
}
