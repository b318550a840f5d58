package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"blobtail/internal/dev/testenv"
	"blobtail/storage"
	"blobtail/storage/azure"
)

// A right is an operation that credentials may or may not do.
type right struct {
	name string
	do   func(ctx context.Context, s *azure.Store, t *try) error
}

// rights are the operations of the product. Each works if the credentials may do it, whatever ran
// before: an object or a table that is missing is no refusal.
func rights() []right {
	const key = "_rights/1"
	return []right{
		{"create", func(ctx context.Context, s *azure.Store, _ *try) error { return s.TryCreate(ctx) }},
		{"read", func(ctx context.Context, s *azure.Store, _ *try) error { _, err := s.Stat(ctx, key); return err }},
		{"list", func(ctx context.Context, s *azure.Store, _ *try) error { return last(s.List(ctx, "_rights/", "")) }},
		{"delete", func(ctx context.Context, s *azure.Store, t *try) error {
			if err := t.store.Create(ctx, key, []byte("x"), storage.Attrs{}); err != nil && !errors.Is(err, storage.ErrExist) {
				return fmt.Errorf("prepare: %w", err)
			}
			return s.Delete(ctx, storage.Blob{Key: key})
		}},
		{"write rows", func(ctx context.Context, s *azure.Store, t *try) error {
			if err := s.Upsert(ctx, t.tables+"rights", "p", []storage.Row{{Key: "k"}}); err != nil {
				return err
			}
			// To change a row is another right than to add one.
			_, rows, err := t.rows(ctx, t.tables+"rights", "p")
			if err != nil || len(rows) == 0 {
				return fmt.Errorf("prepare: %d rows, %w", len(rows), err)
			}
			_, err = s.Swap(ctx, t.tables+"rights", "p", storage.Row{Key: "k", Version: rows[0].Version})
			return err
		}},
		{"read rows", func(ctx context.Context, s *azure.Store, t *try) error {
			return last(s.Scan(ctx, t.tables+"rights", "p", "", "", 1))
		}},
		{"list tables", func(ctx context.Context, s *azure.Store, t *try) error { return last(s.Tables(ctx, t.tables)) }},
		{"delete tables", func(ctx context.Context, s *azure.Store, t *try) error { return s.Drop(ctx, t.tables+"dropped") }},
	}
}

// The rights of each role of deploy/azure/roles, as a SAS has them. A SAS cannot tell rows from
// tables: whoever reads the one lists the other, and whoever deletes blobs deletes tables.
var roles = []struct{ name, sp, may string }{
	{"ingester", "rlacwu", "create, read, list, write rows, read rows, list tables"},
	{"retention", "rlacwd", "create, read, list, delete, read rows, list tables, delete tables"},
	{"reader", "rl", "read, list, read rows, list tables"},
}

func last[T any](seq func(func(T, error) bool)) (err error) {
	seq(func(_ T, e error) bool { err = e; return true })
	return err
}

// tried does all operations with a store, and returns those that it may do and those that were
// refused.
func (t *try) tried(ctx context.Context, s *azure.Store) (may, refused []string, err error) {
	if _, err := t.free(ctx, t.tables+"rights"); err != nil && !errors.Is(err, storage.ErrUnauthorized) {
		return nil, nil, err
	}
	for _, r := range rights() {
		switch err := r.do(ctx, s, t); {
		case err == nil, errors.Is(err, storage.ErrNotExist):
			may = append(may, r.name)
		case errors.Is(err, storage.ErrUnauthorized):
			refused = append(refused, r.name)
		default:
			return may, refused, fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return may, refused, nil
}

// tryRights tries each operation. With a key it does so by a SAS for each role, and what the role
// does not have must be refused.
func (t *try) tryRights(ctx context.Context) (string, error) {
	if t.who.key == "" {
		may, refused, err := t.tried(ctx, t.store)
		return fmt.Sprintf("%s: %s; refused: %s; enough for: %s", t.who.kind, strings.Join(may, ", "), orNone(refused), orNone(enough(may))), err
	}
	var seen []string
	for _, role := range roles {
		s, err := t.limited(role.sp)
		if err != nil {
			return "", err
		}
		may, refused, err := t.tried(ctx, s)
		if err != nil {
			return "", fmt.Errorf("SAS sp=%s: %w", role.sp, err)
		}
		if got := strings.Join(may, ", "); got != role.may {
			return "", fmt.Errorf("SAS sp=%s may: %s; want: %s", role.sp, got, role.may)
		}
		seen = append(seen, fmt.Sprintf("%s (sp=%s): all it needs, refused: %s", role.name, role.sp, strings.Join(refused, ", ")))
	}
	return strings.Join(seen, "; "), nil
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// enough returns the roles that rights suffice for.
func enough(may []string) (names []string) {
	for _, role := range roles {
		missing := false
		for need := range strings.SplitSeq(role.may, ", ") {
			missing = missing || !strings.Contains(", "+strings.Join(may, ", ")+",", ", "+need+",")
		}
		if !missing {
			names = append(names, role.name)
		}
	}
	return names
}

// sasFor makes a SAS of the account.
func (t *try) sasFor(rights string) (string, error) {
	protocols := "https"
	if blobs, _ := t.store.Clients(); strings.HasPrefix(blobs.URL(), "http:") {
		protocols = "https,http"
	}
	return testenv.AccountSAS(t.who.account, t.who.key, rights, protocols, time.Now().Add(time.Hour))
}

// limited opens the container of this try by a SAS.
func (t *try) limited(rights string) (*azure.Store, error) { return t.limitedBy(rights, nil) }

// limitedBy is limited with a SAS that was changed; by a nil change it stays.
func (t *try) limitedBy(rights string, change func(string) string) (*azure.Store, error) {
	sas, err := t.sasFor(rights)
	if err != nil {
		return nil, err
	}
	if change != nil {
		sas = change(sas)
	}
	own := func(name string) string {
		switch name {
		case "AZURE_STORAGE_CONNECTION_STRING":
			text := t.getenv(name)
			if strings.Contains(strings.ToLower(text), "usedevelopmentstorage") {
				text = "AccountName=devstoreaccount1;AccountKey=" + t.who.key + ";BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;TableEndpoint=http://127.0.0.1:10002/devstoreaccount1"
			}
			return strings.Replace(text, "AccountKey="+t.who.key, "SharedAccessSignature="+sas, 1)
		case "AZURE_STORAGE_KEY":
			return ""
		case "AZURE_STORAGE_SAS_TOKEN":
			return sas
		}
		return t.getenv(name)
	}
	return t.opened(own)
}

// opened opens the container of this try with other variables.
func (t *try) opened(getenv func(string) string) (*azure.Store, error) {
	return azure.Open(t.container, azure.Options{Getenv: getenv, Client: azcore.ClientOptions{Transport: t.watch}})
}

// tryRoles says what of deploy/azure/roles was not tried.
func (t *try) tryRoles(context.Context) (string, error) {
	if t.who.key != "" {
		return "", skip("a key has no role; the step rights tried their operations by SAS")
	}
	return "", skip("a new role works after up to 10 minutes, so none is assigned; the step rights has what these credentials may do. To try a role, run ingest check, logquery and retention plan as an identity that has it alone")
}
