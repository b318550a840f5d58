package main

import (
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"blobtail/internal/cli"
)

// A mistake with the credentials or the address of an account ends a read with the exit code for
// it, and one line says the way out.
func TestMistakesOnAzure(t *testing.T) {
	a := env.Azurite(t)
	container, _ := stocked(t, a)
	good, err := a.SAS("rl", time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	begin, rest, _ := strings.Cut(good, "sig=")
	sig, more, _ := strings.Cut(rest, "&")
	cut, _, _ := strings.Cut(sig, "%")
	plain, err := url.QueryUnescape(sig) // it may begin with an escape
	if err != nil {
		t.Fatal(err)
	}
	other := "A"
	if plain[0] == 'A' {
		other = "B"
	}
	noIdentity := func(t *testing.T) {
		for _, name := range []string{"AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE", "IDENTITY_ENDPOINT", "MSI_ENDPOINT"} {
			t.Setenv(name, "")
			os.Unsetenv(name) // Setenv brings it back
		}
		// Without it the SDK asks the metadata service of a machine, and az.
		t.Setenv("AZURE_TOKEN_CREDENTIALS", "AzureCLICredential")
		t.Setenv("PATH", t.TempDir())
	}
	for _, c := range []struct {
		name, sas string
		set       func(*testing.T)
		code      int
		says      []string
	}{
		{"right", good, nil, cli.OK, nil},
		{"changed signature", begin + "sig=" + url.QueryEscape(other+plain[1:]) + "&" + more, nil, cli.Refused,
			[]string{"the signature of the SAS is wrong: copy the SAS whole, in quotes: its sig= ends in %3D"}},
		{"cut signature", begin + "sig=" + cut[:min(10, len(cut))] + "AAAA", nil, cli.Refused, []string{"the signature of the SAS is wrong: it has ", " characters, and must have 44"}},
		{"another right", strings.Replace(good, "sp=rl", "sp=rlw", 1), nil, cli.Refused, []string{"the signature of the SAS is wrong: copy the SAS whole"}},
		{"no credentials, emulator", "", noIdentity, cli.Refused, []string{"an identity needs https; for an emulator on this host set its key: AZURE_STORAGE_KEY"}},
		{"no credentials", "", func(t *testing.T) {
			noIdentity(t)
			t.Setenv("AZURE_STORAGE_BLOB_ENDPOINT", strings.Replace(a.BlobURL, "http:", "https:", 1))
		}, cli.Refused,
			[]string{"there are no credentials", "az login", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN", "az vm identity assign"}},
		{"https at a plain port", good, func(t *testing.T) {
			t.Setenv("AZURE_STORAGE_BLOB_ENDPOINT", strings.Replace(a.BlobURL, "http:", "https:", 1))
		}, cli.NoStore, []string{"the endpoint speaks plain HTTP, and the address begins with https: write http://"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			reader(t, a, a.BlobURL, c.sas)
			if c.set != nil {
				c.set(t)
			}
			code, _, errs := logquery(t, "--store", "azure:"+container, "web", "--live", "off", "-q")
			if code != c.code || strings.Contains(errs, sig) || len(c.says) > 0 && strings.Count(errs, "\n") != 2 { // the first is of --live off
				t.Errorf("exit %d, want %d\n%s", code, c.code, errs)
			}
			for _, text := range c.says {
				if !strings.Contains(errs, text) {
					t.Errorf("it does not say %q:\n%s", text, errs)
				}
			}
		})
	}
}
