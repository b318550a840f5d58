package integration_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"blobtail/catalog/horizon"
)

// A blob that must not be deleted is reported by name, or counted if a policy holds it, and everything
// else is deleted. Once the blob is free, it is deleted too.
func TestRetentionHeld(t *testing.T) {
	t.Parallel()
	both := map[string]func(t *testing.T){}
	for name, batches := range map[string]bool{"batch": true, "single": false} {
		both[name] = func(t *testing.T) {
			through, direct, px := proxied(t)
			e := newEstate(t, direct, "default: 3d")
			p := start(t, direct, t.TempDir(), e.flag)
			e.fill(p, "web", 3, 0, 1, 2, 4, 5, 6)
			e.fill(p, "db", 3, 5, 6)
			e.confirm()
			held := of(logs(t, direct), "web", func(d horizon.Day) bool { return d == e.day(5) })[0]
			var release func()
			if batches {
				release = leased(t, direct, held)
			} else {
				release = px.immutable(held)
			}

			e.at = through
			code, says := 3, held
			if !batches { // what a policy of the store holds is no fault
				code, says = 0, "1 blob: held by a policy"
			}
			if _, errs := e.must(code, "apply", "--grace", "0s"); !strings.Contains(errs, says) {
				t.Errorf("it does not say what stays: %s", errs)
			}
			if got := of(logs(t, direct), "web", func(d horizon.Day) bool { return d < e.day(3) }); !slices.Equal(got, []string{held}) {
				t.Errorf("of web stay %v, want %s", got, held)
			}
			if got := of(logs(t, direct), "db", func(horizon.Day) bool { return true }); len(got) > 0 {
				t.Errorf("of db stay %v", got)
			}
			e.counts("web", e.day(3)) // it is hidden all the same
			release()
			e.sweep()
			if got := of(logs(t, direct), "web", func(d horizon.Day) bool { return d < e.day(3) }); len(got) > 0 {
				t.Errorf("released, there stay %v", got)
			}
		}
	}
	beside(t, both)
}

// immutable makes the store refuse to delete a blob, as for one under a legal hold.
// It also refuses batches, as some accounts do.
func (p *proxy) immutable(key string) (release func()) {
	refuses := func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.URL.Query().Get("comp") == "batch":
			w.Header().Set("x-ms-error-code", "FeatureNotSupported")
			http.Error(w, "no batches", http.StatusBadRequest)
		case r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, key):
			w.Header().Set("x-ms-error-code", "BlobImmutableDueToLegalHold")
			http.Error(w, "This operation is not permitted as the blob is immutable due to one or more legal holds.", http.StatusConflict)
		default:
			return false
		}
		return true
	}
	p.refuses.Store(&refuses)
	return func() { p.refuses.Store(nil) }
}

// leased holds a blob by a lease, the emulator's only kind of hold.
func leased(t *testing.T, at place, key string) (release func()) {
	t.Helper()
	c, err := container.NewClientFromConnectionString(shared.Azurite(t).ConnectionString, strings.TrimPrefix(at.store, "azure:"), nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := lease.NewBlobClient(c.NewBlobClient(key), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.AcquireLease(t.Context(), -1, nil); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := l.ReleaseLease(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
}
