package azure

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"blobtail/storage"
)

// Explain returns the remedy of an error of this store, in one line; "" for an error
// that it has no advice for.
func (s *Store) Explain(err error) string {
	a := &s.account
	_, container, _ := strings.Cut(s.name, "/")
	switch {
	case err == nil:
	case isNoHost(err):
		return fmt.Sprintf("there is no storage account %s (%s); correct the name in --store, or AZURE_STORAGE_ACCOUNT", a.name, host(a.blobURL))
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("nothing listens at %s or %s; correct the connection string, or AZURE_STORAGE_BLOB_ENDPOINT and AZURE_STORAGE_TABLE_ENDPOINT", host(a.blobURL), host(a.tableURL))
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Sprintf("the endpoint speaks plain HTTP, and the address begins with https: write http:// in the connection string, or in AZURE_STORAGE_BLOB_ENDPOINT (%s) and AZURE_STORAGE_TABLE_ENDPOINT (%s); that is for an emulator on this host alone", a.blobURL, a.tableURL)
	case hasCode(err, "ContainerNotFound"):
		return fmt.Sprintf("account %s has no container %s; an ingester makes it if it may, or: az storage container create --account-name %s --name %s --auth-mode login", a.name, container, a.name, container)
	case !errors.Is(err, storage.ErrUnauthorized):
	case skewOf(err).Abs() > mostSkew:
		return fmt.Sprintf("the clock of this host is %s, and the service refuses its requests: set it, for example by timedatectl set-ntp true", aheadOf(skewOf(err)))
	case hasCode(err, "PublicAccessNotPermitted", "NoAuthenticationInformation"):
		return "the request had no credentials when it arrived: a proxy may remove the header Authorization, or parts of the URL"
	case a.sas != "":
		return a.explainSAS(err, time.Now())
	case hasCode(err, "KeyBasedAuthenticationNotPermitted"):
		return fmt.Sprintf("account %s takes no keys; unset AZURE_STORAGE_KEY and AZURE_STORAGE_CONNECTION_STRING, set AZURE_STORAGE_ACCOUNT, and run az login", a.name)
	case a.key != "" && hasCode(err, "AuthorizationFailure"):
		return fmt.Sprintf("the key of account %s is refused; look it up: az storage account keys list --account-name %s; if it is right, %s", a.name, a.name, a.networkRules())
	case a.key != "":
		return fmt.Sprintf("the key of account %s is refused; look it up: az storage account keys list --account-name %s", a.name, a.name)
	case hasCode(err, "AuthorizationFailure"):
		return a.networkRules()
	case !isAnswer(err) && explainLogin(err) != "":
		return explainLogin(err)
	case strings.Contains(err.Error(), plainLogin):
		return "an identity needs https; for an emulator on this host set its key: AZURE_STORAGE_KEY or AZURE_STORAGE_CONNECTION_STRING"
	case !isAnswer(err):
		return noCredentials
	case hasCode(err, "InvalidAuthenticationInfo", "AuthenticationFailed"):
		return fmt.Sprintf("account %s refuses the token: it must be of the tenant of the account's subscription; az login --tenant TENANT, or correct AZURE_TENANT_ID", a.name)
	default:
		return s.lacksRole(operation(err))
	}
	return ""
}

// explainLogin is the remedy of a refusal by Entra ID, which names the kind of credentials
// that it refuses; "" if there were none.
func explainLogin(err error) string {
	text := err.Error()
	if e, ok := errors.AsType[*redacted](err); ok && e.whole != "" {
		text = e.whole
	}
	refused := func(kind string) bool { return strings.Contains(text, kind+"Credential authentication failed") }
	switch {
	case refused("Environment"), refused("ClientSecret"), refused("ClientCertificate"):
		return "the identity in AZURE_TENANT_ID and AZURE_CLIENT_ID is refused; correct these and its secret, or unset them and run az login"
	case refused("WorkloadIdentity"):
		return "the token in AZURE_FEDERATED_TOKEN_FILE is refused; the identity AZURE_CLIENT_ID needs a federated credential for the service account of this pod: az identity federated-credential list --identity-name NAME --resource-group GROUP"
	case strings.Contains(text, "ManagedIdentityCredential: failed to authenticate a system assigned identity"), strings.Contains(text, "isn't assigned to this resource"):
		return "this host has no such managed identity; assign it: az vm identity assign --name VM --resource-group GROUP --identities IDENTITY, and AZURE_CLIENT_ID names it; or run az login, or set AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN"
	case strings.Contains(text, "unable to resolve an endpoint"):
		return "the login server of Entra ID gives no answer: correct AZURE_TENANT_ID and AZURE_AUTHORITY_HOST, and check the network from here to it"
	}
	return ""
}

// noCredentials is the remedy of a process without any credentials. A program that answers in
// place of the metadata service of a machine, as some proxies do, is no identity either.
const noCredentials = "there are no credentials, and each of these is enough: run az login; set AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN or AZURE_STORAGE_CONNECTION_STRING; " +
	"or run on a host of Azure with an identity (az vm identity assign)"

func (a *account) networkRules() string {
	return fmt.Sprintf("the network rules of account %s refuse this host: az storage account network-rule add --account-name %s --ip-address ADDRESS, or use its private endpoint", a.name, a.name)
}

// mostSkew is how far the host's clock may be off before a refusal is blamed on it. The
// service accepts 15 minutes; the time of its answers is right to the second.
const mostSkew = 5 * time.Minute

// skewOf is how far the host's clock was ahead when the service refused the request as not
// authentic; 0 for other errors.
func skewOf(err error) time.Duration {
	e, ok := errors.AsType[*ServiceError](err)
	if !ok || !hasCode(err, "AuthenticationFailed", "InvalidAuthenticationInfo") {
		return 0
	}
	return e.Ahead
}

func aheadOf(skew time.Duration) string {
	if skew < 0 {
		return (-skew).Round(time.Second).String() + " slow"
	}
	return skew.Round(time.Second).String() + " fast"
}

// lacksRole names the least built-in role for an operation, and the command that assigns
// it. Blobs need it on the container only; a right to tables is one on the account.
func (s *Store) lacksRole(op string) string {
	account, container, _ := strings.Cut(s.name, "/")
	role, scope := "Storage Blob Data Reader", "/blobServices/default/containers/"+container
	switch op {
	case "create", "delete":
		role = "Storage Blob Data Contributor"
	case "upsert", "swap", "drop":
		role, scope = "Storage Table Data Contributor", ""
	case "scan", "tables":
		role, scope = "Storage Table Data Reader", ""
	case opSign:
		role, scope = "Storage Blob Delegator", ""
	}
	return fmt.Sprintf(`the identity of this process lacks the role %s; deploy/README.md has narrower ones. It takes up to 10 minutes after: az role assignment create --assignee %s --role "%s" --scope "$(az storage account show --name %s --query id --output tsv)%s"`,
		role, s.identity.assignee(), role, account, scope)
}

func host(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return endpoint
	}
	return u.Host
}

// explainSAS names the fault of a SAS. Its parts are not secret but for the signature.
func (a *account) explainSAS(err error, now time.Time) string {
	parts, perr := url.ParseQuery(a.sas)
	if perr != nil && strings.Contains(a.sas, "sig=") {
		return "the SAS was cut or changed: a % in it is not followed by two digits; copy it whole, in quotes: its sig= ends in %3D"
	}
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
	switch {
	case hasCode(err, "AuthorizationSourceIPMismatch"):
		return fmt.Sprintf("the SAS is for the addresses %s, and the service sees another one; make one for the address that this host has outside", parts.Get("sip"))
	case hasCode(err, "AuthorizationProtocolMismatch"):
		return "the SAS is for https alone, and the endpoint is http; correct AZURE_STORAGE_BLOB_ENDPOINT and AZURE_STORAGE_TABLE_ENDPOINT"
	case hasCode(err, "KeyBasedAuthenticationNotPermitted"):
		return fmt.Sprintf("account %s takes no keys, and the SAS is signed by one; use the identity of this host, or a SAS signed by an identity", a.name)
	}
	if op := operation(err); parts.Get("sr") != "" && slices.Contains([]string{"scan", "tables", "drop", "upsert", "swap"}, op) {
		return fmt.Sprintf("the SAS is for blobs alone (sr=%s) and tables are needed too; make one of the account (ss=bt, srt=sco)", parts.Get("sr"))
	}
	lacks := lacking(parts, err)
	switch {
	case lacks == "", lacks == reach && hasCode(err, "AuthorizationFailure"), hasCode(err, "AuthorizationFailure") && brokenSignature(parts) != "":
		return a.explainSignature(parts, err)
	case lacks == reach:
		return fmt.Sprintf("the SAS has sp=%s and does not reach so far: it may be for one directory alone, or signed by an identity that may not do this itself", parts.Get("sp"))
	}
	return fmt.Sprintf("the SAS has sp=%s and lacks %s; make one for blobs and tables (ss=bt, srt=sco): logquery needs sp=rl, ingest sp=rlacwu, retention sp=rlacwd", parts.Get("sp"), lacks)
}

// explainSignature is the remedy of a SAS that is refused as a whole. The service answers
// AuthenticationFailed if the signature does not fit the rest of the SAS. AuthorizationFailure is
// its answer if its network rules refuse the host, and Azurite's to a wrong signature.
func (a *account) explainSignature(parts url.Values, err error) string {
	of := "account " + a.name
	if kind := parts.Get("sr"); kind != "" {
		of += " and the container or directory that it was made for (sr=" + kind + ")"
	}
	whole := "copy the SAS whole, in quotes: its sig= ends in %3D"
	if broken := brokenSignature(parts); broken != "" {
		return fmt.Sprintf("the signature of the SAS is wrong: %s; %s", broken, whole)
	}
	text := fmt.Sprintf("the signature of the SAS is wrong: %s; or it is not of %s, or the key that signed it has changed: make a new one", whole, of)
	if hasCode(err, "AuthorizationFailure") {
		text += "; or else " + a.networkRules()
	}
	return text
}

// brokenSignature is the reason why the text of a signature can be none, "" if it may be one.
func brokenSignature(parts url.Values) string {
	text := parts.Get("sig")
	sum, err := base64.StdEncoding.DecodeString(text)
	switch {
	case strings.Contains(text, " "):
		return "it has a blank, or a + that must be %2B"
	case err != nil || len(sum) != sha256.Size:
		return fmt.Sprintf("it has %d characters, and must have %d (%%2B, %%2F and %%3D count as one)", len(text), base64.StdEncoding.EncodedLen(sha256.Size))
	}
	return ""
}

// lacking names the part that a SAS lacks for an operation; "" if the error is not about that.
func lacking(parts url.Values, err error) string {
	switch {
	case hasCode(err, "AuthorizationServiceMismatch"):
		return "a service in ss=" + parts.Get("ss")
	case hasCode(err, "AuthorizationResourceTypeMismatch"):
		return "a kind of resource in srt=" + parts.Get("srt")
	case !hasCode(err, "AuthorizationPermissionMismatch", "AuthorizationFailure"):
		return ""
	}
	for _, need := range []struct{ op, right, name string }{
		{"create", "c", "c (create)"}, {"get", "r", "r (read)"}, {"stat", "r", "r (read)"}, {"list", "l", "l (list)"}, {"dirs", "l", "l (list)"},
		{"delete", "d", "d (delete)"}, {"drop", "d", "d (delete)"}, {"scan", "r", "r (read)"}, {"tables", "l", "l (list)"},
		{"upsert", "a", "a (add)"}, {"upsert", "u", "u (update)"}, {"upsert", "c", "c (create)"},
		{"swap", "a", "a (add)"}, {"swap", "u", "u (update)"}, {"swap", "c", "c (create)"},
	} {
		covered := strings.Contains(parts.Get("sp"), need.right) || need.right == "c" && strings.Contains(parts.Get("sp"), "w")
		if need.op == operation(err) && !covered {
			return need.name
		}
	}
	return reach
}

// reach stands for the scope of a SAS: it may lack that if it has the right for an operation.
const reach = "reach"

// operation is the operation that failed, "" if the error does not say.
func operation(err error) string {
	if e, ok := errors.AsType[*storage.KeyError](err); ok {
		return e.Op
	}
	return ""
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

// again reports whether a request is worth another try. A name without an address is not, nor is
// HTTPS at a port of HTTP: these are most likely mistakes, and three more tries take ten seconds.
func again(resp *http.Response, err error) bool {
	if err != nil {
		return !isNoHost(err) && !errors.Is(err, http.ErrSchemeMismatch)
	}
	return runtime.HasStatusCode(resp, retryable...)
}
