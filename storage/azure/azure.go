// Package azure keeps blobs in a container and tables in the account of Azure Storage.
// It uses the smallest part of both services that meets the contracts of package
// storage. An object is one Put Blob with If-None-Match, and never staged blocks: two
// writers of one name would mix those. The rest is entity group transactions of upserts
// that replace, lists, ranges and batched deletes.
//
// [Open] takes the credentials from the environment, under the names that Azure's own
// tools use. The SDK makes the retries. A retry after a lost response meets our own
// blob and returns [storage.ErrExist]: callers check whether the blob is their own.
//
// Not supported: the table API of Cosmos DB, and accounts with a hierarchical
// namespace. Their lists are not in the order of the keys.
package azure

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"blobtail/storage"
	"blobtail/storage/internal/bounds"
	"blobtail/storage/traffic"
)

// Options are the tunables of [Open]. The zero value works.
type Options struct {
	// Create makes the container if [Store.Create] finds it missing. The service may have
	// been down when [Store.EnsureContainer] was called at the start.
	Create bool
	// Getenv reads the environment; nil is os.Getenv.
	Getenv func(string) string
	// Client tunes the SDK: retries, transport. A try of a request ends after
	// Retry.TryTimeout, 0 is 30 s. An upload gets more, depending on its size.
	Client azcore.ClientOptions
	// Login tunes the requests for tokens of Entra ID, which go to other hosts than the
	// storage.
	Login azcore.ClientOptions
	// Traffic counts the requests; nil: nobody does.
	Traffic *traffic.Counter
}

// Store implements [storage.BlobStore], [storage.TableStore] and
// [storage.Clock].
type Store struct {
	storage.TableStore
	name      string // account/container
	account   account
	identity  *identity // nil unless it signs
	container *container.Client
	rows      *aztables.ServiceClient
	client    azcore.ClientOptions
	sent      *traffic.Counter
	retry     policy.RetryOptions
	create    bool
}

// Open returns the store of a spec of the form [ACCOUNT/]CONTAINER. It sends nothing.
// The account and the credentials come from AZURE_STORAGE_CONNECTION_STRING. If that is
// missing, they come from AZURE_STORAGE_ACCOUNT (which the spec overrides) with
// AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, which may also be a URL with a SAS. If
// these are missing too, the credentials come from azidentity.NewDefaultAzureCredential.
// AZURE_STORAGE_BLOB_ENDPOINT and AZURE_STORAGE_TABLE_ENDPOINT override the endpoints.
func Open(spec string, o Options) (s *Store, err error) {
	defer func() {
		if err != nil {
			s, err = nil, fmt.Errorf("open Azure storage %s: %w", spec, err)
		}
	}()
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	accountName, containerName, err := ParseSpec(spec)
	if err != nil {
		return nil, err
	}
	a, err := readAccount(accountName, o.Getenv)
	if err != nil {
		return nil, err
	}
	return open(a, containerName, o, clientOptions(o.Client))
}

// open returns the store of a container.
func open(a account, containerName string, o Options, co azcore.ClientOptions) (*Store, error) {
	s := &Store{name: a.name + "/" + containerName, account: a, client: co, sent: o.Traffic, retry: co.Retry, create: o.Create}
	if a.key == "" && a.sas == "" {
		var err error
		if s.identity, err = newIdentity(o.Login); err != nil {
			return nil, translate(err)
		}
	}
	return s, translate(s.connect(a, a.blobURL+"/"+containerName, co, o.Traffic))
}

// clientOptions completes the options of the SDK's clients.
func clientOptions(co azcore.ClientOptions) azcore.ClientOptions {
	// Without a timeout a request that hangs holds a batch for ever.
	co.Retry.TryTimeout = cmp.Or(co.Retry.TryTimeout, 30*time.Second)
	co.Telemetry.ApplicationID = "blobtail"
	if co.Transport == nil {
		co.Transport = &http.Client{Transport: transport()}
	}
	if co.Retry.ShouldRetry == nil && co.Retry.StatusCodes == nil {
		co.Retry.ShouldRetry = again
	}
	return co
}

// mostIdle is how many connections to a service stay open for its next request. A reader
// sends so many requests at once, and a new connection takes several times as long as one
// that is open.
const mostIdle = 128

// transport is like that of the SDK, and keeps more connections.
func transport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          2 * mostIdle,
		MaxIdleConnsPerHost:   mostIdle,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second},
	}
}

// connect makes the clients of both services.
func (s *Store) connect(a account, containerURL string, co azcore.ClientOptions, sent *traffic.Counter) error {
	bo, to := &container.ClientOptions{ClientOptions: co}, &aztables.ClientOptions{ClientOptions: co}
	bo.PerCallPolicies = slices.Concat(co.PerCallPolicies, []policy.Policy{scanning{}})
	bo.PerRetryPolicies = slices.Concat(co.PerRetryPolicies, []policy.Policy{counting{sent, false}})
	to.PerRetryPolicies = slices.Concat(co.PerRetryPolicies, []policy.Policy{counting{sent, true}})
	var service *aztables.ServiceClient
	var berr, terr error
	switch {
	case a.key != "":
		bc, err := container.NewSharedKeyCredential(a.name, a.key)
		tc, err2 := aztables.NewSharedKeyCredential(a.name, a.key)
		if err != nil || err2 != nil {
			return errKey
		}
		s.container, berr = container.NewClientWithSharedKeyCredential(containerURL, bc, bo)
		service, terr = aztables.NewServiceClientWithSharedKey(a.tableURL, tc, to)
	case a.sas != "":
		s.container, berr = container.NewClientWithNoCredential(containerURL+"?"+a.sas, bo)
		service, terr = aztables.NewServiceClientWithNoCredential(a.tableURL+"/?"+a.sas, to)
	default:
		s.container, berr = container.NewClient(containerURL, s.identity, bo)
		service, terr = aztables.NewServiceClient(a.tableURL, s.identity, to)
	}
	s.TableStore, s.rows = bounds.Tables(tables{service}), service
	return errors.Join(berr, terr)
}

// Clients are the SDK's clients of the container and of the tables of its account. They are for
// development programs that look at the service itself, and clean up behind the product.
func (s *Store) Clients() (*container.Client, *aztables.ServiceClient) { return s.container, s.rows }

// errKey stands for the SDK's error, which may quote the key.
var errKey = errors.New("the account key is not base64: copy it whole; it has 88 characters and ends in ==")

// EnsureContainer makes the container if it is missing and the account may make it.
func (s *Store) EnsureContainer(ctx context.Context) error {
	_, err := s.container.Create(ctx, nil)
	if err = translate(err); err == nil || hasCode(err, "ContainerAlreadyExists") {
		return nil
	}
	if errors.Is(err, storage.ErrUnauthorized) {
		// Credentials that may write to a container often may not make one. It is
		// enough that the container exists.
		if _, perr := s.container.GetProperties(ctx, nil); perr == nil {
			return nil
		}
	}
	return fmt.Errorf("make container %s: %w", s.name, err)
}

// Now implements [storage.Clock] by the Date header of an answer, even of a failure. It
// is right to the second.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	r, err := s.container.GetProperties(ctx, nil)
	if err == nil && r.Date != nil {
		return *r.Date, nil
	}
	if re, ok := errors.AsType[*azcore.ResponseError](err); ok && re.RawResponse != nil {
		if t, perr := http.ParseTime(re.RawResponse.Header.Get("Date")); perr == nil {
			return t, nil
		}
	}
	if err == nil {
		err = errors.New("no Date in the answer")
	}
	return time.Time{}, fmt.Errorf("ask %s for the time: %w", s.name, translate(err))
}
