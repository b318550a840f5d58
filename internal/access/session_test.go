package access_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/access"
	"blobtail/internal/dev/testkit"
)

// key is a file with a key of sessions.
func key(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "session.key")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// sessions opens those of a file of tokens and a key; "": a random one.
func sessions(t testing.TB, tokens *access.Tokens, key string) *access.Sessions {
	t.Helper()
	s, err := access.OpenSessions(tokens, key, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// begun begins a session.
func begun(t testing.TB, s *access.Sessions, token string) string {
	t.Helper()
	_, value, _, err := s.Begin(token)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

const two = "tokens:\n- {id: ann, sha256: [SECRET], read: [web]}\n- {id: bob, sha256: [SECRET], read: ['*']}\n"

// A session ends after 12 hours, or with its token if that is sooner.
func TestSessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		soon := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
		s := sessions(t, open(t, two+"- {id: short, sha256: [SECRET], read: [web], expires: "+soon+"}\n"), "")
		token, value, ends, err := s.Begin(" ann.s3cret\n")
		if err != nil || token.ID != "ann" || time.Until(ends) > access.SessionTime || time.Until(ends) < access.SessionTime-time.Second {
			t.Fatal(token, ends, err)
		}
		short := begun(t, s, "short.s3cret")
		if strings.Contains(value, "s3cret") || strings.Contains(value, hash("s3cret")) {
			t.Errorf("the session has the secret: %s", value)
		}
		time.Sleep(time.Hour)
		if _, _, err := s.Of(short); !errors.Is(err, access.ErrExpired) {
			t.Errorf("after the end of its token: %v", err)
		}
		time.Sleep(access.SessionTime - time.Hour - 2*time.Second)
		if token, until, err := s.Of(value); err != nil || token.ID != "ann" || !until.Equal(ends) {
			t.Errorf("just before its end: %v %v %v", token, until, err)
		}
		time.Sleep(2 * time.Second)
		if _, _, err := s.Of(value); !errors.Is(err, access.ErrSession) || access.Reason(err) != "session" {
			t.Errorf("at its end: %v", err)
		}
	})
}

// No text but that of Begin is a session, under the same key and while the token has its secret.
func TestSessionForged(t *testing.T) {
	one := key(t, strings.Repeat("k", 32)+"\n")
	tokens := open(t, two)
	s := sessions(t, tokens, one)
	value := begun(t, s, "ann.s3cret")
	parts := strings.Split(value, ".")
	forged := map[string]string{
		"empty": "", "another id": strings.Replace(value, ".ann.", ".bob.", 1), "no such id": strings.Replace(value, ".ann.", ".eve.", 1),
		"longer": parts[0] + "." + parts[1] + ".9999999999." + parts[3], "the same time": parts[0] + "." + parts[1] + ".+" + parts[2] + "." + parts[3],
		"no signature": strings.Join(parts[:3], ".") + ".", "three parts": strings.Join(parts[:3], "."), "five parts": value + ".x", "another version": "2" + value[1:],
		"another letter": value[:len(value)-2] + string(value[len(value)-2]^1) + value[len(value)-1:], "cut": value[:len(value)-1], "behind it": value + " ", "the token": "ann.s3cret",
		"long": value + strings.Repeat("A", 5000), "of another secret's holder": begun(t, sessions(t, open(t, strings.ReplaceAll(two, "SECRET", hash("other"))), one), "ann.other"),
		"of a random key": begun(t, sessions(t, tokens, ""), "ann.s3cret"), "of another key": begun(t, sessions(t, tokens, key(t, strings.Repeat("j", 32))), "ann.s3cret"),
	}
	for name, text := range forged {
		if token, _, err := s.Of(text); !errors.Is(err, access.ErrSession) || token != nil {
			t.Errorf("%s: %v %v", name, token, err)
		}
	}
	for name, other := range map[string]*access.Sessions{"itself": s, "a replica": sessions(t, open(t, two), key(t, strings.Repeat("k", 32)))} {
		if token, _, err := other.Of(value); err != nil || token.ID != "ann" {
			t.Errorf("%s: %v %v", name, token, err)
		}
	}
}

// A signature that is wrong takes as much work for an id that does not exist as for one that does,
// with any number of secrets.
func TestSessionWork(t *testing.T) {
	testkit.FullOnly(t, "it counts allocations")
	s := sessions(t, open(t, two+"- {id: cid, sha256: [SECRET, "+hash("new")+"], read: [web]}\n"), "")
	value := begun(t, s, "ann.s3cret")
	value = value[:strings.LastIndex(value, ".")+1] + strings.Repeat("A", len(value)-strings.LastIndex(value, ".")-1)
	work := map[string]float64{}
	for _, id := range []string{"ann", "cid", "eve"} {
		text := strings.Replace(value, ".ann.", "."+id+".", 1)
		work[id] = testing.AllocsPerRun(100, func() {
			if _, _, err := s.Of(text); !errors.Is(err, access.ErrSession) {
				t.Error(err)
			}
		})
	}
	if work["ann"] != work["eve"] || work["cid"] != work["eve"] {
		t.Errorf("allocations: %v", work)
	}
}

// A session has the rights that its token has now, and none without its token and its secret.
func TestSessionFollowsToken(t *testing.T) {
	path := write(t, two)
	tokens, err := access.Open(path, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	s := sessions(t, tokens, "")
	value := begun(t, s, "bob.s3cret")
	for _, step := range []struct {
		name, file string
		want       error
		reads      bool // orders
	}{
		{"rotated, the old secret still there", "tokens:\n- {id: bob, sha256: [" + hash("new") + ", SECRET], read: ['*']}\n", nil, true},
		{"narrowed", "tokens:\n- {id: bob, sha256: [SECRET], read: [web]}\n", nil, false},
		{"the old secret gone", "tokens:\n- {id: bob, sha256: [" + hash("new") + "], read: ['*']}\n", access.ErrSession, false},
		{"there again", two, nil, true},
		{"expired", "tokens:\n- {id: bob, sha256: [SECRET], read: ['*'], expires: 2020-01-01}\n", access.ErrExpired, false},
		{"a certificate alone", "tokens:\n- {id: bob, certificate: [x], read: ['*']}\n", access.ErrSession, false},
		{"revoked", "tokens: []\n", access.ErrSession, false},
	} {
		rewrite(t, path, step.file)
		if err := tokens.Reload(); err != nil {
			t.Fatal(err)
		}
		token, _, err := s.Of(value)
		if !errors.Is(err, step.want) || err == nil && token.MayRead("orders") != step.reads {
			t.Errorf("%s: %v %v", step.name, token, err)
		}
	}
}

// A session begins with a whole token and nothing else, and a mistake in its form is told.
func TestSessionBegin(t *testing.T) {
	s := sessions(t, open(t, two+"- {id: old, sha256: [SECRET], read: [web], expires: 2020-01-01}\n"), "")
	for text, want := range map[string]error{
		"ann.other": access.ErrSecret, "eve.s3cret": access.ErrUnknown, "old.s3cret": access.ErrExpired, "old.other": access.ErrSecret, "": access.ErrUnknown, "ann": access.ErrUnknown, "s3cret": access.ErrUnknown, "ann:s3cret": access.ErrUnknown,
	} {
		if token, value, _, err := s.Begin(text); !errors.Is(err, want) || token != nil || value != "" {
			t.Errorf("%q: %v %v", text, token, err)
		}
	}
	if _, _, _, err := s.Begin(`"ann.s3cret"`); !strings.Contains(err.Error(), "quotation marks") || strings.Contains(err.Error(), "s3cret") {
		t.Error(err)
	}
}

// The file with the key is read again when it changes, and another key ends all sessions. One with
// a mistake is not used.
func TestSessionKey(t *testing.T) {
	tokens := open(t, two)
	for text, want := range map[string]string{"": "it has 0 bytes", strings.Repeat("x", 31) + "\r\n": "it has 31 bytes", strings.Repeat("x", 70000): "64 KiB at most"} {
		if _, err := access.OpenSessions(tokens, key(t, text), zerolog.Nop()); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "openssl rand") {
			t.Errorf("%d bytes: %v", len(text), err)
		}
	}
	if _, err := access.OpenSessions(tokens, filepath.Join(t.TempDir(), "none"), zerolog.Nop()); err == nil || !strings.Contains(err.Error(), "openssl rand") {
		t.Error(err)
	}
	said, log := logged()
	path := key(t, strings.Repeat("a", 32))
	s, err := access.OpenSessions(tokens, path, log)
	if err != nil {
		t.Fatal(err)
	}
	value := begun(t, s, "ann.s3cret")
	change := func(text string, mode os.FileMode) error {
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		return s.Reload()
	}
	if err := change("short", 0o600); err == nil {
		t.Error("a short key was taken")
	}
	if _, _, err := s.Of(value); err != nil {
		t.Errorf("after a bad file: %v", err)
	}
	if err := change(strings.Repeat("a", 32)+"\n", 0o644); err != nil {
		t.Error(err)
	}
	if _, _, err := s.Of(value); err != nil {
		t.Errorf("after the same key: %v", err)
	}
	if text := said.take(); !strings.Contains(text, "chmod g-w,o=") || strings.Contains(text, "aaaa") {
		t.Errorf("of a file for everybody: %s", text)
	}
	if err := change(strings.Repeat("b", 32), 0o600); err != nil {
		t.Error(err)
	}
	if _, _, err := s.Of(value); !errors.Is(err, access.ErrSession) {
		t.Errorf("after another key: %v", err)
	}
	if text := said.take(); !strings.Contains(text, "another key") {
		t.Errorf("of another key: %s", text)
	}
}

// No text of a stranger is a session, whatever its form, and none panics.
func FuzzSession(f *testing.F) {
	s := sessions(f, open(f, two), "")
	value := begun(f, s, "ann.s3cret")
	f.Add("1.ann.1795757831.5z1Q7yFOZkzdNXzvliCtGxA-fBuqzqkkoVzOeduNRB0", -1, byte(0))
	f.Add("\n", 0, byte(0))
	f.Add("1.ann.1.x", 3, byte('.'))
	f.Add(strings.Repeat("1.", 200), 1, byte('A'))
	f.Fuzz(func(t *testing.T, text string, at int, with byte) {
		changed := []byte(value)
		if at >= 0 {
			changed[at%len(changed)] = with
		}
		for _, try := range []string{text, string(changed), value + text, text + value} {
			token, _, err := s.Of(try)
			if err == nil && try != value || err != nil && (token != nil || try == value) {
				t.Errorf("%q: %v %v", try, token, err)
			}
		}
	})
}
