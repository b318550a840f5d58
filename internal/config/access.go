package config

import (
	"fmt"
	"strings"

	"blobtail/storage/fsys"
)

// Access admits senders and readers. Its secrets are in no key.
type Access struct {
	Tokens      string `yaml:"tokens" help:"File of tokens: who may send and read (ingest token)." env:"BLOBTAIL_TOKENS" placeholder:"FILE"`
	Open        bool   `yaml:"open" negatable:"" help:"Listen beyond this host without tokens or TLS." env:"BLOBTAIL_OPEN"`
	BehindProxy bool   `yaml:"behind-proxy" negatable:"" help:"A proxy in front ends TLS, and names its client in X-Forwarded-For." env:"BLOBTAIL_BEHIND_PROXY"`
	// Hosts are names by which clients know this ingester, besides those of its addresses.
	Hosts []string `yaml:"hosts" name:"host" help:"A name by which clients know this ingester; may be repeated." env:"BLOBTAIL_HOSTS" placeholder:"NAME"`
	// PeerTokenFile has the token that this ingester shows the others. BLOBTAIL_PEER_TOKEN
	// may have the token itself.
	PeerTokenFile string `yaml:"peer-token-file" kong:"-"`
	// TokenFile has the token of logquery. BLOBTAIL_TOKEN may have the token itself.
	TokenFile string `yaml:"token-file" kong:"-"`
	// SessionKey is the file with the key of the sessions of `logquery serve`.
	SessionKey string `yaml:"session-key" kong:"-"`
}

// TLS is the certificate of the listener for records, which speaks plain HTTP without one, and
// the servers that questions to ingesters believe.
type TLS struct {
	Cert     string `yaml:"cert" help:"Certificate of the listener for records (PEM)." env:"BLOBTAIL_TLS_CERT" placeholder:"FILE"`
	Key      string `yaml:"key" help:"Its key (PEM)." env:"BLOBTAIL_TLS_KEY" placeholder:"FILE"`
	ClientCA string `yaml:"client-ca" help:"Authorities of client certificates that stand for tokens (PEM)." env:"BLOBTAIL_TLS_CLIENT_CA" placeholder:"FILE"`
	// CA has authorities of ingesters and servers that are asked, besides those of the host.
	CA string `yaml:"ca" aliases:"ca" help:"Authorities to believe besides this host's when other ingesters are asked (PEM); also --ca." env:"BLOBTAIL_CA" placeholder:"FILE"`
	// ServerName is the name that the certificates of those must have; "": the host of their URL.
	ServerName string `yaml:"server-name" aliases:"server-name" help:"The name that the certificates of other ingesters must have (the host of their URL); also --server-name." env:"BLOBTAIL_SERVER_NAME" placeholder:"NAME"`
}

// homes reports paths that begin with ~.
func (c Config) homes(m *mistakes) {
	for _, p := range []struct{ key, value string }{
		{"ingest.wal", c.Ingest.WAL},
		{"access.tokens", c.Access.Tokens}, {"access.peer-token-file", c.Access.PeerTokenFile}, {"access.token-file", c.Access.TokenFile},
		{"access.session-key", c.Access.SessionKey}, {"close.key", c.Close.Key},
		{"tls.cert", c.TLS.Cert}, {"tls.key", c.TLS.Key}, {"tls.client-ca", c.TLS.ClientCA}, {"tls.ca", c.TLS.CA},
		{"nats.credentials", c.NATS.Credentials}, {"nats.ca", c.NATS.CA}, {"nats.cert", c.NATS.Cert}, {"nats.key", c.NATS.Key},
		{"syslog.cert", c.Syslog.Cert}, {"syslog.key", c.Syslog.Key}, {"syslog.client-ca", c.Syslog.ClientCA},
	} {
		if err := fsys.NoHome(p.value); err != nil {
			*m = append(*m, fmt.Errorf("%s: %w", p.key, err))
		}
	}
}

func (a Access) validate(m *mistakes) {
	for _, host := range a.Hosts {
		m.check(IsHost(host), "access.hosts", host, "want names of hosts without scheme and path, for example logs.example")
	}
}

// IsHost reports whether the Host of a request can be a text, perhaps with a port.
func IsHost(text string) bool { return text != "" && !strings.ContainsAny(text, "/@*? ") }

func (t TLS) validate(m *mistakes) {
	m.check((t.Cert == "") == (t.Key == ""), "tls.key", t.Key, "want tls.cert and tls.key, or neither")
	m.check(t.ClientCA == "" || t.Cert != "", "tls.client-ca", t.ClientCA, "want tls.cert too: client certificates need TLS")
}

// Token returns a token, id.secret, from a variable of the environment or, if that is
// empty, from a file; "" if there is neither. The error shows nothing of it.
func Token(getenv func(string) string, variable, file string) (string, error) {
	text, where := getenv(variable), variable
	if text == "" {
		if file == "" {
			return "", nil
		}
		content, err := fsys.Read(file)
		if err != nil {
			return "", fsys.WhyUnread(err, "correct the path, or put a token there, as ingest token new prints it")
		}
		text, where = string(content), file
	}
	text = strings.TrimSpace(text)
	id, secret, ok := strings.Cut(text, ".")
	if word, _, blank := strings.Cut(text, " "); blank && strings.EqualFold(word, "Bearer") {
		return "", fmt.Errorf("%s: leave the word %s out: want one token alone, id.secret", where, word)
	}
	if !ok || id == "" || secret == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%s: want one token, id.secret, as `ingest token new` prints it", where)
	}
	return text, nil
}
