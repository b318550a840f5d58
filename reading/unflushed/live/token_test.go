package live_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"blobtail/internal/lease"
	"blobtail/reading/unflushed/live"
)

// roundTrip answers requests.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A token goes over TLS, or to this host. It goes nowhere along a redirect.
func TestTokenGoesSafely(t *testing.T) {
	for address, want := range map[string]bool{
		"http://127.0.0.1:8514": true, "http://[::1]:8514": true, "http://localhost:8514": true, "http://LOCALHOST": true,
		"https://10.0.0.5:8514": true, "https://logs.example": true,
		"http://10.0.0.5:8514": false, "http://logs.example": false, "http://localhost.evil.example": false, "http://127.0.0.1.evil.example": false,
		"http://0.0.0.0:8514": false,
	} {
		for _, plain := range []bool{false, true} {
			var sent []string
			o := live.ClientOptions{Token: "me.secret", PlainHTTP: plain, HTTP: live.NewHTTP(nil)}
			o.HTTP.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
				sent = append(sent, r.Header.Get("Authorization"))
				return &http.Response{StatusCode: http.StatusTemporaryRedirect, Header: http.Header{"Location": {"https://evil.example/"}}, Body: http.NoBody}, nil
			})
			row := &lease.Ingester{ID: "00000001", Address: address, State: lease.Holding}
			_, err := live.AskAlone(t.Context(), row, all("web"), live.AloneOptions{ClientOptions: o})
			if none := (*live.NoAnswerError)(nil); !errors.As(err, &none) || !strings.Contains(err.Error(), "sends elsewhere (307)") || len(sent) != 1 {
				t.Errorf("%s: %v, asked %d times", address, err, len(sent))
			}
			token := ""
			if want || plain {
				token = "Bearer me.secret"
			}
			if sent[0] != token {
				t.Errorf("%s, plain %v: it gets %q", address, plain, sent[0])
			}
		}
	}
}

// If an ingester needs the token that a client withheld, the error of the client says so.
func TestTokenIsWithheld(t *testing.T) {
	client, err := live.NewClient("http://10.0.0.5:8514", live.ClientOptions{Token: "me.secret", HTTP: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusUnauthorized, Header: http.Header{"Content-Type": {"text/plain"}}, Body: http.NoBody}, nil
	})}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = client.Ask(t.Context(), all("web")); err == nil || !strings.Contains(err.Error(), "a token goes to another host only over https") {
		t.Error(err)
	}
}
