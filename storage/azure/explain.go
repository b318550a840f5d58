package azure

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"blobtail/storage"
)

// Explain returns what to do about an error of this store, in one line; "" for an error
// that it has no advice for.
func (s *Store) Explain(err error) string {
	a := &s.account
	_, container, _ := strings.Cut(s.name, "/")
	host := func(endpoint string) string {
		u, err := url.Parse(endpoint)
		if err != nil {
			return endpoint
		}
		return u.Host
	}
	switch {
	case err == nil:
	case isNoHost(err):
		return fmt.Sprintf("there is no storage account %s (%s); correct the name in --store, or AZURE_STORAGE_ACCOUNT", a.name, host(a.blobURL))
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("nothing listens at %s or %s; correct the connection string, or AZURE_STORAGE_BLOB_ENDPOINT and AZURE_STORAGE_TABLE_ENDPOINT", host(a.blobURL), host(a.tableURL))
	case hasCode(err, "ContainerNotFound"):
		return fmt.Sprintf("account %s has no container %s; an ingester makes it, or: az storage container create --account-name %s --name %s", a.name, container, a.name, container)
	case !errors.Is(err, storage.ErrUnauthorized):
	case a.sas != "":
		return a.explainSAS(err, time.Now())
	case a.key != "":
		return fmt.Sprintf("the key of account %s is refused; look it up: az storage account keys list --account-name %s", a.name, a.name)
	case !isAnswer(err):
		return "there are no credentials: run az login, or set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN"
	}
	return ""
}

// explainSAS says what is wrong with a SAS. Its parts are not secret but for the signature.
func (a *account) explainSAS(err error, now time.Time) string {
	parts, perr := url.ParseQuery(a.sas)
	if perr != nil || parts.Get("sig") == "" {
		return "AZURE_STORAGE_SAS_TOKEN is no SAS: it has no sig=; copy it whole, in quotes"
	}
	at := func(name string) (time.Time, bool) {
		for _, form := range []string{time.RFC3339, "2006-01-02T15:04Z", time.DateOnly} {
			if t, err := time.Parse(form, parts.Get(name)); err == nil {
				return t, true
			}
		}
		return time.Time{}, false
	}
	if end, ok := at("se"); ok && now.After(end) {
		return fmt.Sprintf("the SAS expired at %s; make a new one", end.Format(time.RFC3339))
	}
	if start, ok := at("st"); ok && now.Before(start) {
		return fmt.Sprintf("the SAS is valid from %s on; is this host's clock right?", start.Format(time.RFC3339))
	}
	if hasCode(err, "AuthorizationPermissionMismatch", "AuthorizationResourceTypeMismatch", "AuthorizationServiceMismatch", "AuthorizationFailure") {
		return fmt.Sprintf("the SAS has the rights sp=%s (services ss=%s); reading needs r and l, ingesting also a, c, u and w, retention also d, for blobs and tables (b and t)", parts.Get("sp"), parts.Get("ss"))
	}
	return fmt.Sprintf("the SAS is refused: it is not of account %s, or its key has changed; make a new one", a.name)
}

// isAnswer reports whether an error is an answer of the service.
func isAnswer(err error) bool {
	_, ok := errors.AsType[*ServiceError](err)
	return ok
}

// isNoHost reports whether an error says that a name has no address at all.
func isNoHost(err error) bool {
	dns, ok := errors.AsType[*net.DNSError](err)
	return ok && dns.IsNotFound
}

// retryable are the answers after which the SDK tries again, as it does by itself.
var retryable = []int{
	http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
	http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// again reports whether a request is worth another try. A name without an address is not:
// it is most likely a mistake, and who waits for it would wait for ten seconds.
func again(resp *http.Response, err error) bool {
	if err != nil {
		return !isNoHost(err)
	}
	return runtime.HasStatusCode(resp, retryable...)
}
