package access

import (
	"cmp"
	"crypto/x509"
	"encoding/base64"
	"net/http"
	"strings"
)

// Credentials are the id and the secret of a token as a client sends them.
type Credentials struct{ ID, Secret string }

// CredentialsOf returns the credentials of a request. ok is false if it has none; if they
// cannot be read, they are empty. These headers are known:
//
//	Authorization: Bearer ID.SECRET            most clients
//	Authorization: Basic base64(ID:SECRET)     Loki's clients, rsyslog, syslog-ng
//	Authorization: Basic base64(x:ID.SECRET)   Splunk's other form; the name does not matter there
//	Authorization: Splunk ID.SECRET            Splunk's clients
//	Authorization: ApiKey base64(ID:SECRET)    Elasticsearch's clients
//	Authorization: ApiKey ID.SECRET            the same, for clients that do not encode it
//	DD-API-KEY: ID.SECRET                      Datadog's clients
//	X-Seq-ApiKey: ID.SECRET                    Seq's clients
//
// Keys in the URL, which some of them also know, are ignored. A header that a request has
// twice cannot be read: a proxy in front may have looked at the other one.
func CredentialsOf(r *http.Request) (c Credentials, ok bool) {
	if len(r.Header["Authorization"]) > 1 || len(r.Header["Dd-Api-Key"]) > 1 || len(r.Header["X-Seq-Apikey"]) > 1 {
		return Credentials{}, true
	}
	header := r.Header.Get("Authorization")
	if header == "" {
		key := cmp.Or(r.Header.Get("Dd-Api-Key"), r.Header.Get("X-Seq-Apikey"))
		return split(key, "."), key != ""
	}
	scheme, value, _ := strings.Cut(header, " ")
	value = strings.TrimSpace(value)
	switch strings.ToLower(scheme) {
	case "bearer", "splunk":
		return split(value, "."), true
	case "apikey":
		if pair := split(decoded(value), ":"); pair != (Credentials{}) {
			return pair, true
		}
		return split(value, "."), true
	case "basic":
		pair := split(decoded(value), ":")
		if pair.ID == "x" || pair.ID == "" {
			pair = split(pair.Secret, ".")
		}
		return pair, true
	}
	return Credentials{}, true
}

// split cuts a text into an id and a secret. They are empty if there is no separator.
func split(text, separator string) Credentials {
	id, secret, ok := strings.Cut(text, separator)
	if !ok {
		return Credentials{}
	}
	return Credentials{id, secret}
}

// decoded decodes base64 with or without padding; "" if it is none.
func decoded(value string) string {
	text, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(value, "="))
	if err != nil {
		return ""
	}
	return string(text)
}

// namesOf returns the names of a certificate, in the order in which tokens are looked up.
func namesOf(c *x509.Certificate) (names []string) {
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	for _, name := range c.DNSNames {
		names = append(names, foldName(name))
	}
	if c.Subject.CommonName != "" {
		names = append(names, foldName(c.Subject.CommonName))
	}
	return names
}

// foldName makes names equal that mean the same: hosts have no case, URIs may have one.
func foldName(name string) string {
	if strings.Contains(name, "://") {
		return name
	}
	return strings.ToLower(name)
}
