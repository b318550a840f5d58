package config

import (
	"fmt"
	"net/url"
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

func defaultNATS() NATS {
	return NATS{Stream: "LOGS", Consumer: "blobtail", AckWait: Duration(10 * time.Minute)}
}

// redacted is n without the user, password or token that its URLs may have.
func (n NATS) redacted() NATS {
	urls := strings.Split(n.URL, ",")
	for i, u := range urls {
		if at := strings.LastIndexByte(u, '@'); at >= 0 {
			scheme, _, ok := strings.Cut(u, "://")
			if scheme += "://"; !ok {
				scheme = ""
			}
			urls[i] = scheme + "redacted" + u[at:]
		}
	}
	n.URL = strings.Join(urls, ",")
	return n
}

// validate reports mistakes. No message shows a URL: it may hold a password.
func (n NATS) validate(bad func(key string, value any, want string)) {
	if n.URL == "" {
		return
	}
	for i, text := range strings.Split(n.URL, ",") {
		place := fmt.Sprintf("number %d", i+1)
		text = strings.TrimSpace(text)
		if !strings.Contains(text, "://") {
			text = "nats://" + text
		}
		u, err := url.Parse(text)
		if err != nil || u.Host == "" {
			bad("nats.url", place, "want nats://HOST:4222, or tls://, ws://, wss://")
			continue
		}
		switch u.Scheme {
		case "nats", "tls", "ws", "wss":
		default:
			bad("nats.url", u.Scheme+"://", "want nats://HOST:4222, or tls://, ws://, wss://")
		}
	}
	for _, name := range []struct{ key, value string }{{"nats.stream", n.Stream}, {"nats.consumer", n.Consumer}} {
		if name.value == "" || strings.ContainsAny(name.value, " \t\r\n.*>/\\") {
			bad(name.key, fmt.Sprintf("%q", name.value), "want a name without spaces, dots, wildcards and slashes, for example LOGS")
		}
	}
	if n.AckWait < Duration(time.Second) {
		bad("nats.ack-wait", n.AckWait, "want at least 1s; the default is 10m")
	}
	if (n.Cert == "") != (n.Key == "") {
		bad("nats.cert", n.Cert, "want nats.cert and nats.key, or neither")
	}
}
