package access

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/watch"
	"blobtail/storage/fsys"
)

// SessionTime is how long a session lasts. Then its holder shows the token again.
const SessionTime = 12 * time.Hour

// ErrSession says that nobody is logged in on a page: its session has ended, is none of this
// server's, or has not begun.
var ErrSession = errors.New("nobody is logged in")

const (
	leastKey    = 32
	mostKey     = 64 << 10
	mostSession = 256
	// version is the first part of a session. It is in what is signed, too.
	version = "1"
)

// Sessions let the holder of a token show it once, and a signed text at each later request. They
// remember nothing: the text has the id of the token and the end of the session, and its
// signature covers the hash of the secret. So a session gives the rights that the token has at
// that request, and none once the token or that secret is taken away.
//
// The key is random, or in a file. With the same file the sessions of one server are those of
// another one, and survive a restart. Any number of goroutines may use Sessions.
type Sessions struct {
	tokens *Tokens
	path   string // of the key; "": it is random
	file   *watch.Files
	log    zerolog.Logger
	key    atomic.Pointer[[]byte]
}

// OpenSessions returns the sessions of tokens. path is the file with their key; "": a random one.
func OpenSessions(tokens *Tokens, path string, log zerolog.Logger) (*Sessions, error) {
	s := &Sessions{tokens: tokens, path: path, log: log}
	if path == "" {
		key := make([]byte, sha256.Size)
		_, _ = rand.Read(key) // it never fails
		s.key.Store(&key)
		return s, nil
	}
	s.file = watch.New(path)
	return s, s.Reload()
}

// Run reads the key again when its file has changed, until ctx ends.
func (s *Sessions) Run(ctx context.Context) {
	if s.file == nil {
		return
	}
	s.file.Run(ctx, s.Reload, func(err error) {
		s.log.Error().Err(err).Msg("the changed key of sessions is not used; that of before stays in force")
	})
}

// Reload reads the key now. Another key ends all sessions. After an error that of before stays in
// force.
func (s *Sessions) Reload() error {
	if s.path == "" {
		return nil
	}
	const remedy = "make one: openssl rand -base64 32"
	fi, err := os.Stat(s.path)
	if err != nil {
		return fsys.WhyUnread(err, "correct the path, or "+remedy+" >"+s.path)
	}
	if fi.Size() > mostKey {
		return fmt.Errorf("%s: it has %d bytes, and a key has 64 KiB at most; %s", s.path, fi.Size(), remedy)
	}
	key, err := fsys.Read(s.path)
	if err != nil {
		return fsys.WhyUnread(err, "let the user of this process read it")
	}
	// An editor may have put a newline behind it, and another one at another server none.
	key = bytes.TrimRight(key, "\r\n")
	if len(key) < leastKey {
		return fmt.Errorf("%s: it has %d bytes, and a key of sessions has %d at least; %s", s.path, len(key), leastKey, remedy)
	}
	if fi.Mode().Perm()&0o027 != 0 {
		s.log.Warn().Str("file", s.path).Str("mode", fi.Mode().Perm().String()).
			Msg("others than its owner and its group can read the key of sessions, or others than its owner can change it; run: chmod g-w,o= " + s.path)
	}
	if was := s.key.Swap(&key); was != nil && !bytes.Equal(*was, key) {
		s.log.Info().Str("file", s.path).Msg("another key of sessions was read; all people log in again")
	}
	return nil
}

// Begin checks a token as people have it, ID.SECRET, and begins a session of its holder. Value is
// what [Sessions.Of] takes. The error is a [FormError] or a [DeniedError].
func (s *Sessions) Begin(text string) (token *Token, value string, ends time.Time, err error) {
	text = strings.TrimSpace(text)
	c := split(text, ".")
	token, err = s.tokens.Check(c.ID, c.Secret)
	if err != nil {
		if fault := faultOfToken(text); fault != "" && !errors.Is(err, ErrExpired) {
			err = &FormError{fault, err}
		}
		return nil, "", time.Time{}, err
	}
	ends = time.Now().Add(SessionTime).Truncate(time.Second)
	head := version + "." + token.ID + "." + strconv.FormatInt(ends.Unix(), 10)
	return token, head + "." + sign(*s.key.Load(), head, sha256.Sum256([]byte(c.Secret))), ends, nil
}

// Of returns the token of a session, as it is now, and the end of the session. As with
// [Tokens.Check], its time does not tell whether an id exists. The error is a [DeniedError].
func (s *Sessions) Of(value string) (*Token, time.Time, error) {
	refused := func(id string) (*Token, time.Time, error) {
		return nil, time.Time{}, &DeniedError{ID: id, Err: ErrSession}
	}
	head, id, ends, ok := splitSession(value)
	if !ok {
		return refused("")
	}
	key := *s.key.Load()
	token, right := s.tokens.find(id, func(hash [sha256.Size]byte) int {
		return subtle.ConstantTimeCompare([]byte(value), []byte(head+"."+sign(key, head, hash)))
	})
	switch {
	case token == nil, !right:
		return refused("")
	case !time.Now().Before(ends):
		return refused(id)
	}
	if err := token.valid(); err != nil {
		return nil, time.Time{}, err
	}
	return token, ends, nil
}

// splitSession cuts a session into the part that is signed, and the id and the time in it.
func splitSession(value string) (head, id string, ends time.Time, ok bool) {
	parts := strings.SplitN(value, ".", 5)
	if len(value) > mostSession || len(parts) != 4 || parts[0] != version || !validID(parts[1]) {
		return "", "", time.Time{}, false
	}
	seconds, err := strconv.ParseInt(parts[2], 10, 64)
	return strings.Join(parts[:3], "."), parts[1], time.Unix(seconds, 0), err == nil
}

// sign makes the signature of a session for a secret. No other use of the key signs the same.
func sign(key []byte, head string, hash [sha256.Size]byte) string {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write([]byte("blobtail session " + head + "\x00")) // a hash takes everything
	_, _ = h.Write(hash[:])
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}
