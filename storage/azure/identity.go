package azure

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// identity is the identity of the process at Entra ID. It remembers the owner of the last token,
// because an advice on roles has to name the owner. It keeps no token: the SDK does, and asks
// again before one expires.
type identity struct {
	chain  azcore.TokenCredential
	object atomic.Pointer[string]
}

// newIdentity returns the identity that the environment, the host or a login has. login
// tunes the requests for tokens. It sends nothing.
func newIdentity(login azcore.ClientOptions) (*identity, error) {
	chain, err := azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{ClientOptions: login})
	if err != nil {
		return nil, err
	}
	return &identity{chain: chain}, nil
}

// GetToken implements [azcore.TokenCredential].
func (i *identity) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	token, err := i.chain.GetToken(ctx, o)
	if id := objectOf(token.Token); err == nil && id != "" {
		i.object.Store(&id)
	}
	return token, err
}

// assignee is the object id of the identity; a word to replace if no token has named it.
func (i *identity) assignee() string {
	if i != nil {
		if id := i.object.Load(); id != nil {
			return *id
		}
	}
	return "OBJECT-ID"
}

// objectOf is the object id in a token; "" if it has none. Only the service can tell whether
// a token is genuine, so the id serves for a text alone.
func objectOf(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		Object string `json:"oid"`
	}
	if json.Unmarshal(text, &claims) != nil || strings.Trim(claims.Object, "0123456789abcdefABCDEF-") != "" {
		return ""
	}
	return claims.Object
}
