package azure

import (
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"blobtail/storage/traffic"
)

// counting is a policy of the SDK that counts each attempt of a request.
type counting struct {
	to     *traffic.Counter
	tables bool
}

// Do implements [policy.Policy].
func (c counting) Do(r *policy.Request) (*http.Response, error) {
	answer, err := r.Next()
	kind := traffic.Table
	if !c.tables {
		kind = blobKind(r.Raw())
	}
	c.to.Sent(kind, answer)
	return answer, err
}

// blobKind is the kind of a request to the service of blobs. Its prices go by operation
// (azure.microsoft.com/pricing/details/storage/blobs): making a container counts as a list.
func blobKind(r *http.Request) traffic.Kind {
	q := r.URL.Query()
	container := q.Get("restype") == "container"
	switch {
	case q.Get("comp") == "list", container && r.Method == http.MethodPut:
		return traffic.List
	case r.Method == http.MethodGet && !container:
		return traffic.Get
	case r.Method == http.MethodPut:
		return traffic.Put
	}
	return traffic.Other
}
