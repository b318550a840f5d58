package integration_test

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"blobtail/internal/dev/testenv"
)

// azureStore returns a place in a fresh Azurite container, which the first ingester
// creates.
func azureStore(t testing.TB) (place, *container.Client) {
	t.Helper()
	a := shared.Azurite(t)
	name := testenv.Name("c")
	key, err := container.NewSharedKeyCredential(a.Account, testenv.Key)
	if err != nil {
		t.Fatal(err)
	}
	client, err := container.NewClientWithSharedKeyCredential(a.BlobURL+"/"+name, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	return place{store: "azure:" + name, env: []string{"AZURE_STORAGE_CONNECTION_STRING=" + a.ConnectionString}}, client
}

// stores runs a test on a directory and on Azurite, both at once. The emulator is a process
// with one thread, so only a few of these tests may keep it busy at the same time: the
// requests of more would time out on a machine that is busy too.
func stores(t *testing.T, test func(t *testing.T, at place)) {
	t.Helper()
	beside(t, variants(test))
}

// mostlyDir is stores, but on Azurite only in a long run: another test, on Azurite, proves the
// promises that depend on the store.
func mostlyDir(t *testing.T, test func(t *testing.T, at place)) {
	t.Helper()
	all := variants(test)
	if _, long := torture(t); !long {
		delete(all, "azure")
	}
	beside(t, all)
}

// variants are a test on a directory and on Azurite.
func variants(test func(t *testing.T, at place)) map[string]func(t *testing.T) {
	return map[string]func(t *testing.T){
		"dir": func(t *testing.T) {
			at, _ := dirStore(t)
			test(t, at)
		},
		"azure": func(t *testing.T) {
			shared.emulated <- struct{}{}
			t.Cleanup(func() { <-shared.emulated })
			at, _ := azureStore(t)
			test(t, at)
		},
	}
}
