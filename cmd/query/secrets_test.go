package main

import (
	"encoding/base64"
	"strings"
	"testing"

	"blobtail/internal/dev/testenv"
)

// No credential is in any output, however a command fails.
func TestNoSecrets(t *testing.T) {
	const planted = "s3cr3tPlanted"
	key := base64.StdEncoding.EncodeToString([]byte(planted + "Key"))
	sas := "sv=2024-11-04&ss=bt&srt=sco&sp=rl&se=2999-01-01T00:00Z&sig=" + planted + "%2BSig%3D"
	secrets := []string{planted, key, key[:12]}
	for _, way := range []string{"refused", "nonsense", "missing", "hung up", "nobody"} {
		endpoint := testenv.Telltale(t, way)
		ends := "AccountName=acctlogs;BlobEndpoint=" + endpoint + ";TableEndpoint=" + endpoint
		for name, vars := range map[string]map[string]string{
			"key":                      {"AZURE_STORAGE_KEY": key},
			"SAS":                      {"AZURE_STORAGE_SAS_TOKEN": sas},
			"SAS in a URL":             {"AZURE_STORAGE_SAS_TOKEN": endpoint + "/logs?" + sas},
			"SAS cut off":              {"AZURE_STORAGE_SAS_TOKEN": planted},
			"connection string":        {"AZURE_STORAGE_CONNECTION_STRING": ends + ";AccountKey=" + key},
			"connection string, SAS":   {"AZURE_STORAGE_CONNECTION_STRING": ends + ";SharedAccessSignature=" + sas},
			"connection string, wrong": {"AZURE_STORAGE_CONNECTION_STRING": ends + ";AccountKey=" + planted + ";" + planted},
			"SAS in an endpoint":       {"AZURE_STORAGE_KEY": key, "AZURE_STORAGE_BLOB_ENDPOINT": endpoint + "/?" + sas},
		} {
			slow := way == "hung up" || way == "nobody" // the SDK tries again for some seconds
			if slow && name != "SAS" {
				continue
			}
			for _, v := range []string{"AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_CONNECTION_STRING"} {
				t.Setenv(v, "")
			}
			t.Setenv("AZURE_STORAGE_ACCOUNT", "acctlogs")
			t.Setenv("AZURE_STORAGE_BLOB_ENDPOINT", endpoint)
			t.Setenv("AZURE_STORAGE_TABLE_ENDPOINT", endpoint)
			for v, value := range vars {
				t.Setenv(v, value)
			}
			commands := []string{"web --stats", "tail web -n 1", "verify", "ls", "ingesters", "grant web", "cat web/2026/11/20/1400/000001.log", "bill"}
			if slow {
				commands = commands[:1]
			}
			for _, c := range commands {
				code, out, errs := logquery(t, append([]string{"--store", "azure:logs"}, strings.Fields(c)...)...)
				for _, secret := range secrets {
					if strings.Contains(out+errs, secret) {
						t.Errorf("%s, %s: logquery %s shows %s:\n%s\n%s", way, name, c, secret, out, errs)
					}
				}
				if code == 0 {
					t.Errorf("%s, %s: logquery %s succeeds: %s%s", way, name, c, out, errs)
				}
			}
		}
	}
}
