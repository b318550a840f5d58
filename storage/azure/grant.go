package azure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"blobtail/storage"
)

// MaxGrant is the longest time of a grant. Azure ends a key that signs grants after 7 days,
// and nobody can take a single grant back before.
const MaxGrant = 24 * time.Hour

// Grant is a right to read for a time.
type Grant struct {
	// Dir is a directory of the container, without a slash at its end: a service.
	Dir string
	// For is how long the grant is good, up to [MaxGrant].
	For time.Duration
	// From are the only addresses of its user, as 192.0.2.7 or 192.0.2.0-192.0.2.255; "": all.
	From string
}

// Check returns an error if a grant is not valid.
func (g *Grant) Check() error {
	_, err := parseRange(g.From)
	switch {
	case err != nil:
		return err
	case strings.Trim(g.Dir, ".") == "" || strings.Trim(g.Dir, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "":
		// Other characters would also mean something else in a condition.
		return fmt.Errorf("%.80q is no directory at the top of the container", g.Dir)
	case g.For < time.Minute || g.For > MaxGrant:
		return fmt.Errorf("a grant for %s: want between 1m and %s", g.For, MaxGrant)
	}
	return nil
}

// Granted is a grant that was signed.
type Granted struct {
	// SAS is secret. Its holder has the right until then.
	SAS   string
	Until time.Time
	// Store is the name of the store to read, as ACCOUNT/CONTAINER.
	Store string
}

// FlatError says that an account has no directories, so that no SAS can be for one.
type FlatError struct{ account, container, dir string }

func (e *FlatError) Error() string {
	return fmt.Sprintf("account %s has no hierarchical namespace, and no SAS there is for less than a container", e.account)
}

// Advice is the way to give the same right there: the command that assigns a role under a
// condition. It has several lines.
func (e *FlatError) Advice() string {
	return fmt.Sprintf(`# ASSIGNEE is the user, group or identity that is to read %s.
az role assignment create --assignee ASSIGNEE --role "Storage Blob Data Reader" \
  --scope "$(az storage account show --name %s --query id --output tsv)/blobServices/default/containers/%s" \
  --condition-version 2.0 --condition "$(cat <<'END'
%s
END
)"`, e.dir, e.account, e.container, Condition(e.container, e.dir))
}

// Condition is the text of a condition under which a role reads no blobs but those of one
// service, the marks of its dropped days, and what the store says about itself. It is for roles that read
// and do not own.
func Condition(container, dir string) string {
	const blobs = "Microsoft.Storage/storageAccounts/blobServices/containers"
	prefixes := []string{dir + "/", "_horizon/" + dir + "/", "_dropped/" + dir + "/", "_copy/"}
	starts := func(attribute string) (all []string) {
		for _, p := range prefixes {
			all = append(all, attribute+" StringStartsWith '"+p+"'")
		}
		return all
	}
	clause := func(list string, names []string) string {
		return fmt.Sprintf("((!(ActionMatches{'%s/blobs/read'} AND %sSubOperationMatches{'Blob.List'})) OR (@Resource[%s:name] StringEquals '%s' AND (%s)))",
			blobs, list, blobs, container, strings.Join(names, " OR "))
	}
	path := "@Resource[" + blobs + "/blobs:path]"
	return clause("NOT ", append(starts(path), path+" StringEquals '_store'", path+" StringEquals '_promoted'")) + " AND " + clause("", starts("@Request["+blobs+"/blobs:prefix]"))
}

// Grant returns a SAS that reads and lists one directory, over HTTPS alone. The identity of
// this process signs it, by a key that it gets from the service: the SAS gives no more than
// that identity has. The error is a [*FlatError] if the account has no hierarchical
// namespace.
func (s *Store) Grant(ctx context.Context, g Grant) (Granted, error) {
	now := time.Now().UTC().Truncate(time.Second)
	text, err := s.grant(ctx, g, now)
	if err != nil {
		return Granted{}, fmt.Errorf("grant the right to read %s in %s: %w", g.Dir, s.name, err)
	}
	return Granted{SAS: text, Until: now.Add(g.For), Store: s.name}, nil
}

func (s *Store) grant(ctx context.Context, g Grant, now time.Time) (string, error) {
	if err := g.Check(); err != nil {
		return "", err
	}
	host := host(s.account.blobURL)
	switch label, _, _ := strings.Cut(host, "."); {
	case s.identity == nil:
		return "", errors.New("an identity signs it, and these credentials are a key or a SAS: unset AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_KEY and AZURE_STORAGE_SAS_TOKEN, and run az login")
	case label != s.account.name: // the SDK takes the name from there
		return "", fmt.Errorf("the endpoint %s does not begin with the account's name %s; set AZURE_STORAGE_BLOB_ENDPOINT to one that does", host, s.account.name)
	}
	so := &service.ClientOptions{ClientOptions: s.client}
	so.PerRetryPolicies = slices.Concat(s.client.PerRetryPolicies, []policy.Policy{counting{s.sent, false}})
	client, err := service.NewClient(s.account.blobURL, s.identity, so)
	if err != nil {
		return "", translate(err)
	}
	// The clock of this host may be a little fast, and the key must be good at once.
	from, until := now.Add(-mostSkew).Format(sas.TimeFormat), now.Add(g.For)
	end := until.Format(sas.TimeFormat)
	addresses, err := parseRange(g.From)
	if err != nil {
		return "", err
	}
	deep, err := isDeep(ctx, s.container)
	if err != nil && !errors.Is(err, storage.ErrUnauthorized) {
		return "", err
	}
	refused := err
	if refused == nil && !deep {
		return "", &FlatError{s.account.name, s.containerName(), g.Dir}
	}
	key, err := client.GetUserDelegationCredential(ctx, service.KeyInfo{Start: &from, Expiry: &end}, nil)
	if err = translate(err); err != nil {
		return "", storage.AtKey(opSign, "a key to sign with", err)
	}
	if refused != nil {
		if deep, err = s.isDeepBySAS(ctx, key, now.Add(min(g.For, 5*time.Minute))); err != nil {
			return "", err
		}
	}
	if !deep {
		return "", &FlatError{s.account.name, s.containerName(), g.Dir}
	}
	return sign(key, sas.BlobSignatureValues{
		ExpiryTime: until, IPRange: addresses, ContainerName: s.containerName(), Directory: g.Dir,
		Permissions: (&sas.BlobPermissions{Read: true, List: true}).String(),
	})
}

// sign signs a SAS for HTTPS alone.
func sign(key *service.UserDelegationCredential, values sas.BlobSignatureValues) (string, error) {
	values.Protocol = sas.ProtocolHTTPS
	signed, err := values.SignWithUserDelegation(key)
	if err != nil {
		return "", translate(err)
	}
	return signed.Encode(), nil
}

// opSign is the operation of an error of the key that signs grants.
const opSign = "sign"

// containerName is the name of the container.
func (s *Store) containerName() string {
	_, name, _ := strings.Cut(s.name, "/")
	return name
}

// isDeep reports whether the account has a hierarchical namespace.
func isDeep(ctx context.Context, c *container.Client) (bool, error) {
	info, err := c.GetAccountInfo(ctx, nil)
	if err = translate(err); err != nil {
		return false, fmt.Errorf("ask for the kind of the account: %w", err)
	}
	return value(info.IsHierarchicalNamespaceEnabled), nil
}

// isDeepBySAS is isDeep by a SAS of the container. Most roles for data may not ask, but each
// SAS may.
func (s *Store) isDeepBySAS(ctx context.Context, key *service.UserDelegationCredential, until time.Time) (bool, error) {
	text, err := sign(key, sas.BlobSignatureValues{ExpiryTime: until, ContainerName: s.containerName(), Permissions: (&sas.ContainerPermissions{Read: true}).String()})
	if err != nil {
		return false, err
	}
	client, err := container.NewClientWithNoCredential(s.account.blobURL+"/"+s.containerName()+"?"+text, &container.ClientOptions{ClientOptions: s.client})
	if err != nil {
		return false, translate(err)
	}
	return isDeep(ctx, client)
}

// parseRange reads one address, or the first and the last of a range.
func parseRange(text string) (r sas.IPRange, err error) {
	if text == "" {
		return r, nil
	}
	first, last, ranged := strings.Cut(text, "-")
	r.Start = net.ParseIP(first).To4()
	if ranged {
		r.End = net.ParseIP(last).To4()
	}
	if r.Start == nil || ranged && (r.End == nil || string(r.Start) > string(r.End)) {
		return r, fmt.Errorf("bad addresses %.60q: want 192.0.2.7 or 192.0.2.0-192.0.2.255, of IPv4", text)
	}
	return r, nil
}
