package azure

import (
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
	case !isAnswer(err) && explainLogin(err.Error()) != "":
		return explainLogin(err.Error())
	case !isAnswer(err):
		return "there are no credentials: run az login, or set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN"
	case hasCode(err, "InvalidAuthenticationInfo", "AuthenticationFailed"):
		return fmt.Sprintf("account %s refuses the token: it must be of the tenant of the account's subscription; az login --tenant TENANT, or correct AZURE_TENANT_ID", a.name)
	default:
		return s.lacksRole(operation(err))
	}
	return ""
}

// explainLogin is the remedy of a refusal by Entra ID, which names the kind of credentials
// that it refuses; "" if there were none.
func explainLogin(text string) string {
	refused := func(kind string) bool { return strings.Contains(text, kind+"Credential authentication failed") }
	switch {
	case refused("Environment"), refused("ClientSecret"), refused("ClientCertificate"):
		return "the identity in AZURE_TENANT_ID and AZURE_CLIENT_ID is refused; correct these and its secret, or unset them and run az login"
	case refused("WorkloadIdentity"):
		return "the token in AZURE_FEDERATED_TOKEN_FILE is refused; the identity AZURE_CLIENT_ID needs a federated credential for the service account of this pod: az identity federated-credential list --identity-name NAME --resource-group GROUP"
	case refused("ManagedIdentity"):
		return "this host does not have the managed identity; assign it: az vm identity assign --name VM --resource-group GROUP --identities IDENTITY, or correct AZURE_CLIENT_ID"
	}
	return ""
}

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
	switch lacks := lacking(parts, err); lacks {
	case "":
	case reach:
		return fmt.Sprintf("the SAS has sp=%s and does not reach so far: it may be for one directory alone, or signed by an identity that may not do this itself", parts.Get("sp"))
	default:
		return fmt.Sprintf("the SAS has sp=%s and lacks %s; make one for blobs and tables (ss=bt, srt=sco): logquery needs sp=rl, ingest sp=rlacwu, retention sp=rlacwd", parts.Get("sp"), lacks)
	}
	return fmt.Sprintf("the SAS is refused: it is not of account %s, or its key has changed; make a new one", a.name)
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

// again reports whether a request is worth another try. A name without an address is not:
// it is most likely a mistake, and three more tries take ten seconds.
func again(resp *http.Response, err error) bool {
	if err != nil {
		return !isNoHost(err)
	}
	return runtime.HasStatusCode(resp, retryable...)
}
