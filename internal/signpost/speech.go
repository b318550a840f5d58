package signpost

import "bytes"

// A Speech is the protocol that a client begins to speak.
type Speech int

// The protocols that [SpeechOf] knows.
const (
	Other  Speech = iota
	HTTP          // a request line
	HTTP2         // its preface, which gRPC sends
	TLS           // a handshake
	Syslog        // a priority, or a length before one
	Beats         // Lumberjack of Beats and Logstash
	Proxy         // the PROXY protocol of HAProxy
)

// SpeechOf tells a protocol by the first bytes of a connection. Few bytes may be Other, and HTTP is
// told by a letter: what follows may be no request.
func SpeechOf(b []byte) Speech {
	if len(b) == 0 {
		return Other
	}
	digits := bytes.TrimLeft(b, "0123456789")
	switch c := b[0]; {
	case bytes.HasPrefix(b, []byte("PROXY ")), bytes.HasPrefix(b, []byte("\r\n\r\n\x00\r\nQUIT")):
		return Proxy
	case bytes.HasPrefix(b, []byte("PRI * HTTP/2")):
		return HTTP2
	case c == 0x16 && (len(b) == 1 || b[1] == 3):
		return TLS
	case c == '<' && len(b) > 1 && b[1] >= '0' && b[1] <= '9', len(digits) < len(b) && bytes.HasPrefix(digits, []byte(" <")):
		return Syslog
	case len(b) > 1 && (c == '1' || c == '2') && bytes.IndexByte([]byte("WJDCA"), b[1]) >= 0:
		return Beats
	case c >= 'A' && c <= 'Z':
		return HTTP
	}
	return Other
}

// IsRequest reports whether a line is the first one of a request of HTTP.
func IsRequest(line []byte) bool {
	parts := bytes.Split(bytes.TrimSuffix(line, []byte("\r")), []byte(" "))
	if len(parts) != 3 || len(parts[0]) == 0 || len(parts[1]) == 0 || !bytes.HasPrefix(parts[2], []byte("HTTP/")) {
		return false
	}
	for _, c := range parts[0] {
		if c < 'A' || c > 'Z' {
			return false
		}
	}
	return true
}

// Instead says what a client has to do that speaks another protocol to a listener of HTTP.
func (s Speech) Instead() string {
	switch s {
	case TLS:
		return "this listener speaks HTTP without TLS: use http:// in the client, or start this program with --tls-cert and --tls-key"
	case HTTP2:
		return "this listener speaks HTTP/1.1, and gRPC is not taken: send OTLP over HTTP to /v1/logs (OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf)"
	case Syslog:
		return "this listener speaks HTTP: syslog has a listener of its own, --syslog of the ingester"
	case Beats:
		return "this listener speaks HTTP: in Beats use output.elasticsearch, in Logstash the output http or elasticsearch"
	case Proxy:
		return "the PROXY protocol is not taken: let the proxy send X-Forwarded-For, and start this program with --behind-proxy"
	}
	return "this listener speaks HTTP/1.1, and these bytes are no request: send records with POST to /ingest/{service} of the ingester"
}
