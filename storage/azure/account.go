package azure

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
)

// account holds the address of a storage account and how to sign for it: by key, by
// SAS, or, if both are empty, by the identity of the process (Entra ID).
type account struct {
	name     string
	key      string
	sas      string // without the question mark
	blobURL  string // no slash at the end
	tableURL string
}

// The account that every Azurite has; the key is public.
const (
	developmentName = "devstoreaccount1"
	developmentKey  = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
	developmentBlob = "http://127.0.0.1:10000/devstoreaccount1"
	developmentTbl  = "http://127.0.0.1:10002/devstoreaccount1"
)

// ParseSpec splits [ACCOUNT/]CONTAINER and checks both names. The account is "" if the
// spec leaves it to the environment.
func ParseSpec(spec string) (account, container string, err error) {
	account, container, ok := strings.Cut(spec, "/")
	if !ok {
		account, container = "", spec
	} else if err := checkAccount(account); err != nil {
		return "", "", err
	}
	return account, container, checkContainer(container)
}

// ParseLogs splits ACCOUNT[/CONTAINER] and checks both names. The container may also be
// $logs, which no command can make. It is "" if the spec has none.
func ParseLogs(spec string) (account, container string, err error) {
	account, container, ok := strings.Cut(spec, "/")
	if err := checkAccount(account); err != nil {
		return "", "", err
	}
	if !ok || container == ClassicLogs {
		return account, container, nil
	}
	return account, container, checkContainer(container)
}

// ClassicLogs is the container of Storage Analytics. A list of containers lacks it.
const ClassicLogs = "$logs"

func checkAccount(name string) error {
	if !regexp.MustCompile(`^[a-z0-9]{3,24}$`).MatchString(name) {
		return fmt.Errorf("bad account name %.80q: 3 to 24 lower-case letters and digits", name)
	}
	return nil
}

func checkContainer(container string) error {
	if len(container) < 3 || len(container) > 63 || !regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(container) {
		return fmt.Errorf("bad container name %.80q: 3 to 63 lower-case letters, digits and single dashes", container)
	}
	return nil
}

// readAccount finds the account in the environment. It must be the account called name,
// unless name is empty.
func readAccount(name string, getenv func(string) string) (account, error) {
	var a account
	var err error
	if s := getenv("AZURE_STORAGE_CONNECTION_STRING"); s != "" {
		if a, err = parseConnectionString(s); err != nil {
			return account{}, fmt.Errorf("AZURE_STORAGE_CONNECTION_STRING: %w", err)
		}
		if name != "" && a.name != "" && name != a.name {
			return account{}, fmt.Errorf("AZURE_STORAGE_CONNECTION_STRING is of account %s, not of %s", a.name, name)
		}
	} else {
		a.name = cmp.Or(name, getenv("AZURE_STORAGE_ACCOUNT"))
		if a.name == getenv("AZURE_STORAGE_ACCOUNT") || getenv("AZURE_STORAGE_ACCOUNT") == "" {
			a.key = getenv("AZURE_STORAGE_KEY")
			a.sas = sasOf(getenv("AZURE_STORAGE_SAS_TOKEN"))
		}
		if a.name == "" {
			return account{}, errors.New("which storage account? Name it as ACCOUNT/CONTAINER, or set AZURE_STORAGE_ACCOUNT or AZURE_STORAGE_CONNECTION_STRING")
		}
		a.endpoints("https", "core.windows.net")
	}
	a.blobURL = strings.TrimRight(cmp.Or(getenv("AZURE_STORAGE_BLOB_ENDPOINT"), a.blobURL), "/")
	a.tableURL = strings.TrimRight(cmp.Or(getenv("AZURE_STORAGE_TABLE_ENDPOINT"), a.tableURL), "/")
	emulator := a.name == developmentName && a.key == developmentKey
	return a, errors.Join(checkEndpoint(a.blobURL, emulator), checkEndpoint(a.tableURL, emulator))
}

// sasOf is the SAS of a text that people copy: the SAS, perhaps with its question mark, or a
// whole URL with it.
func sasOf(text string) string {
	if _, sas, ok := strings.Cut(text, "?"); ok {
		return sas
	}
	return text
}

func (a *account) endpoints(scheme, suffix string) {
	a.blobURL = cmp.Or(a.blobURL, scheme+"://"+a.name+".blob."+suffix)
	a.tableURL = cmp.Or(a.tableURL, scheme+"://"+a.name+".table."+suffix)
}

// parseConnectionString is ours because azblob and aztables read the same string
// differently: aztables forgets the endpoints if there is a SAS.
func parseConnectionString(s string) (account, error) {
	parts := map[string]string{}
	for part := range strings.SplitSeq(s, ";") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return account{}, errors.New("a part is not NAME=VALUE") // it may be a secret
		}
		parts[strings.ToLower(name)] = value
	}
	a := account{
		name: parts["accountname"], key: parts["accountkey"], sas: sasOf(parts["sharedaccesssignature"]),
		blobURL: parts["blobendpoint"], tableURL: parts["tableendpoint"],
	}
	if strings.EqualFold(parts["usedevelopmentstorage"], "true") {
		return account{name: developmentName, key: developmentKey, blobURL: developmentBlob, tableURL: developmentTbl}, nil
	}
	if a.name == "" && (a.blobURL == "" || a.tableURL == "" || a.key != "") {
		return account{}, errors.New("it has no AccountName")
	}
	if a.key == "" && a.sas == "" {
		return account{}, errors.New("it has neither AccountKey nor SharedAccessSignature")
	}
	if a.key != "" {
		a.sas = ""
	}
	a.endpoints(cmp.Or(parts["defaultendpointsprotocol"], "https"), cmp.Or(parts["endpointsuffix"], "core.windows.net"))
	return a, nil
}

// checkEndpoint refuses endpoints that would expose credentials or logs, and endpoints
// that do not give the guarantees we rely on. The emulator's account is public: it has
// nothing to expose, and runs in a neighbouring container.
func checkEndpoint(endpoint string, emulator bool) error {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.User != nil {
		return errors.New("bad storage endpoint: want https://HOST[/PATH], or http:// for an emulator on this host, in AZURE_STORAGE_BLOB_ENDPOINT and AZURE_STORAGE_TABLE_ENDPOINT, or in the connection string") // it may hold a SAS
	}
	host := u.Hostname()
	// Cosmos DB in all clouds, in its old form and that of its other API, such as
	// HOST.table.cosmos.azure.com and HOST.documents.azure.us.
	if regexp.MustCompile(`(?i)\.(cosmos|cosmosdb|documents)\.azure\.`).MatchString(host) {
		return fmt.Errorf("endpoint %s: the tables of Cosmos DB give no rows in the order of their keys, which the newest records rest on; use a storage account", host)
	}
	ip := net.ParseIP(host)
	loopback := host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback && !emulator) {
		return fmt.Errorf("endpoint %s: https only, plain http is for this very host", host)
	}
	return nil
}
