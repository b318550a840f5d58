package config

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// NATS names the JetStream stream that records are read from.
type NATS struct {
	// URL is that of a server, or of several with commas between; "" is none.
	URL         string   `yaml:"url" name:"nats" help:"URL of a NATS server to read a JetStream stream from." env:"BLOBTAIL_NATS" placeholder:"URL"`
	Stream      string   `yaml:"stream" help:"Name of the stream, which must exist." env:"BLOBTAIL_STREAM"`
	Consumer    string   `yaml:"consumer" help:"Durable consumer of the stream that all ingesters share." env:"BLOBTAIL_CONSUMER"`
	AllowLossy  bool     `yaml:"allow-lossy" name:"allow-lossy-stream" help:"Read a stream that may discard messages before they are stored." env:"BLOBTAIL_ALLOW_LOSSY_STREAM"`
	AckWait     Duration `yaml:"ack-wait" help:"When the stream delivers a message again that was not acknowledged." env:"BLOBTAIL_ACK_WAIT"`
	Credentials string   `yaml:"credentials" kong:"-"` // path of a .creds file
	CA          string   `yaml:"ca" kong:"-"`          // path of certificates; "": the system's
	Cert        string   `yaml:"cert" kong:"-"`        // path of our own certificate
	Key         string   `yaml:"key" kong:"-"`         // path of its key
}

// userinfo is the scheme of a URL, and the user, password or token behind it.
func userinfo() *regexp.Regexp { return regexp.MustCompile(`([^,/]*://)?[^,]*@`) }

// plain is a text that is shown without quotes.
type plain string

// validate reports mistakes. No message shows a URL: it may hold a password.
func (n NATS) validate(m *mistakes) {
	if n.URL == "" {
		return
	}
	for i, text := range strings.Split(n.URL, ",") {
		shown := plain(fmt.Sprintf("number %d", i+1))
		text = strings.TrimSpace(text)
		if !strings.Contains(text, "://") {
			text = "nats://" + text
		}
		u, err := url.Parse(text)
		ok := err == nil && u.Host != ""
		if ok {
			shown = plain(u.Scheme + "://")
			ok = slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme)
		}
		m.check(ok, "nats.url", shown, "want nats://HOST:4222, or tls://, ws://, wss://")
	}
	for _, name := range []struct{ key, value string }{{"nats.stream", n.Stream}, {"nats.consumer", n.Consumer}} {
		m.check(name.value != "" && !strings.ContainsAny(name.value, " \t\r\n.*>/\\"), name.key, name.value,
			"want a name without spaces, dots, wildcards and slashes, for example LOGS")
	}
	m.check(n.AckWait >= Duration(time.Second), "nats.ack-wait", n.AckWait, "want at least 1s; the default is 10m")
	m.check((n.Cert == "") == (n.Key == ""), "nats.cert", plain(n.Cert), "want nats.cert and nats.key, or neither")
}
