// Package config reads blobtail's configuration file: YAML, in sections of
// fewer than ten keys. An unknown key is an error.
//
// Call [Load] with the path of a file ("" for the defaults alone). The commands
// lay environment variables and flags over it, and call [Config.Validate] once,
// before they open anything. configs/blobtail.yaml explains every key.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"blobtail/internal/openstore"
)

// Config is the whole file. A key with a help text is a flag of ingest too, and an
// environment variable: the tags are those of kong.
type Config struct {
	Store openstore.Spec `yaml:"store" help:"dir:PATH or azure:[ACCOUNT/]CONTAINER." env:"BLOBTAIL_STORE"`
	// Live is the URL of an ingester that logquery asks for unflushed records; "" is
	// none, or on a dir store the ingesters that announce themselves there.
	Live   string `yaml:"live" kong:"-"`
	Ingest Ingest `yaml:"ingest" embed:""`
	Flush  Flush  `yaml:"flush" embed:"" prefix:"flush-"`
	Limits Limits `yaml:"limits" kong:"-"`
	Log    Log    `yaml:"log" kong:"-"`
	NATS   NATS   `yaml:"nats" embed:""`
	Tail   Tail   `yaml:"tail" kong:"-"`
	// Retention is the policy of the command retention.
	Retention Retention `yaml:"retention" kong:"-"`
}

// Ingest says where the ingester listens, and how it names blobs.
type Ingest struct {
	Listen    string   `yaml:"listen" help:"Address that shippers send to." env:"BLOBTAIL_LISTEN"`
	Admin     string   `yaml:"admin" help:"Address of /metrics, /healthz, /readyz, /flush, /drain." env:"BLOBTAIL_ADMIN"`
	WAL       string   `yaml:"wal" name:"wal" help:"Directory of the log (default: .wal in a dir store, else ./blobtail-wal)." env:"BLOBTAIL_WAL"`
	Lane      string   `yaml:"lane" help:"auto or 0 to 98: leading part of the blob numbers." env:"BLOBTAIL_LANE"`
	Period    Duration `yaml:"period" help:"Slice of event time in a blob's name; minutes that divide 60." env:"BLOBTAIL_PERIOD"`
	Dedupe    string   `yaml:"dedupe" help:"When a retry is recognised: body, key or off." env:"BLOBTAIL_DEDUPE"`
	Grace     Duration `yaml:"grace" help:"How long a stop may take." env:"BLOBTAIL_GRACE"`
	Advertise string   `yaml:"advertise" help:"URL at which readers and other ingesters reach this one." env:"BLOBTAIL_ADVERTISE" placeholder:"URL"`
	Announce  string   `yaml:"announce" help:"required or best-effort: whether to accept records while readers cannot know of this ingester." env:"BLOBTAIL_ANNOUNCE"`
}

// Flush says when a batch becomes a blob. Sizes are bytes of lines.
type Flush struct {
	Size   Size     `yaml:"size" help:"Bytes of lines that make a blob at once." env:"BLOBTAIL_FLUSH_SIZE"`
	Age    Duration `yaml:"age" help:"Age at which a blob is made of at least flush-min." env:"BLOBTAIL_FLUSH_AGE"`
	Min    Size     `yaml:"min" help:"See flush-age." env:"BLOBTAIL_FLUSH_MIN"`
	MaxAge Duration `yaml:"max-age" help:"Age at which a blob is made unconditionally." env:"BLOBTAIL_FLUSH_MAX_AGE"`
}

// Limits bounds the memory of requests.
type Limits struct {
	InFlight Size `yaml:"in-flight"` // bytes held by all requests at once
}

// Log bounds the log on disk.
type Log struct {
	Segment Size `yaml:"segment"` // bytes of a segment file
	Soft    Size `yaml:"soft"`    // log size from which the oldest batches are cut early
	Max     Size `yaml:"max"`     // log size from which requests are refused; 0: only the disk's fill decides
	// DiskFull is the share of the disk in percent from which requests are refused.
	DiskFull int `yaml:"disk-full"`
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

			Announce: "required",
		},
		Flush: Flush{
			Size:   32 << 20,
			Age:    Duration(time.Minute),
			Min:    1 << 20,
			MaxAge: Duration(5 * time.Minute),
		},
		Limits: Limits{InFlight: 256 << 20},
		Log:    Log{Segment: 64 << 20, Soft: 4 << 30, DiskFull: 85},
		NATS:   defaultNATS(),
		Tail:   defaultTail(),

		Retention: defaultRetention(),
	}
}

// Load reads the file at path over the defaults. A key it does not know is an
// error that names the line.
func Load(path string) (Config, error) {
	c := Default()
	if path == "" {
		return c, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("read configuration: %w", err)
	}
	if err := c.decode(text); err != nil {
		return c, fmt.Errorf("configuration %s: %w", path, err)
	}
	return c, nil
}

func (c *Config) decode(text []byte) error {
	next := *c
	err := yaml.NewDecoder(bytes.NewReader(text), yaml.DisallowUnknownField()).Decode(&next)
	// A file of comments alone decodes as null, which clears the struct.
	if errors.Is(err, io.EOF) || reflect.ValueOf(next).IsZero() {
		return nil
	}
	if err != nil {
		return errors.New(strings.TrimSpace(yaml.FormatError(err, false, true)))
	}
	*c = next
	return nil
}

// YAML is the configuration as a file that Load would read back. It holds no
// secrets: those of a store come from the environment alone, and user, password or
// token of a URL are left out.
func (c Config) YAML() ([]byte, error) {
	c.NATS = c.NATS.redacted()
	return yaml.Marshal(c)
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
	digits := host[strings.LastIndexByte(host, '-')+1:]
	if len(digits) < len(host) && len(digits) > 0 && len(digits) <= 6 {
		if n, err := strconv.Atoi(digits); err == nil && n >= 0 {
			return n % 99, true
		}
	}
	return 0, false
}

func isPort(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= 0 && n <= 65535
}

// Validate returns every mistake in the configuration at once. Each line names the
// key, the value and the fix.
func (c Config) Validate() error {
	var errs []error
	bad := func(key string, value any, want string) {
		errs = append(errs, fmt.Errorf("%s: %v: %s", key, value, want))
	}
	if c.Store == (openstore.Spec{}) {
		bad("store", `""`, "want dir:PATH or azure:[ACCOUNT/]CONTAINER")
	}
	for _, a := range []struct{ key, value string }{{"ingest.listen", c.Ingest.Listen}, {"ingest.admin", c.Ingest.Admin}} {
		if _, port, err := net.SplitHostPort(a.value); err != nil || !isPort(port) {
			bad(a.key, strconv.Quote(a.value), "want host:port, for example 127.0.0.1:8514")
		}
	}
	if n, err := strconv.Atoi(c.Ingest.Lane); c.Ingest.Lane != "auto" && (err != nil || n < 0 || n > 98) {
		bad("ingest.lane", strconv.Quote(c.Ingest.Lane), "want auto or 0 to 98")
	}
	if p := time.Duration(c.Ingest.Period); p < time.Minute || p > time.Hour || time.Hour%p != 0 || p%time.Minute != 0 {
		bad("ingest.period", c.Ingest.Period, "want a whole number of minutes that divides 60: 1m, 5m, 10m, 15m, 30m, 1h")
	}
	if !slices.Contains([]string{"body", "key", "off"}, c.Ingest.Dedupe) {
		bad("ingest.dedupe", strconv.Quote(c.Ingest.Dedupe), "want body, key or off")
	}
	if !slices.Contains([]string{"required", "best-effort"}, c.Ingest.Announce) {
		bad("ingest.announce", strconv.Quote(c.Ingest.Announce), "want required or best-effort")
	}
	for _, a := range []struct{ key, value string }{{"live", c.Live}, {"ingest.advertise", c.Ingest.Advertise}} {
		if u, err := url.Parse(a.value); a.value != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil) {
			bad(a.key, strconv.Quote(a.value), "want a URL without a name or password, for example http://10.0.0.5:8514")
		}
	}
	positive := func(key string, n int64, shown any) {
		if n <= 0 {
			bad(key, shown, "want more than nothing")
		}
	}
	positive("ingest.grace", int64(c.Ingest.Grace), c.Ingest.Grace)
	positive("flush.size", int64(c.Flush.Size), c.Flush.Size)
	positive("flush.age", int64(c.Flush.Age), c.Flush.Age)
	positive("flush.max-age", int64(c.Flush.MaxAge), c.Flush.MaxAge)
	if c.Flush.Size > 1<<30 {
		bad("flush.size", c.Flush.Size, "want at most 1GiB: a batch is sorted in memory")
	}
	if c.Limits.InFlight < 128<<20 {
		bad("limits.in-flight", c.Limits.InFlight, "want at least 128MiB: one request may hold 16MiB as sent and 64MiB decompressed")
	}
	c.Log.validate(bad)
	c.NATS.validate(bad)
	c.Tail.validate(bad)
	c.Retention.validate(bad)
	return errors.Join(errs...)
}

func (l Log) validate(bad func(key string, value any, want string)) {
	if l.Segment < 1<<20 || l.Segment > 1<<30 {
		bad("log.segment", l.Segment, "want 1MiB to 1GiB")
	}
	if l.Soft < l.Segment {
		bad("log.soft", l.Soft, "want at least log.segment ("+l.Segment.String()+")")
	}
	if l.Max != 0 && l.Max < l.Soft {
		bad("log.max", l.Max, "want 0 or at least log.soft ("+l.Soft.String()+")")
	}
	if l.DiskFull < 1 || l.DiskFull > 100 {
		bad("log.disk-full", l.DiskFull, "want 1 to 100 (percent)")
	}
}
