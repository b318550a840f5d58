package config

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// NATS names the JetStream stream that records are read from.
type NATS struct {
	// URL is that of a server, or of several with commas between; "" is none.
	URL        string `yaml:"url" name:"nats" help:"URL of a NATS server to read a JetStream stream from." env:"BLOBTAIL_NATS" placeholder:"URL"`
	Stream     string `yaml:"stream" help:"Name of the stream, which must exist." env:"BLOBTAIL_STREAM"`
	Consumer   string `yaml:"consumer" help:"Durable consumer of the stream that all ingesters share." env:"BLOBTAIL_CONSUMER"`
	AllowLossy bool   `yaml:"allow-lossy" name:"allow-lossy-stream" help:"Read a stream that may discard messages before they are stored." env:"BLOBTAIL_ALLOW_LOSSY_STREAM"`
	// Partitions are numbers, ranges of numbers, or auto/N: what follows from the number at the end
	// of the host's name, for N ingesters.
	Partitions  []string `yaml:"partitions" help:"Partitions of the stream to take, such as 0-4,7; or auto/N with N ingesters." env:"BLOBTAIL_PARTITIONS" placeholder:"NUMBERS"`
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
	n.checkPartitions(m)
	m.check(n.AckWait >= Duration(time.Second), "nats.ack-wait", n.AckWait, "want at least 1s; the default is 10m")
	m.check((n.Cert == "") == (n.Key == ""), "nats.cert", plain(n.Cert), "want nats.cert and nats.key, or neither")
}

// mostPartitions is the number of partitions that one ingester may be given.
const mostPartitions = 256

func (n NATS) checkPartitions(m *mistakes) {
	for _, text := range n.Partitions {
		_, numbers, ok := partitions(text)
		m.check(ok, "nats.partitions", text, "want numbers and ranges from 0 to 9999, such as [0-4, 7], or [auto/20] for 20 ingesters")
		m.check(numbers != nil || len(n.Partitions) == 1 || !ok, "nats.partitions", text, "want no other partitions beside auto")
	}
	numbers, _ := n.Taken()
	m.check(len(numbers) <= mostPartitions, "nats.partitions", len(numbers), fmt.Sprintf("want at most %d partitions at one ingester", mostPartitions))
}

// Taken are the numbers of the partitions to take, each once and in their order; or the number of
// ingesters that share all partitions, if it is not 0.
func (n NATS) Taken() (numbers []int, ingesters int) {
	for _, text := range n.Partitions {
		share, some, _ := partitions(text)
		ingesters = max(ingesters, share)
		numbers = append(numbers, some...)
	}
	slices.Sort(numbers)
	return slices.Compact(numbers), ingesters
}

// partitions reads one entry of nats.partitions.
func partitions(text string) (ingesters int, numbers []int, ok bool) {
	if count, auto := strings.CutPrefix(text, "auto/"); auto {
		ingesters, ok = number(count)
		return ingesters, nil, ok && ingesters > 0
	}
	from, to, isRange := strings.Cut(text, "-")
	first, ok := number(from)
	last := first
	if isRange && ok {
		last, ok = number(to)
	}
	if !ok || last < first {
		return 0, nil, false
	}
	for p := first; p <= last; p++ {
		numbers = append(numbers, p)
	}
	return 0, numbers, true
}

// number reads digits alone, up to 9999.
func number(text string) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 16)
	return int(n), err == nil && n <= 9999
}
