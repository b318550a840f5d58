// Package carry packs lines as shippers do: into the request of a protocol over HTTP, messages of
// syslog, or a message of NATS. It is the other side of the decoders in the packages of the sources,
// for tests of all doors, and for people that try their lines behind a door.
//
// [Doors] has the doors, [Door.Pack] packs lines for one of them.
package carry

import (
	"fmt"
	"time"
)

// A Transport is the way that a parcel takes.
type Transport uint8

// The transports.
const (
	HTTP Transport = iota
	Syslog
	NATS
)

// A Parcel is a request, a message or the bytes of a connection, as a shipper sends it.
type Parcel struct {
	By Transport
	// Path, with its query, and ContentType are those of a POST over HTTP.
	Path, ContentType string
	// Subject is that of a message of NATS.
	Subject string
	// Body is the body of the request or the message, or the bytes of the connection.
	Body []byte
}

// A Record is the contents of one message, in a door that takes one record a message.
type Record struct {
	// Text is a line without its line feed, or several; or a JSON object.
	Text []byte
	// Object says that the text is a JSON object. Doors that take objects get it as one.
	Object bool
	// Whole says that the text is a message of syslog already, with its priority.
	Whole bool
	// Time is the protocol's own time. A door that can do without leaves out the zero time; one
	// that cannot has none for it, and [Door.Pack] fails.
	Time time.Time
	// Priority is that of syslog; journald has its last three bits. 0: journald has none, and
	// syslog, which must have one, that of the command logger, user.notice.
	Priority int
}

// Cargo is the records to be packed, and their sender's service.
type Cargo struct {
	Records []Record
	// Service is the service that the sender names: in the path, a label, a tag. "" leaves it out
	// where the protocol allows that.
	Service string
}

// A Door is a way into an ingester.
type Door struct {
	// Name is a short word for it, About one line for people.
	Name, About string
	// Lines says that it takes lines one after the other, in which the ingester finds the records.
	Lines bool
	// Timed says that its messages have a time of their own.
	Timed bool
	// Objects says that a JSON object stays one. Elsewhere it is the text of a message.
	Objects bool
	// Only says that it takes objects only.
	Only bool
	// Named says that its messages name a service in any case, which comes before that of a record.
	Named bool

	pack func(Cargo) (Parcel, error)
}

// Doors returns all doors, in the order of the documentation.
func Doors() []Door {
	return []Door{
		{Name: "text", About: "POST /ingest/SERVICE: lines of text, of JSON, or both", Lines: true, Objects: true, pack: text},
		{Name: "json", About: "POST /ingest as NDJSON: an object is one, a line of text is its message", Objects: true, pack: ndjson},
		{Name: "message", About: "NDJSON of a shipper that reads files: each line is the text of a message", pack: messages},
		{Name: "array", About: "POST /ingest as a JSON array", Objects: true, pack: array},
		{Name: "bulk", About: "Elasticsearch's _bulk: an object is the document, a line of text is its message", Objects: true, pack: bulk},
		{Name: "loki", About: "Loki's push API: each line is an entry", Timed: true, pack: loki},
		{Name: "otlp", About: "OTLP/HTTP: each line is the body of a log record without a time and a severity", pack: otlp},
		{Name: "otlp-attributes", About: "OTLP/HTTP: the message is the body, the other members are attributes", Timed: true, Objects: true, Only: true, pack: otlpAttributes},
		{Name: "hec", About: "Splunk's HTTP Event Collector: an event is an object or a text", Objects: true, pack: hec},
		{Name: "hec-raw", About: "Splunk's collector, raw: lines of text, of JSON, or both", Lines: true, Objects: true, pack: hecRaw},
		{Name: "datadog", About: "Datadog's agent: each line is the text of a message", pack: datadog},
		{Name: "datadog-object", About: "Datadog's API: an item is an object", Objects: true, Only: true, pack: datadogObject},
		{Name: "gelf", About: "GELF over HTTP: each line is the short message", pack: gelf},
		{Name: "journald", About: "journald's export format: each line is a MESSAGE", Timed: true, pack: journald},
		{Name: "syslog", About: "syslog, RFC 5424: each line is the text of a message", Timed: true, pack: rfc5424},
		{Name: "syslog-bsd", About: "syslog, RFC 3164: each line is the text of a message", Timed: true, pack: rfc3164},
		{Name: "nats", About: "a message of NATS: lines of text, of JSON, or both", Lines: true, Objects: true, Named: true, pack: nats},
	}
}

// Named returns the door with a name.
func Named(name string) (Door, bool) {
	for _, d := range Doors() {
		if d.Name == name {
			return d, true
		}
	}
	return Door{}, false
}

// Raw is the parcel of a body that a shipper has packed: of a request, a message of NATS, or a
// connection of syslog.
func (d Door) Raw(service string, body []byte) (Parcel, error) {
	p, err := d.pack(Cargo{Service: service})
	p.Body = body
	return p, err
}

// Pack packs records. The error says why the door cannot carry them.
func (d Door) Pack(c Cargo) (Parcel, error) {
	for i := range c.Records {
		r := &c.Records[i]
		switch {
		case d.Only && !r.Object:
			return Parcel{}, fmt.Errorf("the door %s takes JSON objects only, and record %d is none", d.Name, i+1)
		case d.Timed && r.Time.IsZero():
			return Parcel{}, fmt.Errorf("a message of the door %s has a time, and record %d is without one", d.Name, i+1)
		}
	}
	p, err := d.pack(c)
	if err != nil {
		return Parcel{}, fmt.Errorf("pack for the door %s: %w", d.Name, err)
	}
	return p, nil
}
