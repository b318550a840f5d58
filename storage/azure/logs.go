package azure

import (
	"context"
	"fmt"
	"iter"
	"os"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

// Account lists the containers of a storage account, and opens any of them for reading.
type Account struct {
	account  account
	options  Options
	client   azcore.ClientOptions
	identity *identity // nil unless it signs
	service  *service.Client
}

// OpenAccount returns an account. It sends nothing. The credentials come from the same
// places as those of [Open].
func OpenAccount(name string, o Options) (acc *Account, err error) {
	defer func() {
		if err != nil {
			acc, err = nil, fmt.Errorf("open Azure storage account %s: %w", name, err)
		}
	}()
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	a, err := readAccount(name, o.Getenv)
	if err != nil {
		return nil, err
	}
	acc = &Account{account: a, options: o, client: clientOptions(o.Client)}
	return acc, translate(acc.connect())
}

func (a *Account) connect() (err error) {
	so := &service.ClientOptions{ClientOptions: a.client}
	so.PerRetryPolicies = slices.Concat(a.client.PerRetryPolicies, []policy.Policy{counting{a.options.Traffic, false}})
	switch {
	case a.account.key != "":
		c, cerr := container.NewSharedKeyCredential(a.account.name, a.account.key)
		if cerr != nil {
			return errKey
		}
		a.service, err = service.NewClientWithSharedKeyCredential(a.account.blobURL, c, so)
	case a.account.sas != "":
		a.service, err = service.NewClientWithNoCredential(a.account.blobURL+"/?"+a.account.sas, so)
	default:
		if a.identity, err = newIdentity(a.options.Login); err != nil {
			return err
		}
		a.service, err = service.NewClient(a.account.blobURL, a.identity, so)
	}
	return err
}

// Containers walks the names of the containers with a prefix. [ClassicLogs] is never among
// them.
func (a *Account) Containers(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		pages := a.service.NewListContainersPager(&service.ListContainersOptions{Prefix: &prefix})
		for pages.More() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield("", fmt.Errorf("list the containers of %s: %w", a.account.name, translate(err)))
				return
			}
			for _, c := range page.ContainerItems {
				if !yield(value(c.Name), nil) {
					return
				}
			}
		}
	}
}

// Container returns a container, which need not exist. It sends nothing.
func (a *Account) Container(name string) (*Store, error) {
	return open(a.account, name, a.options, a.client)
}

// Explain is [Store.Explain] for a reader of the account's logs.
func (a *Account) Explain(err error) string {
	name := a.account.name
	switch {
	case hasCode(err, "ContainerNotFound"):
		return fmt.Sprintf("account %s has no such container; az storage container list --account-name %s shows all but %s", name, name, ClassicLogs)
	case hasCode(err, "AuthorizationPermissionMismatch") && a.identity != nil:
		return fmt.Sprintf("the identity of this process lacks the role Storage Blob Data Reader on account %s; with that role on one container, name it: azurelogs:%s/CONTAINER", name, name)
	}
	return (&Store{name: name, account: a.account, identity: a.identity}).Explain(err)
}
