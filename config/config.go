// Package config reads blobtail's configuration file: YAML, in sections of
// fewer than ten keys, strict about what it does not know.
//
// Call [Load] with the path of a file ("" for the defaults alone). The commands
// lay environment variables and flags over what it returns; [Config.Validate]
// is then asked once, before anything is opened. The package knows what values
// may be, not what they do: every key is explained in configs/blobtail.yaml.
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

// Config is the whole file.
type Config struct {
	// Store says where blobs and tables are: dir:PATH or azure:[ACCOUNT/]CONTAINER.
	Store openstore.Spec `yaml:"store"`
	// Live is the URL of an ingester, of which logquery asks what is in no blob yet;
	// "" is none, or on a dir store whoever announces itself there.
	Live   string `yaml:"live"`
	Ingest Ingest `yaml:"ingest"`
	Flush  Flush  `yaml:"flush"`
	Limits Limits `yaml:"limits"`
	Log    Log    `yaml:"log"`
	NATS   NATS   `yaml:"nats"`
	Tail   Tail   `yaml:"tail"`
	// Retention is what the command retention deletes by.
	Retention Retention `yaml:"retention"`
}

// Ingest says where the ingester listens and how it names what it writes.
type Ingest struct {
	Listen string   `yaml:"listen"` // host:port of the ingest listener
	Admin  string   `yaml:"admin"`  // host:port of /metrics, /healthz, /readyz, /flush, /drain
	WAL    string   `yaml:"wal"`    // directory of the log; "" is chosen by WALDir
	Lane   string   `yaml:"lane"`   // "auto" or 0 to 98
	Period Duration `yaml:"period"` // slice of event time in a blob's name
	Dedupe string   `yaml:"dedupe"` // body, key, off
	Grace  Duration `yaml:"grace"`  // how long a stop may take
	// Advertise is the URL at which other ingesters and readers reach this one; ""
	// is none, or on a dir store the listener's.
	Advertise string `yaml:"advertise"`
	// Announce is "required" or "best-effort": whether records are taken while the
	// store cannot be told that this ingester holds some.
	Announce string `yaml:"announce"`
}

// Flush says when a batch is cut.
type Flush struct {
	Size   Size     `yaml:"size"`    // bytes of lines that make a batch at once
	Age    Duration `yaml:"age"`     // after which a batch of at least Min is cut
	Min    Size     `yaml:"min"`     // bytes of lines
	MaxAge Duration `yaml:"max-age"` // after which any batch is cut
}

// Limits bounds what requests may hold.
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
// secrets: those of a store come from the environment alone, and what a URL has in
// front of the host is left out.
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

// LaneNumber is the lane that the configuration and the host's name give: the
// configured number, else the ordinal at the end of host (web-3 is 3, as in a
// StatefulSet). ok is false when neither does, and a free one is to be found. Lane
// 99 belongs to the compactor.
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
	if c.Log.Segment < 1<<20 || c.Log.Segment > 1<<30 {
		bad("log.segment", c.Log.Segment, "want 1MiB to 1GiB")
	}
	if c.Log.Soft < c.Log.Segment {
		bad("log.soft", c.Log.Soft, "want at least log.segment ("+c.Log.Segment.String()+")")
	}
	if c.Log.Max != 0 && c.Log.Max < c.Log.Soft {
		bad("log.max", c.Log.Max, "want 0 or at least log.soft ("+c.Log.Soft.String()+")")
	}
	if c.Log.DiskFull < 1 || c.Log.DiskFull > 100 {
		bad("log.disk-full", c.Log.DiskFull, "want 1 to 100 (percent)")
	}
	c.NATS.validate(bad)
	c.Tail.validate(bad)
	c.Retention.validate(bad)
	return errors.Join(errs...)
}
