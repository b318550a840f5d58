package azure_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
	"blobtail/storage"
	"blobtail/storage/azure"
	"blobtail/storage/storagetest"
)

// once is a client that makes no retries; a nil transport is the SDK's own.
func once(transport http.RoundTripper) azcore.ClientOptions {
	o := azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}
	if transport != nil {
		o.Transport = &http.Client{Transport: transport}
	}
	return o
}

// through returns a second store on s's container. Its requests go through f, with bodies
// of their own: a transport may still read a body when f has returned an error, and the
// SDK rewinds its own for the next try.
func through(t *testing.T, name string, f roundTripper) *azure.Store {
	t.Helper()
	own := roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Body != nil && r.Body != http.NoBody {
			body, err := io.ReadAll(r.Body)
			if err = errors.Join(err, r.Body.Close()); err != nil {
				return nil, err
			}
			r = r.Clone(r.Context())
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		return f(r)
	})
	a := env.Azurite(t)
	s, err := azure.Open(name, azure.Options{
		Getenv: a.Getenv,
		Client: azcore.ClientOptions{Retry: policy.RetryOptions{RetryDelay: time.Millisecond, TryTimeout: testkit.Patience}, Transport: &http.Client{Transport: own}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.EnsureContainer(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// The service executes a PUT, its answer is lost, and the SDK tries again and meets its
// own blob. The driver must report neither success nor another writer's blob.
func TestLostResponse(t *testing.T) {
	var lost atomic.Int32
	s := through(t, testenv.Name("c"), func(r *http.Request) (*http.Response, error) {
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err == nil && r.Header.Get("If-None-Match") == "*" && lost.Add(1) == 1 {
			resp.Body.Close()
			return nil, io.ErrUnexpectedEOF
		}
		return resp, err
	})
	err := s.Create(t.Context(), "web/1", []byte("x"), storage.Attrs{Metadata: map[string]string{"batch": "mine"}})
	if !errors.Is(err, storage.ErrExist) || lost.Load() != 2 {
		t.Errorf("Create: %v after %d tries, want ErrExist after 2", err, lost.Load())
	}
	if b, err := s.Stat(t.Context(), "web/1"); err != nil || b.Metadata["batch"] != "mine" {
		t.Errorf("Stat = %+v, %v", b, err)
	}
}

// The service carries a swap out, its answer is lost, and the SDK tries again. The
// condition no longer holds, for a new row and for a changed row, and the row is the
// caller's.
func TestSwapLostResponse(t *testing.T) {
	var lose atomic.Bool
	var tries atomic.Int32
	s := through(t, testenv.Name("c"), func(r *http.Request) (*http.Response, error) {
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err == nil && (r.Method == http.MethodPost || r.Method == http.MethodPut) && lose.Load() && tries.Add(1) == 1 {
			resp.Body.Close()
			return nil, io.ErrUnexpectedEOF
		}
		return resp, err
	})
	table := testenv.Name("swap")
	if err := s.Upsert(t.Context(), table, "p", nil); err != nil {
		t.Fatal(err)
	}
	version := ""
	for _, by := range []string{"first", "second"} {
		tries.Store(0)
		lose.Store(true)
		got, err := s.Swap(t.Context(), table, "p", storage.Row{Key: "k", Version: version, Props: map[string]any{"by": by}})
		lose.Store(false)
		if !errors.Is(err, storage.ErrChanged) || got != "" || tries.Load() != 2 {
			t.Errorf("Swap: %q, %v after %d tries, want ErrChanged after 2", got, err, tries.Load())
		}
		for r, err := range s.Scan(t.Context(), table, "p", "", "", 0) {
			if err != nil || r.Props["by"] != by || r.Version == version {
				t.Fatalf("Scan = %v, %v, want what %s wrote", r, err, by)
			}
			version = r.Version
		}
	}
}

// A reader asks for the rest of a body that breaks off. If that fails too, it returns
// an error and never a short body.
func TestCutBody(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	for name, cuts := range map[string]int32{"once": 1, "always": 1 << 30} {
		t.Run(name, func(t *testing.T) {
			var done atomic.Int32
			s := through(t, testenv.Name("c"), func(r *http.Request) (*http.Response, error) {
				resp, err := http.DefaultTransport.RoundTrip(r)
				if err == nil && r.Method == http.MethodGet && resp.ContentLength > 1000 && done.Add(1) <= cuts {
					left := 0 // no progress, except at first
					if done.Load() == 1 {
						left = 1000
					}
					resp.Body = &cutBody{resp.Body, left}
				}
				return resp, err
			})
			storagetest.Put(t, s, "web/1", body)
			for _, n := range []int64{-1, int64(len(body)) - 10} {
				done.Store(0)
				r, err := s.Get(t.Context(), "web/1", 5, n)
				if err != nil {
					t.Fatal(err)
				}
				want := body[5:]
				if n >= 0 {
					want = want[:n]
				}
				got, err := io.ReadAll(io.LimitReader(r, 5<<20))
				r.Close()
				if err == nil && !bytes.Equal(got, want) {
					t.Errorf("%d of %d bytes and no error", len(got), len(want))
				}
				if (cuts == 1) != (err == nil) {
					t.Errorf("after %d requests: %v", done.Load(), err)
				}
			}
		})
	}
}

type cutBody struct {
	io.ReadCloser
	left int
}

func (c *cutBody) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := c.ReadCloser.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// If a proxy drops the range, we must not take other bytes for ours.
func TestRangeIgnored(t *testing.T) {
	s := through(t, testenv.Name("c"), func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodGet {
			return &http.Response{StatusCode: http.StatusOK, ContentLength: 10, Header: http.Header{"Content-Length": {"10"}},
				Body: io.NopCloser(strings.NewReader("0123456789")), Request: r}, nil
		}
		return http.DefaultTransport.RoundTrip(r)
	})
	storagetest.Put(t, s, "web/1", []byte("0123456789"))
	if _, err := s.Get(t.Context(), "web/1", 5, 2); err == nil {
		t.Error("the wrong range is given out")
	}
}

// If batches are refused, keys are deleted one by one. The error names each that stays.
func TestDeleteWithoutBatches(t *testing.T) {
	s := through(t, testenv.Name("c"), func(r *http.Request) (*http.Response, error) {
		code := ""
		switch {
		case r.URL.Query().Get("comp") == "batch":
			code = "FeatureNotSupported"
		case r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "held"):
			code = "BlobImmutableDueToPolicy"
		default:
			return http.DefaultTransport.RoundTrip(r)
		}
		return &http.Response{StatusCode: http.StatusConflict, Header: http.Header{"X-Ms-Error-Code": {code}}, Body: http.NoBody, Request: r}, nil
	})
	for _, key := range []string{"web/1", "web/held", "web/2"} {
		storagetest.Put(t, s, key, nil)
	}
	err := s.Delete(t.Context(), storagetest.Keys("web/1", "web/held", "web/2", "web/absent")...)
	var ke *storage.KeyError
	if !errors.As(err, &ke) || ke.Key != "web/held" || !errors.Is(err, storage.ErrHeld) {
		t.Errorf("Delete: %v", err)
	}
	left := storagetest.KeysOf(t, s, "")
	if len(left) != 1 || left[0] != "web/held" {
		t.Errorf("%q are left", left)
	}
}

// The failure of a transaction arrives as 202 with the truth in the body. Without the
// table the body may be malformed.
func TestTransactionAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		body     string
		sentinel error
	}{
		"busy": {"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n\r\n" +
			`{"odata.error":{"code":"ServerBusy","message":{"lang":"en-US","value":"0:busy"}}}` + "\r\n--c--\r\n--b--\r\n", nil},
		"no rights": {"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\n\r\n" +
			`{"odata.error":{"code":"AuthorizationFailure","message":{"lang":"en-US","value":"0:no"}}}` + "\r\n--c--\r\n--b--\r\n", storage.ErrUnauthorized},
		"empty":   {"", nil},
		"garbage": {"<", nil},
	} {
		s := through(t, testenv.Name("c"), func(r *http.Request) (*http.Response, error) {
			if !strings.HasSuffix(r.URL.Path, "$batch") {
				return http.DefaultTransport.RoundTrip(r)
			}
			return &http.Response{StatusCode: http.StatusAccepted, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(c.body)), Request: r}, nil
		})
		err := s.Upsert(t.Context(), "tail", "p", []storage.Row{{Key: "k"}})
		if err == nil || c.sentinel != nil && !errors.Is(err, c.sentinel) {
			t.Errorf("%s: %v", name, err)
		}
		var se *azure.ServiceError
		if name == "busy" && (!errors.As(err, &se) || se.Status != 503 || se.Code != "ServerBusy") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A hung request is given up and tried again; the context ends it at once.
func TestHang(t *testing.T) {
	s := through(t, testenv.Name("c"), func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodHead {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		return http.DefaultTransport.RoundTrip(r)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Stat(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Stat: %v, want DeadlineExceeded", err)
	}
}

// With a SAS that may create and read, but not overwrite, a taken name looks different
// from a refusal.
func TestCreateOnlySAS(t *testing.T) {
	a := env.Azurite(t)
	name := testenv.Name("c")
	through(t, name, http.DefaultTransport.RoundTrip)
	owner, err := container.NewClientFromConnectionString(a.ConnectionString, name, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		rights sas.ContainerPermissions
		second error
	}{
		{sas.ContainerPermissions{Create: true, Read: true, List: true}, storage.ErrExist},
		{sas.ContainerPermissions{Read: true, List: true}, storage.ErrUnauthorized},
	} {
		u, err := owner.GetSASURL(c.rights, time.Now().Add(time.Hour), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, token, _ := strings.Cut(u, "?")
		s, err := azure.Open(a.Account+"/"+name, azure.Options{Getenv: env2(
			"AZURE_STORAGE_SAS_TOKEN", token, "AZURE_STORAGE_BLOB_ENDPOINT", a.BlobURL, "AZURE_STORAGE_TABLE_ENDPOINT", a.TableURL), Client: once(nil)})
		if err != nil {
			t.Fatal(err)
		}
		key := "web/" + testenv.Name("k")
		first := s.Create(t.Context(), key, []byte("x"), storage.Attrs{})
		if c.rights.Create && first != nil {
			t.Errorf("first Create: %v", first)
		}
		if err := s.Create(t.Context(), key, []byte("x"), storage.Attrs{}); !errors.Is(err, c.second) {
			t.Errorf("second Create: %v, want %v", err, c.second)
		}
		if err := s.EnsureContainer(t.Context()); err != nil {
			t.Logf("EnsureContainer with a container's SAS: %v", err)
		}
	}
}

// A missing container is an error, unless the store may make it.
func TestMissingContainer(t *testing.T) {
	o := azure.Options{Getenv: env.Azurite(t).Getenv}
	s, err := azure.Open(testenv.Name("c"), o)
	if err != nil {
		t.Fatal(err)
	}
	o.Create = true
	maker, err := azure.Open(testenv.Name("c"), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := maker.Create(t.Context(), "web/1", nil, storage.Attrs{}); err != nil {
		t.Errorf("Create in a container that it makes: %v", err)
	}
	if err := s.Create(t.Context(), "web/1", nil, storage.Attrs{}); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("Create: %v, want ErrNotExist", err)
	}
	if err := last(s.List(t.Context(), "", "")); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("List: %v, want ErrNotExist", err)
	}
	asked := time.Now()
	now, err := s.Now(t.Context()) // the time comes even then, in whole seconds
	if err != nil || now.Before(asked.Add(-time.Second)) || now.After(time.Now().Add(time.Second)) {
		t.Errorf("Now = %v, %v; asked from %v to %v", now, err, asked, time.Now())
	}
	for range 2 {
		if err := s.EnsureContainer(t.Context()); err != nil {
			t.Errorf("EnsureContainer: %v", err)
		}
	}
	if err := s.Create(t.Context(), "web/1", nil, storage.Attrs{}); err != nil {
		t.Errorf("Create: %v", err)
	}
}

// The driver distinguishes three tables: one with a deletion that outlasts the request, one that
// is gone, and one that cannot be deleted. To a reader the first is gone.
func TestTableBeingDeleted(t *testing.T) {
	var going atomic.Bool
	s := through(t, testenv.Name("c"), func(r *http.Request) (*http.Response, error) {
		if !going.Load() || !strings.Contains(r.URL.Path, "tail") && !strings.HasSuffix(r.URL.Path, "/Tables") && !strings.HasSuffix(r.URL.Path, "$batch") {
			return http.DefaultTransport.RoundTrip(r)
		}
		body := `{"odata.error":{"code":"TableBeingDeleted","message":{"lang":"en-US","value":"The specified table is being deleted. Try operation later."}}}`
		return &http.Response{StatusCode: http.StatusConflict, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	})
	rows := []storage.Row{{Key: "k"}}
	if err := s.Upsert(t.Context(), "tailgoing", "p", rows); err != nil {
		t.Fatal(err)
	}
	going.Store(true)
	_, addErr := s.Swap(t.Context(), "tailgoing", "p", storage.Row{Key: "l"})
	_, updateErr := s.Swap(t.Context(), "tailgoing", "p", storage.Row{Key: "k", Version: `W/"x"`})
	for what, err := range map[string]error{
		"Swap, no row": addErr, "Swap": updateErr,
		"Drop":            s.Drop(t.Context(), "tailgoing"),
		"Upsert":          s.Upsert(t.Context(), "tailgoing", "p", rows),
		"Upsert, no rows": s.Upsert(t.Context(), "tailgoing", "p", nil),
	} {
		if !errors.Is(err, storage.ErrBeingDeleted) || errors.Is(err, storage.ErrNotExist) {
			t.Errorf("%s: %v, want ErrBeingDeleted", what, err)
		}
	}
	if err := last(s.Scan(t.Context(), "tailgoing", "p", "", "", 0)); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("Scan: %v, want ErrNotExist", err)
	}
	going.Store(false)
	for range 2 {
		if err := s.Drop(t.Context(), "tailgoing"); err != nil {
			t.Errorf("Drop: %v", err)
		}
	}
}

// An archived blob cannot be read, and the error says how to bring it back. Colder tiers are read
// as hot ones, and listed with their names.
func TestTiers(t *testing.T) {
	s := open(t)
	storagetest.Put(t, s, "k", []byte("x"))
	blobs, _ := s.Clients()
	for tier, want := range map[blob.AccessTier]string{
		blob.AccessTierCool: "", blob.AccessTierCold: "",
		blob.AccessTierArchive: "it is in the archive tier, where nothing can be read; az storage blob set-tier --tier Hot brings it back",
	} {
		if _, err := blobs.NewBlobClient("k").SetTier(t.Context(), tier, nil); err != nil {
			t.Fatal(err)
		}
		name := strings.ToLower(string(tier))
		if b, err := s.Stat(t.Context(), "k"); err != nil || b.Tier != name {
			t.Errorf("Stat: tier %q, %v, want %s", b.Tier, err, name)
		}
		for b, err := range s.List(t.Context(), "", "") {
			if err != nil || b.Tier != name {
				t.Errorf("List: tier %q, %v, want %s", b.Tier, err, name)
			}
		}
		r, err := s.Get(t.Context(), "k", 0, -1)
		if err == nil {
			err = r.Close()
		}
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("tier %s: %v, want %q", tier, err, want)
		}
	}
}
