package main

import (
	"context"
	"encoding/base64"
	"errors"
	"net/url"
	"slices"
	"strings"

	"blobtail/storage"
	"blobtail/storage/azure"
)

// codeClaims are the codes of refusals, by which the product chooses its advice. Azurite has others
// for some. Most need a key, to make SAS of it.
func (t *try) codeClaims() []claimed {
	refused := func(about, sp string, damage func(string) string, do func(context.Context, *azure.Store) error, codes ...string) claimed {
		return claimed{about, func(ctx context.Context) (string, error) {
			if t.who.key == "" {
				return "not tried: no key to make a SAS of", errAside
			}
			s, err := t.limitedBy(sp, damage)
			if err != nil {
				return "", err
			}
			err = do(ctx, s)
			return want(errors.Is(err, storage.ErrUnauthorized) && slices.Contains(codes, code(err)), "%s", code(err))
		}}
	}
	list := func(ctx context.Context, s *azure.Store) error { return last(s.List(ctx, "claims/", "")) }
	create := func(ctx context.Context, s *azure.Store) error { return s.TryCreate(ctx) }
	rows := func(ctx context.Context, s *azure.Store) error { // Azurite checks no rights of transactions
		_, err := s.Swap(ctx, t.tables+"claims", "sas", storage.Row{Key: "k"})
		return err
	}
	const signature, emulated = "403 AuthenticationFailed", "403 AuthorizationFailure"
	return []claimed{
		{"A SAS that may create, and not write, makes a blob and does not overwrite it", t.claimCreateOnly},
		refused("A SAS with a wrong signature, blobs: AuthenticationFailed", "rl", damaged, list, signature, emulated),
		refused("A SAS with a wrong signature, tables: AuthenticationFailed", "rl", damaged, rows, signature, emulated),
		refused("An expired SAS: AuthenticationFailed", "rl", expire, list, signature, emulated),
		refused("A SAS without the right, blobs: AuthorizationPermissionMismatch", "rl", nil, create, "403 AuthorizationPermissionMismatch"),
		refused("A SAS without the right, tables: AuthorizationPermissionMismatch", "rl", nil, rows, "403 AuthorizationPermissionMismatch"),
		{"A wrong key: AuthenticationFailed", t.claimWrongKey},
		{"A container that is missing: ContainerNotFound", t.claimMissing},
	}
}

// damaged is a SAS with another signature of the same length.
func damaged(sas string) string {
	begin, rest, _ := strings.Cut(sas, "sig=")
	if strings.HasPrefix(rest, "A") {
		return begin + "sig=B" + rest[1:]
	}
	return begin + "sig=A" + rest[1:]
}

// expire is a SAS with another end. Its signature does not fit that either, so the code tells no
// more than that of a wrong one.
func expire(sas string) string {
	parts, _ := url.ParseQuery(sas) // it is ours
	parts.Set("se", "2020-01-01T00:00:00Z")
	return parts.Encode()
}

func (t *try) claimCreateOnly(ctx context.Context) (string, error) {
	if t.who.key == "" {
		return "not tried: no key to make a SAS of", errAside
	}
	s, err := t.limited("rlc")
	if err == nil {
		err = s.Create(ctx, "claims/only", []byte("one"), storage.Attrs{})
	}
	if err != nil {
		return "", err
	}
	err = s.Create(ctx, "claims/only", []byte("two"), storage.Attrs{})
	body, rerr := t.read(ctx, "claims/only", 0, -1)
	return want(errors.Is(err, storage.ErrExist) && rerr == nil && body == "one", "%s; the body is %q", code(err), body)
}

func (t *try) claimWrongKey(ctx context.Context) (string, error) {
	if t.who.key == "" {
		return "not tried: there is no key", errAside
	}
	wrong := base64.StdEncoding.EncodeToString([]byte("no key of any account"))
	s, err := t.opened(func(name string) string {
		return strings.ReplaceAll(t.getenv(name), t.who.key, wrong)
	})
	if err != nil {
		return "", err
	}
	err = last(s.List(ctx, "claims/", ""))
	c := code(err)
	return want(errors.Is(err, storage.ErrUnauthorized) && (c == "403 AuthenticationFailed" || c == "403 AuthorizationFailure"), "%s", c)
}

func (t *try) claimMissing(ctx context.Context) (string, error) {
	s, err := t.account.Container(t.container + "-missing")
	if err != nil {
		return "", err
	}
	err = last(s.List(ctx, "", ""))
	return want(errors.Is(err, storage.ErrNotExist) && code(err) == "404 ContainerNotFound", "%s", code(err))
}
