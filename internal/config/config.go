// Package config reads blobtail's configuration file: YAML, in sections. An unknown key is an error.
//
// Call [Load] with the path of a file ("" for the defaults alone). The commands
// lay environment variables and flags over it, and call [Config.Validate] once,
// before they open anything. configs/blobtail.yaml explains every key.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"blobtail/internal/openstore"
	"blobtail/internal/yamltext"
	"blobtail/record/ack"
	"blobtail/storage/fsys"
)

// Config is the whole file. A key with a help text is a flag of ingest too, and an
// environment variable: the tags are those of kong.
type Config struct {
	Store  openstore.Spec `yaml:"store" help:"dir:PATH or azure:[ACCOUNT/]CONTAINER." env:"BLOBTAIL_STORE"`
	Reads  `yaml:",inline" kong:"-"`
	Ingest Ingest `yaml:"ingest" embed:""`
	Access Access `yaml:"access" embed:""`
	TLS    TLS    `yaml:"tls" embed:"" prefix:"tls-"`
	Flush  Flush  `yaml:"flush" embed:"" prefix:"flush-"`
	Limits Limits `yaml:"limits" kong:"-"`
	Logs   `yaml:",inline" kong:"-"`
	NATS   NATS   `yaml:"nats" embed:""`
	Syslog Syslog `yaml:"syslog" embed:""`
	Tail   Tail   `yaml:"tail" embed:"" prefix:"tail-"`
	// Retention is the policy of the command retention.
	Retention Retention `yaml:"retention" kong:"-"`
	// Close is how the command retention closes days.
	Close Close `yaml:"close" kong:"-"`
	// Protocols are settings of the protocols of stock shippers.
	Protocols Protocols `yaml:"protocols" kong:"-"`
	AzureLogs AzureLogs `yaml:"azurelogs" kong:"-"`
	// OTLP are settings of OTLP.
	OTLP OTLP `yaml:"otlp" kong:"-"`
	// Fields are names of fields that are tried before the known ones.
	Fields Fields `yaml:"fields" kong:"-"`
	Texts  `yaml:",inline" kong:"-"`
	// Counters count records for Prometheus.
	Counters []Counter `yaml:"counters" kong:"-"`
	// Rules drop, sample and mask records. They apply in their order.
	Rules []RecordRule `yaml:"rules" kong:"-"`
}

// Reads are for logquery.
type Reads struct {
	// Live is the URL of an ingester that logquery asks for unflushed records; "" is those that
	// announce themselves in the store, and "off" none.
	Live string `yaml:"live"`
	// Workers are URLs of servers that read parts of questions, with commas between them.
	Workers string `yaml:"workers"`
}

// Texts says what is found in texts.
type Texts struct {
	// Forms make fields of messages, at a read or as they come.
	Forms Forms `yaml:"forms"`
	// TimeNear is on or off: whether a time that may be that of another thing has to be near.
	TimeNear string `yaml:"time-near"`
}

// Ingest says where the ingester listens, and how it names blobs.
type Ingest struct {
	Listen    string   `yaml:"listen" help:"Address that shippers send to." env:"BLOBTAIL_LISTEN"`
	Admin     string   `yaml:"admin" help:"Address of /metrics, /healthz, /readyz, /flush, /drain." env:"BLOBTAIL_ADMIN"`
	WAL       string   `yaml:"wal" name:"wal" help:"Directory of the log (default: .wal in a dir store, else ./blobtail-wal)." env:"BLOBTAIL_WAL" placeholder:"DIRECTORY"`
	Lane      string   `yaml:"lane" help:"auto or 0 to 98: leading part of the blob numbers." env:"BLOBTAIL_LANE"`
	Period    Duration `yaml:"period" help:"Slice of event time in a blob's name; minutes that divide 60." env:"BLOBTAIL_PERIOD"`
	Dedupe    string   `yaml:"dedupe" help:"When a retry is recognised: body, key or off." env:"BLOBTAIL_DEDUPE"`
	Grace     Duration `yaml:"grace" help:"How long a stop may take." env:"BLOBTAIL_GRACE"`
	Advertise string   `yaml:"advertise" help:"URL at which readers and other ingesters reach this one." env:"BLOBTAIL_ADVERTISE" placeholder:"URL"`
	Announce  string   `yaml:"announce" help:"required or best-effort: whether to accept records while readers cannot know of this ingester." env:"BLOBTAIL_ANNOUNCE"`

	// Ack is the least level of acknowledgement, and Acks has those of services by name or glob.
	Ack  ack.Level            `yaml:"ack" help:"What an answer means at least: disk, shipped or stored." env:"BLOBTAIL_ACK"`
	Acks map[string]ack.Level `yaml:"acks" kong:"-"`
}

// Flush says when a batch becomes a blob. Sizes are bytes of lines.
type Flush struct {
	Size   Size     `yaml:"size" help:"Bytes of lines that make a blob at once." env:"BLOBTAIL_FLUSH_SIZE"`
	Age    Duration `yaml:"age" help:"Age at which a blob is made of at least flush-min." env:"BLOBTAIL_FLUSH_AGE"`
	Min    Size     `yaml:"min" help:"See flush-age." env:"BLOBTAIL_FLUSH_MIN"`
	MaxAge Auto     `yaml:"max-age" help:"Age at which a blob is made unconditionally; auto is 10m where readers can ask this ingester, else 5m." env:"BLOBTAIL_FLUSH_MAX_AGE"`
	// StoredEvery bounds the blobs of services whose requests wait for them.
	StoredEvery Duration `yaml:"stored-every" help:"How often batches are cut for who waits for blobs." env:"BLOBTAIL_FLUSH_STORED_EVERY"`
	// Filters makes a search quick and costs an eighth of the CPU.
	Filters bool `yaml:"filters" negatable:"" help:"Store words and ids with a blob, by which a search rules out blocks." env:"BLOBTAIL_FLUSH_FILTERS"`
}

// validate reports mistakes.
func (f Flush) validate(m *mistakes) {
	m.check(f.Size >= leastFlush, "flush.size", f.Size,
		"want at least "+leastFlush.String()+", for example "+Default().Flush.Size.String()+": each blob costs requests")
	m.check(f.Age > 0, "flush.age", f.Age, "want more than nothing")
	m.check(f.Size <= 1<<30, "flush.size", f.Size, "want at most 1GiB: a batch is sorted in memory")
	// A lower size alone is no mistake: the default of min has no effect then, and needs none. Nor has
	// that of earlier versions, which a file may have from print-config.
	m.check(f.Min <= f.Size || f.Min == Default().Flush.Min || f.Min == 1<<20, "flush.min", f.Min,
		"want at most flush.size ("+f.Size.String()+"), or flush.age has no effect")
	m.check(f.StoredEvery >= Duration(time.Second) && f.StoredEvery <= Duration(time.Minute), "flush.stored-every", f.StoredEvery,
		"want 1s to 1m: requests wait for so long, and their clients for no longer than their own time-outs")
}

// Limits bounds the memory of requests.
type Limits struct {
	InFlight Size `yaml:"in-flight"` // bytes held by all requests at once
	// NewServices is the number of services within an hour that were not accepted within a day before
	// and are in neither log nor store; 0: no limit.
	NewServices int `yaml:"new-services"`
}

// AzureLogs is for readers of Azure's own logs.
type AzureLogs struct {
	// Ignore are the first parts of keys, or globs, that are not told though no log is below them.
	Ignore []string `yaml:"ignore"`
}

func (a *AzureLogs) validate(m *mistakes) {
	for _, glob := range a.Ignore {
		_, err := path.Match(glob, "")
		m.check(err == nil, "azurelogs.ignore", glob, "want the first part of keys, or a glob such as backup-*")
	}
}

// Log bounds the log on disk.
type Log struct {
	Segment Size `yaml:"segment"` // bytes of a segment file
	Soft    Size `yaml:"soft"`    // log size from which the oldest batches are cut early
	Max     Size `yaml:"max"`     // log size from which requests are refused; 0: only the disk's fill decides
	// DiskFull is the share of the disk in percent from which requests are refused.
	DiskFull int `yaml:"disk-full"`
}

// Tail says where the newest records of each service are kept for quick reading.
// Ingesters and readers have to agree on it.
type Tail struct {
	Enabled bool   `yaml:"enabled" kong:"-"` // ingesters write it
	Prefix  string `yaml:"prefix" kong:"-"`  // of the tables' names, letters
	Shards  int    `yaml:"shards" kong:"-"`  // partitions of a service in a table
	// Every is the time between two rows of a busy service, for an ingester alone.
	Every Auto `yaml:"every" help:"Time between two rows of a busy service in the tables of the newest records; auto is 5s where readers can ask this ingester, else 1s." env:"BLOBTAIL_TAIL_EVERY"`
}

// Default is the configuration of an ingester started with no file.
func Default() Config {
	return Config{
		Store: openstore.Default(),
		Ingest: Ingest{
			Listen: "127.0.0.1:8514",
			Admin:  "127.0.0.1:8515",
			Lane:   "auto",
			Period: Duration(time.Hour),
			Dedupe: "body",
			Grace:  Duration(8 * time.Second),

			Acks: map[string]ack.Level{},

			Announce: "required",
		},
		Access: Access{Hosts: []string{}},
		Flush: Flush{
			Size: 32 << 20,
			Age:  Duration(time.Minute),
			Min:  2 << 20,

			StoredEvery: Duration(time.Second),
			Filters:     true,
		},
		Limits:    Limits{InFlight: 256 << 20, NewServices: 10_000},
		Protocols: Protocols{Elasticsearch: "8.9.0"},
		OTLP:      OTLP{ServiceFrom: conventions()},
		Logs: Logs{
			Log:  Log{Segment: 64 << 20, Soft: 4 << 30, DiskFull: 85},
			Ship: Ship{Every: Duration(250 * time.Millisecond), Wait: Duration(10 * time.Second), Fallback: "refuse", AdoptAfter: "auto"},
		},
		NATS:   NATS{Stream: "LOGS", Consumer: "blobtail", Partitions: []string{}, AckWait: Duration(10 * time.Minute)},
		Tail:   Tail{Enabled: true, Prefix: "tail", Shards: 4},
		Syslog: Syslog{Allow: []string{}, Services: []string{}, MaxConns: 1000},

		Close:     Close{After: Duration(26 * time.Hour)},
		Retention: Retention{Tail: Age(day), Grace: Duration(time.Hour), Rules: []Rule{}},
		AzureLogs: AzureLogs{Ignore: []string{}},
		Fields:    Fields{},
		Texts:     Texts{Forms: Forms{}, TimeNear: "on"},
		Counters:  []Counter{},
		Rules:     []RecordRule{},
	}
}

// Load reads the file at path over the defaults. A key that does not exist is an error that
// names its line and the key that was probably meant.
func Load(path string) (Config, error) {
	c := Default()
	if path == "" {
		return c, nil
	}
	text, err := fsys.Read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, noFile(path)
	case err != nil:
		return c, fmt.Errorf("read configuration: %w", fsys.WhyUnread(err, ""))
	}
	next := c
	err = yamltext.Decode(text, &next)
	switch {
	case err == nil && reflect.ValueOf(next).IsZero():
		return c, nil // null, which clears the struct
	case err != nil:
		return c, fmt.Errorf("configuration %s: %w", path, explain(text, err))
	}
	if err := variables(string(text), reflect.ValueOf(next), ""); err != nil {
		return c, fmt.Errorf("configuration %s: %w", path, err)
	}
	var m mistakes
	next.homes(&m)
	if len(m) > 0 {
		return c, fmt.Errorf("configuration %s: %w", path, errors.Join(m...))
	}
	return next, nil
}

// variable matches texts that operators may expect to become a value of the environment.
func variable() *regexp.Regexp { return regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}`) }

// variables refuses values with ${NAME}: nothing replaces it in a file. A value may have it
// if the file has the dollar as \x24, as [Config.YAML] writes it.
func variables(file string, v reflect.Value, key string) error {
	if store, ok := v.Interface().(openstore.Spec); ok {
		v = reflect.ValueOf(store.String())
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(v.Type()) {
			name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if !f.IsExported() || name == "" {
				continue
			}
			if err := variables(file, v.FieldByIndex(f.Index), strings.TrimPrefix(key+"."+name, ".")); err != nil {
				if env := f.Tag.Get("env"); env != "" {
					return fmt.Errorf("%w; set %s instead", err, env)
				}
				return err
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := variables(file, v.Index(i), fmt.Sprintf("%s[%d]", key, i)); err != nil {
				return err
			}
		}
	case reflect.String:
		if name := variable().FindString(v.String()); strings.Contains(file, name) && name != "" {
			return fmt.Errorf("%s: %s stays as it is in this file", key, name)
		}
	}
	return nil
}

// YAML is the configuration as a file that Load reads back, with any texts in it. It holds no
// secrets: those of a store come from the environment alone, and user, password or token of a URL
// are left out. It fails for a text that is not in UTF-8, which YAML cannot hold.
func (c Config) YAML() ([]byte, error) {
	c.NATS.URL = userinfo().ReplaceAllString(c.NATS.URL, "${1}redacted@")
	comments := yaml.CommentMap{}
	for key, value := range map[string]func() (time.Duration, string){"$.flush.max-age": c.MaxAge, "$.tail.every": c.TailEvery} {
		if d, why := value(); why != "" {
			comments[key] = []*yaml.Comment{yaml.LineComment(fmt.Sprintf(" %v: %s", Duration(d), why))}
		}
	}
	return marshal(c, yaml.WithComment(comments))
}

// WALDir is the directory of the log: as configured, else `.wal` inside a dir
// store (so that a new store never replays another's log), else ./blobtail-wal.
func (c Config) WALDir() string {
	if c.Ingest.WAL != "" {
		return c.Ingest.WAL
	}
	if dir := c.Store.Dir(); dir != "" {
		return strings.TrimRight(dir, "/") + "/.wal"
	}
	return "./blobtail-wal"
}

// LaneNumber is the lane by the configuration and the host's name: the configured
// number, else the ordinal at the end of host (web-3 is 3, as in a StatefulSet). ok is
// false if there is neither, and the caller has to find a free lane. Lane 99 belongs to
// the compactor.
func (c Config) LaneNumber(host string) (lane int, ok bool) {
	if n, err := strconv.Atoi(c.Ingest.Lane); err == nil {
		return n, true
	}
	lane, ok = Ordinal(host)
	return lane % 99, ok
}

// Ordinal is the number at the end of a host's name: of web-3 it is 3, as in a StatefulSet.
func Ordinal(host string) (n int, ok bool) {
	m := regexp.MustCompile(`-([0-9]{1,6})$`).FindStringSubmatch(host)
	if m == nil {
		return 0, false
	}
	n, _ = strconv.Atoi(m[1])
	return n, true
}

// leastFlush is the smallest flush.size. Below it, blobs cost more in requests than the
// records in them are worth, and a forgotten unit would make a blob of each record.
const leastFlush Size = 64 << 10

// isPort reports whether a text is the number of a port.
func isPort(text string) bool {
	port, err := strconv.Atoi(text)
	return err == nil && port >= 0 && port <= 65535
}

// withHost completes an address that is a port alone, or returns the usual one.
func withHost(address, usual string) string {
	if port := strings.TrimPrefix(address, ":"); isPort(port) {
		host, _, _ := net.SplitHostPort(usual)
		return net.JoinHostPort(host, port)
	}
	return usual
}

// isAddress reports whether a text is a URL at which an ingester can be asked.
func isAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil &&
		u.RawQuery == "" && u.Fragment == "" && !strings.Contains(text, "@")
}

// public is the part of a URL that may be shown: no user, no password and no query.
func public(text string) string {
	if strings.Contains(text, "@") {
		scheme, _, ok := strings.Cut(text, "://")
		if !ok || strings.Contains(scheme, "@") {
			return "..."
		}
		return scheme + "://..."
	}
	if end := strings.IndexAny(text, "?#;"); end >= 0 {
		return text[:end+1] + "..."
	}
	return text
}

// mistakes are the mistakes in a configuration.
type mistakes []error

// check adds a mistake in the value of a key unless ok. A string is shown in quotes.
func (m *mistakes) check(ok bool, key string, value any, want string) {
	if ok {
		return
	}
	if text, is := value.(string); is {
		value = strconv.Quote(text)
	}
	*m = append(*m, fmt.Errorf("%s: %v: %s", key, value, want))
}

// LiveOff reports whether reads are of blobs alone unless they say otherwise.
func (c Config) LiveOff() bool { return c.Live == "off" }

// Validate returns every mistake in the configuration at once. Each line names the
// key, the value and the fix.
func (c Config) Validate() error {
	m := c.Forms.Check()
	m.check(c.Store != openstore.Spec{}, "store", "", "want dir:PATH or azure:[ACCOUNT/]CONTAINER")
	m.check(!c.Store.Logs(), "store", c.Store.String(), "want a store to write to; Azure's own logs are for logquery, and for ingest import --from")
	in := c.Ingest
	usual := Default().Ingest
	for _, a := range []struct{ key, value, usual string }{{"ingest.listen", in.Listen, usual.Listen}, {"ingest.admin", in.Admin, usual.Admin}} {
		_, text, err := net.SplitHostPort(a.value)
		m.check(err == nil && isPort(text), a.key, a.value, "want host:port, for example "+withHost(a.value, a.usual))
	}
	lane, err := strconv.Atoi(in.Lane)
	m.check(in.Lane == "auto" || err == nil && lane >= 0 && lane <= 98, "ingest.lane", in.Lane, "want auto or 0 to 98")
	p := time.Duration(in.Period)
	m.check(p >= time.Minute && p <= time.Hour && time.Hour%p == 0 && p%time.Minute == 0,
		"ingest.period", in.Period, "want a whole number of minutes that divides 60: 1m, 5m, 10m, 15m, 30m, 1h")
	m.check(slices.Contains([]string{"body", "key", "off"}, in.Dedupe), "ingest.dedupe", in.Dedupe, "want body, key or off")
	c.Ship.validate(&m)
	m.check(slices.Contains([]string{"required", "best-effort"}, in.Announce), "ingest.announce", in.Announce, "want required or best-effort")
	for _, a := range []struct{ key, value, or string }{{"live", c.Live, ", or off"}, {"ingest.advertise", c.Ingest.Advertise, ""}} {
		example := "http://10.0.0.5:8514"
		if whole := "http://" + a.value; isAddress(whole) && public(a.value) == a.value && !strings.Contains(a.value, "://") {
			example = whole
		}
		m.check(a.value == "" || isAddress(a.value) || a.key == "live" && c.LiveOff(), a.key, public(a.value),
			"want a URL without a name, a password or a query, for example "+example+a.or)
	}
	c.homes(&m)
	c.Access.validate(&m)
	c.TLS.validate(&m)
	m.check(c.Ingest.Grace > 0, "ingest.grace", c.Ingest.Grace, "want more than nothing")
	c.Flush.validate(&m)
	c.Protocols.validate(&m)
	m.check(c.Limits.NewServices >= 0 && c.Limits.NewServices <= 1_000_000, "limits.new-services", c.Limits.NewServices,
		"want 1 to 1000000, or 0 for no limit; the default is 10000")
	m.check(c.Limits.InFlight >= 128<<20, "limits.in-flight", c.Limits.InFlight,
		"want at least 128MiB: one request may hold 16MiB as sent and 64MiB decompressed")
	m.check(c.Log.Segment >= 1<<20 && c.Log.Segment <= 1<<30, "log.segment", c.Log.Segment, "want 1MiB to 1GiB")
	m.check(c.Log.Soft >= c.Log.Segment, "log.soft", c.Log.Soft, "want at least log.segment ("+c.Log.Segment.String()+")")
	m.check(c.Log.Max == 0 || c.Log.Max >= c.Log.Soft, "log.max", c.Log.Max, "want 0 or at least log.soft ("+c.Log.Soft.String()+")")
	m.check(c.Log.DiskFull >= 1 && c.Log.DiskFull <= 100, "log.disk-full", c.Log.DiskFull, "want 1 to 100 (percent)")
	c.AzureLogs.validate(&m)
	for _, pattern := range slices.Sorted(maps.Keys(c.Ingest.Acks)) {
		m.checkServices("ingest.acks", pattern)
	}
	c.NATS.validate(&m)
	c.Syslog.validate(&m)
	letters := regexp.MustCompile(`^[A-Za-z]{1,40}$`).MatchString(c.Tail.Prefix)
	m.check(letters, "tail.prefix", c.Tail.Prefix, "want letters only, at most 40, for example tail")
	every, _ := c.TailEvery()
	m.check(every >= leastEvery && every <= mostEvery, "tail.every", c.Tail.Every, "want 1s to 30s, or auto")
	m.check(c.Tail.Shards >= 1 && c.Tail.Shards <= 16, "tail.shards", c.Tail.Shards, "want 1 to 16")
	c.Retention.validate(&m, c.Close)
	c.OTLP.validate(&m)
	c.Fields.validate(&m, c.TimeNear)
	validateCounters(&m, c.Counters)
	validateRules(&m, c.Rules)
	return errors.Join(m...)
}
