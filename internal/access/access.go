// Package access decides on the rights and the limits of senders and readers.
//
// Operators list the tokens in a file, see [Read]. It has hashes of secrets, no secret.
// [Open] reads it, [Tokens.Run] reads it again when it changes, and [Tokens.Reload] at a
// signal. [Tokens.Of] finds the token of a request by its headers or by its certificate;
// [CredentialsOf] lists the headers. The [Token] then says which services its holder may
// write and read. [Token.Take] and [Token.TakeService] hold it to its limits.
//
//	request -> Tokens.Of -> Token -> MayWrite, MayRead
//	                             -> Take, TakeService: limits, kept over a Reload
//	service of any sender -> Everybody.Take: the limit of new ones, kept over a start
//	token -> Sessions.Begin -> session; request of a page -> Sessions.Of -> Token
//	ingest token -> Add, Revoke -> file
//
// The package answers no request and knows no protocol: a source turns its errors into
// status codes. It accepts no secret in a URL, because URLs are written to logs. Limits
// are those of one ingester.
package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"

	"blobtail/internal/watch"
)

// The reasons why a request has no token. All but ErrMissing come in a [DeniedError]. [Told] has
// one text for ErrUnknown and ErrSecret, so that no stranger learns which ids exist.
var (
	// ErrMissing says that a request has neither credentials nor a certificate.
	ErrMissing = errors.New("no token was sent")
	// ErrUnknown says that no token has this id or certificate.
	ErrUnknown = errors.New("no token has this id")
	// ErrSecret says that the secret is another one.
	ErrSecret = errors.New("the secret is wrong")
	// ErrExpired says that the secret is right and too old.
	ErrExpired = errors.New("the token has expired")
)

// DeniedError says why credentials are not accepted.
type DeniedError struct {
	// ID is that of an existing token, else "". The id that a stranger sends may be a secret, and
	// is not kept.
	ID  string
	Err error
}

// Error implements error. It has no secret.
func (e *DeniedError) Error() string {
	if e.ID == "" {
		return e.Err.Error()
	}
	return "token " + e.ID + ": " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *DeniedError) Unwrap() error { return e.Err }

// Tokens are the tokens of a file. Any number of goroutines may use them.
type Tokens struct {
	path string
	log  zerolog.Logger
	file *watch.Files
	now  atomic.Pointer[roll]

	mu     sync.Mutex
	meters map[string]*meter // by id
	memory string            // file of the services that tokens have sent; "": none
}

// roll is the content of a file.
type roll struct {
	byID          map[string]*Token
	byCertificate map[string]*Token
}

// Open reads the file. The error names the file, the line and the entry.
func Open(path string, log zerolog.Logger) (*Tokens, error) {
	t := &Tokens{path: path, log: log, file: watch.New(path), meters: make(map[string]*meter)}
	if err := t.Reload(); err != nil {
		return nil, err
	}
	return t, nil
}

// Run reads the file when its time or size has changed, until ctx ends. It logs the error of a bad
// file once. It saves the services that [Tokens.Remember] reads.
func (t *Tokens) Run(ctx context.Context) {
	var saving sync.WaitGroup
	defer saving.Wait()
	saving.Go(func() { everyMinute(ctx, t.save) })
	t.file.Run(ctx, t.Reload, func(err error) {
		t.log.Error().Err(err).Msg("the changed file of tokens is not used; the tokens of before stay in force")
	})
}

// Reload reads the file now. After an error the tokens of before stay in force.
func (t *Tokens) Reload() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	fi, err := os.Stat(t.path)
	if err != nil {
		return unread(t.path, err)
	}
	content, err := read(t.path)
	if err != nil {
		return err
	}
	list := content.tokens
	// A program that is just writing the file has cut it off first. Without its last token
	// the file still has the key: Revoke leaves that.
	if was := t.now.Load(); content.begin == 0 && was != nil && len(was.byID)+len(was.byCertificate) > 0 {
		return fmt.Errorf("%s: it has no list of tokens; to take all tokens away, write \"tokens: []\"", t.path)
	}
	if fi.Mode().Perm()&0o027 != 0 {
		t.log.Warn().Str("file", t.path).Str("mode", fi.Mode().Perm().String()).
			Msg("others than its owner and its group can read the file of tokens, or others than its owner can change it; run: chmod g-w,o= " + t.path)
	}
	next := &roll{byID: make(map[string]*Token, len(list)), byCertificate: make(map[string]*Token)}
	meters := make(map[string]*meter, len(list))
	for _, token := range list {
		m := t.meters[token.ID]
		if m == nil {
			m = new(meter)
		}
		meters[token.ID], token.meter = m, m
		next.byID[token.ID] = token
		for _, name := range token.Certificate {
			next.byCertificate[foldName(name)] = token
		}
	}
	t.meters = meters
	t.now.Store(next)
	t.log.Info().Str("file", t.path).Int("tokens", len(list)).Msg("tokens read")
	return nil
}

// Of returns the token of a request: that of its credentials or, if it has none, that of
// its client's certificate, which the server has verified. The error is [ErrMissing], a
// [FormError] or a [DeniedError].
func (t *Tokens) Of(r *http.Request) (*Token, error) {
	if c, ok := CredentialsOf(r); ok {
		token, err := t.Check(c.ID, c.Secret)
		if fault := faultOf(r); err != nil && fault != "" && !errors.Is(err, ErrExpired) {
			return nil, &FormError{fault, err}
		}
		return token, err
	}
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		if fault := elsewhere(r); fault != "" {
			return nil, &FormError{fault, ErrMissing}
		}
		return nil, ErrMissing
	}
	for _, name := range namesOf(r.TLS.PeerCertificates[0]) {
		if token := t.now.Load().byCertificate[name]; token != nil {
			if err := token.valid(); err != nil {
				return nil, err
			}
			return token, nil
		}
	}
	return nil, &DeniedError{Err: ErrUnknown}
}

// Check returns the token of an id if the secret is one of its secrets. The time that it
// takes does not depend on the secret, nor on whether the id exists. The error is a
// [DeniedError].
func (t *Tokens) Check(id, secret string) (*Token, error) {
	sum := sha256.Sum256([]byte(secret))
	token, right := t.find(id, func(hash [sha256.Size]byte) int { return subtle.ConstantTimeCompare(sum[:], hash[:]) })
	switch {
	case token == nil:
		return nil, &DeniedError{Err: ErrUnknown}
	case !right:
		return nil, &DeniedError{ID: id, Err: ErrSecret}
	}
	if err := token.valid(); err != nil {
		return nil, err
	}
	return token, nil
}

// find returns the token of an id, nil if there is none, and whether the hash of one of its secrets
// fits: fits returns 1 then, else 0. An id that does not exist takes as many calls of it.
func (t *Tokens) find(id string, fits func(hash [sha256.Size]byte) int) (token *Token, right bool) {
	token = t.now.Load().byID[id]
	var hashes [maxSecrets][sha256.Size]byte
	known := 0
	if token != nil {
		known = copy(hashes[:], token.hashes)
	}
	found := 0
	for i := range hashes {
		found |= fits(hashes[i]) & subtle.ConstantTimeLessOrEq(i+1, known)
	}
	return token, found == 1
}

// Reason names the reason of an error of [Tokens.Of] in one word, for a counter: missing,
// unknown, secret, expired or session.
func Reason(err error) string {
	switch {
	case errors.Is(err, ErrMissing):
		return "missing"
	case errors.Is(err, ErrSecret):
		return "secret"
	case errors.Is(err, ErrExpired):
		return "expired"
	case errors.Is(err, ErrSession):
		return "session"
	}
	return "unknown"
}

// Told is the text for a client after an error of [Tokens.Of]. It does not say whether an id
// exists.
func Told(err error) string {
	const send = "send Authorization: Bearer ID.SECRET, or Basic with the id as user and the secret as password"
	form, ok := errors.AsType[*FormError](err)
	switch {
	case ok:
		return form.Fault + "; " + send
	case errors.Is(err, ErrMissing):
		return "a token is needed: " + send + " (logquery, ingest send: BLOBTAIL_TOKEN)"
	case errors.Is(err, ErrExpired):
		return "the token has expired; the operator makes another with: ingest token new"
	case errors.Is(err, ErrSession):
		return "nobody is logged in, or the session has ended: log in with a token"
	}
	return "the token is not known, or its secret is another one; it may be of another server, or revoked: the operator finds the reason in the server's log, and makes tokens with: ingest token new"
}
