package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"blobtail/internal/config"
)

func load(t *testing.T, text string) (config.Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "blobtail.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Load(path)
}

func TestDefaultsAreValidAndReadBack(t *testing.T) {
	c := config.Default()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	back, err := load(t, string(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if !reflect.DeepEqual(back, c) {
		t.Fatalf("read back %+v\nwant %+v\nfrom\n%s", back, c, text)
	}
}

// Users copy the example: it must load, be valid, and name every key with the default
// that it documents.
func TestExampleFile(t *testing.T) {
	c, err := config.Load("../../configs/blobtail.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(c, config.Default()) {
		t.Errorf("configs/blobtail.yaml gives %+v\nthe defaults are %+v", c, config.Default())
	}
	text, _ := os.ReadFile("../../configs/blobtail.yaml")
	own, _ := config.Default().YAML()
	for line := range strings.Lines(string(own)) {
		key, _, named := strings.Cut(strings.TrimSpace(line), ":")
		if named && !strings.Contains(string(text), key+":") {
			t.Errorf("configs/blobtail.yaml does not explain %s", key)
		}
	}
}

func TestMistakesAreNamed(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"unknown key", "ingest:\n  listn: :1\n", "listn"},
		{"unknown section", "ingst: {}\n", "ingst"},
		{"no unit", "flush:\n  age: 60\n", "duration"},
		{"no level", "ingest:\n  ack: sure\n", `line 2: ingest.ack: "sure": want disk, shipped or stored`},
		{"no level of a service", "ingest: {acks: {web: sure}}", `line 1: ingest.acks.web: "sure": want disk, shipped or stored`},
		{"no services with levels", "ingest: {acks: stored}", "line 1: ingest.acks: want names with their values"},
		{"bad size", "flush:\n  size: big\n", "size"},
		{"not yaml", "store: [\n", "store"},
		{"age without a unit", "retention: {default: 30}", "is no age"},
		{"hours for days", "retention: {default: 7h}", "at least 24h"},
		{"no age at all", "retention: {rules: [{service: a, age: 0s}]}", "at least 24h"},
		{"negative age", "retention: {tail: -3d}", "is no age"},
		{"age in words", "retention: {default: forever}", "or keep"},
		{"unknown key of fields", "fields: {tiem: [when]}", `line 1: there is no key fields.tiem; did you mean "time"?`},
		{"unknown key in a list of fields", "fields:\n  - {time: [a]}\n  - {msg: [when]}", "line 3: there is no key fields[1].msg; fields[1] may have services, time, level, message, service"},
		{"one name for a list", "fields: {time: when}", "line 1: fields.time: want a list"},
		{"no section of fields", "fields: when", "line 1: fields: want a list"},
		{"unknown key of a rule", "retention: {rules: [{service: a, days: 3d}]}", "days"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := load(t, tc.text)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want something about %q", err, tc.want)
			}
		})
	}
	for _, tc := range []struct{ name, text, want string }{
		{"an empty attribute", `otlp: {service-from: [k8s.pod.name, ""]}`, `otlp.service-from: "": want attributes`},
		{"service.name is tried first anyway", "otlp: {service-from: [service.name]}", "behind service.name"},
		{"listen", "ingest: {listen: ':x'}", "ingest.listen"},
		{"admin", "ingest: {admin: localhost}", "ingest.admin"},
		{"period", "ingest: {period: 7m}", "ingest.period"},
		{"lane", "ingest: {lane: '99'}", "ingest.lane"},
		{"advertised without a scheme", "ingest: {advertise: '10.0.0.5:8514'}", "ingest.advertise"},
		{"advertised with a password", "ingest: {advertise: 'http://a:b@10.0.0.5'}", "ingest.advertise"},
		{"advertised with a query", "ingest: {advertise: 'http://h:1?s3cret'}", `ingest.advertise: "http://h:1?...": want a URL without`},
		{"live with a password", "live: 'http://a:s3cret@10.0.0.5'", `live: "http://...": want a URL without a name, a password or a query, for example http://10.0.0.5:8514`},
		{"live with a password alone", "live: 'a:s3cret@10.0.0.5'", `live: "...": want`},
		{"live with a fragment", "live: 'http://h#s3cret'", `live: "http://h#...": want`},
		{"waiters of an hour", "flush: {stored-every: 1h}", "flush.stored-every: 1h: want 1s to 1m"},
		{"waiters of no time", "flush: {stored-every: 0s}", "flush.stored-every: 0s: want 1s to 1m"},
		{"no patience for the next object", "ship: {every: 10s}", "ship.wait: 10s: want 1s to 5m, and at least twice ship.every"},
		{"acks of no service", "ingest: {acks: {'Pay*': stored}}", `ingest.acks: "Pay*": want a name or a glob`},
		{"dedupe", "ingest: {dedupe: maybe}", "ingest.dedupe"},
		{"time-near", "time-near: maybe", `time-near: "maybe": want on or off`},
		{"nats url", "nats: {url: 'http://x'}", "nats.url"},
		{"nats stream", "nats: {url: x, stream: a.b}", "nats.stream"},
		{"nats consumer", "nats: {url: x, consumer: ''}", "nats.consumer"},
		{"nats ack-wait", "nats: {url: x, ack-wait: 10ms}", "nats.ack-wait"},
		{"nats partitions", "nats: {url: x, partitions: ['3-1']}", `nats.partitions: "3-1": want numbers and ranges`},
		{"nats partition below 0", "nats: {url: x, partitions: [-1]}", "nats.partitions"},
		{"nats partition beyond all", "nats: {url: x, partitions: [10000]}", "nats.partitions"},
		{"nats partitions of no ingesters", "nats: {url: x, partitions: [auto/0]}", "nats.partitions"},
		{"nats partitions beside auto", "nats: {url: x, partitions: [auto/3, 4]}", "want no other partitions beside auto"},
		{"too many nats partitions", "nats: {url: x, partitions: [0-299]}", "nats.partitions: 300: want at most 256"},
		{"nats cert", "nats: {url: x, cert: a.pem}", "nats.cert"},
		{"syslog listen", "syslog: {listen: '6514'}", "for example 127.0.0.1:6514"},
		{"syslog for everybody", "syslog: {listen: '0.0.0.0:6514'}", "syslog.listen: \"0.0.0.0:6514\": want syslog.allow"},
		{"syslog on all addresses", "syslog: {listen: ':6514'}", "want syslog.allow"},
		{"syslog allow", "syslog: {listen: ':6514', allow: [10.0.0.0/33]}", "syslog.allow: \"10.0.0.0/33\""},
		{"syslog service", "syslog: {listen: 'localhost:6514', service: Net Gear}", "want a name such as net-gear"},
		{"syslog services", "syslog: {listen: 'localhost:6514', services: ['[a']}", "syslog.services"},
		{"syslog service and services", "syslog: {listen: 'localhost:6514', service: a, services: [b]}", "syslog.service gives all records one"},
		{"syslog zone", "syslog: {listen: 'localhost:6514', zone: Mars}", "syslog.zone"},
		{"syslog connections", "syslog: {listen: 'localhost:6514', max-connections: 0}", "syslog.max-connections"},
		{"syslog cert", "syslog: {listen: 'localhost:6514', cert: a.pem}", "syslog.cert"},
		{"syslog client-ca", "syslog: {listen: ':6514', client-ca: a.pem}", "syslog.client-ca"},
		{"tail prefix", "tail: {prefix: tail-1}", "tail.prefix"},
		{"glob of a first part", "azurelogs: {ignore: ['a[']}", `azurelogs.ignore: "a[": want the first part of keys`},
		{"tail shards", "tail: {shards: 17}", "tail.shards"},
		{"no tail shards", "tail: {shards: 0}", "tail.shards"},
		{"fields without names", "fields: {services: [web]}", "fields: nothing: want names for time, level, message or service"},
		{"empty name of a field", "fields: {time: [when, '']}", `fields.time: "": want names of fields`},
		{"name with spaces around it", "fields: {time: [' when']}", `fields.time: " when": want names of fields, without spaces`},
		{"name twice", "fields: {level: [prio, Prio]}", `fields.level: "Prio": want each name once`},
		{"long name", "fields: {level: [" + strings.Repeat("x", 256) + "]}", "want names of at most 255 bytes"},
		{"many names", "fields: {level: [" + strings.Join(strings.Split(strings.Repeat("a", 33), ""), "1, b") + "]}", "at most 32 names"},
		{"fields of bad services", "fields: {services: ['Web', '[a'], time: [when]}", `fields.services: "Web": want a name or a glob`},
		{"service for services", "fields: {services: [web], service: [team]}", "fields.service: team: want no services beside it"},
		{"fields behind all", "fields: [{time: [a], level: [b]}, {services: [web], time: [c]}]", "fields[1]: c: the names never count, because fields[0] is before them"},
		{"fields behind a glob", "fields: [{services: ['w*', api], time: [a]}, {services: [web, api], time: [c]}]", "fields[1]: c: the names never count"},
		{"rule without age", "retention: {rules: [{service: a}]}", "retention.rules[0].age"},
		{"rule without service", "retention: {rules: [{service: a, age: 3d}, {age: keep}]}", "retention.rules[1].service"},
		{"rule that no service matches", "retention: {rules: [{service: 'Audit-*', age: keep}]}", "retention.rules[0].service"},
		{"rule with a prefix", "retention: {rules: [{service: 'audit/', age: keep}]}", "retention.rules[0].service"},
		{"bad glob", "retention: {rules: [{service: '[a', age: keep}]}", "retention.rules[0].service"},
		{"no age of the tail", "retention: {tail: ''}", "retention.tail"},
		{"in flight", "limits: {in-flight: 1MiB}", "limits.in-flight"},
		{"listen at a port", "ingest: {listen: '9000'}", "for example 127.0.0.1:9000"},
		{"admin without a port", "ingest: {admin: localhost}", "for example 127.0.0.1:8515"},
		{"what was advertised", "ingest: {advertise: '10.0.0.4:8514'}", "for example http://10.0.0.4:8514"},
		{"a blob of each record", "flush: {size: 1}", "flush.size: 1B: want at least 64KiB, for example 32MiB"},
		{"min over size", "flush: {size: 1MiB, min: 4MiB}", "flush.min: 4MiB: want at most flush.size (1MiB)"},
		{"rule behind all", "retention: {rules: [{service: '*', age: 4d}, {service: web, age: keep}]}",
			`retention.rules[1].service: "web": the rule never counts, because rules[0] ("*") is before it`},
		{"rule twice", "retention: {rules: [{service: web, age: 4d}, {service: api, age: 4d}, {service: web, age: keep}]}", "rules[2].service"},
		{"rule behind a glob", "retention: {rules: [{service: 'we?', age: 4d}, {service: web, age: keep}]}", "rules[1].service"},
		{"counter without a name", "counters: [{service: a}]", "counters[0].name"},
		{"counter with a name for a metric", "counters: [{name: 'http:errors', service: a}]", `counters[0].name: "http:errors": want a name of its own`},
		{"counter twice", "counters: [{name: a, service: a}, {name: a, service: b}]", `counters[1].name: "a"`},
		{"counter of everything", "counters: [{name: a}]", "counters[0]: a: want service, where, or both"},
		{"counter of no service", "counters: [{name: a, service: Web}]", `counters[0].service: "Web"`},
		{"record rule without a name", "rules: [{service: a, drop: true}]", "rules[0].name"},
		{"record rule without a service", "rules: [{name: a, drop: true}]", "rules[0].service"},
		{"record rule that does nothing", "rules: [{name: a, service: a}]", "rules[0]: a: want one of drop: true, sample and mask"},
		{"record rule that does two things", "rules: [{name: a, service: a, drop: true, sample: 0.5}]", "rules[0]: a: want one of"},
		{"sample of all", "rules: [{name: a, service: a, sample: 1}]", "rules[0].sample: 1: want the share to keep"},
		{"sample of less than nothing", "rules: [{name: a, service: a, sample: -0.1}]", "rules[0].sample"},
		{"mask of nothing", "rules: [{name: a, service: a, mask: [{kind: card}, {with: x}]}]", "rules[0].mask[1]: nothing: want field, kind or pattern"},
		{"mask of two kinds", "rules: [{name: a, service: a, mask: [{kind: card, pattern: x}]}]", "rules[0].mask[0].kind"},
		{"mask of the time", "rules: [{name: a, service: a, mask: [{field: ts}]}]", "rules[0].mask[0].field"},
		{"mask of a glob", "rules: [{name: a, service: a, mask: [{field: 'a[0]'}]}]", "rules[0].mask[0].field"},
		{"record rule behind a drop", "rules: [{name: all, service: 'web*', drop: true}, {name: late, service: web-1, sample: 0.5}]",
			"rules[1]: late: the rule never counts, because rules[0] (all) is before it and drops the same records; put it before that"},
		{"record rule behind the same condition", "rules: [{name: a, service: '*', where: x == 1, drop: true}, {name: b, service: web, where: x == 1, mask: [{kind: jwt}]}]", "rules[1]: b: the rule never counts"},
		{"glob behind a glob", "retention: {rules: [{service: 'web*', age: 4d}, {service: 'web-*-db', age: keep}]}", "rules[1].service"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := load(t, tc.text)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want something about %q", err, tc.want)
			}
		})
	}
}

// A rule may be behind one that leaves something to it, and a size may be lower than the
// default of min.
func TestNoMistakes(t *testing.T) {
	for _, text := range []string{
		"retention: {rules: [{service: '*', age: 4d}, {service: _rejected, age: keep}, {service: '_*', age: 3d}]}",
		"retention: {rules: [{service: 'web-*', age: 4d}, {service: 'web*', age: keep}, {service: '*', age: 3d}]}",
		"retention: {rules: [{service: '[a-c]*', age: 4d}, {service: 'a*', age: keep}]}",
		"flush: {size: 64KiB}",
		"rules: [{name: a, service: '*', sample: 0.5}, {name: b, service: web, drop: true}, {name: c, service: _rejected, drop: true}, {name: d, service: 'w*', where: x == 1, drop: true}, {name: e, service: 'web-*', drop: true}]",
		"counters: [{name: a, service: _rejected}, {name: b, where: status >= 500}]",
	} {
		c, err := load(t, text)
		if err == nil {
			err = c.Validate()
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A mistake in the file is answered in one line that names the line, the key and the fix.
func TestExplained(t *testing.T) {
	for text, want := range map[string]string{
		"ingest:\n  lisen: x\n":                       `line 2: there is no key ingest.lisen; did you mean "listen"?`,
		"ingest:\n  maxAge: 1h\n":                     `line 2: there is no key ingest.maxAge; ingest may have listen, admin, wal, lane, period, dedupe, grace, advertise, announce, ack, acks`,
		"flush: {maxAge: 1h}":                         `line 1: there is no key flush.maxAge; did you mean "max-age"?`,
		"flush: {max_age: 1h}":                        `line 1: there is no key flush.max_age; did you mean "max-age"?`,
		"listen: x":                                   `line 1: there is no key listen; there is ingest.listen and syslog.listen`,
		"flush-size: 1MiB":                            `line 1: there is no key flush-size; there is flush.size`,
		"retention:\n  age: 3d":                       `line 2: there is no key retention.age; there is flush.age and retention.rules[].age`,
		"retention: {rules: [{service: a, aeg: 3d}]}": `line 1: there is no key retention.rules[0].aeg; did you mean "age"?`,
		"flush:\n  size: 1MiB\n  age: 60\n":           `line 3: flush.age: "60" is no duration; want a number and a unit, for example 90s, 15m, 12h, 3d or 1d12h`,
		"ingest: {lane: [1]}":                         "line 1: ingest.lane: want one value",
		"nats: nats://me:s3cret@x":                    "line 1: nats: want the keys url, stream, consumer, allow-lossy, partitions, ack-wait, credentials, ca, cert, key",
		"log: {disk-full: many}":                      "line 1: log.disk-full: want a whole number",
		"tail: {enabled: maybe}":                      "line 1: tail.enabled: want true or false",
		"retention: {rules: 3}":                       "line 1: retention.rules: want a list",
		"store: dir:x\n---\nlive: off\n":              "there is a line --- with more behind it; want one document",
		"rules: [{sample: many}]":                     "line 1: rules[0].sample: want a number",
		"rules: [{mask: card}]":                       "line 1: rules[0].mask: want a list",
		"rules: [{mask: [{regex: x}]}]":               `line 1: there is no key rules[0].mask[0].regex; rules[0].mask[0] may have field, kind, pattern, with`,
		"counters: [{name: a, wehre: x}]":             `line 1: there is no key counters[0].wehre; did you mean "where"?`,
		"store:\n  dir: x":                            "line 2: store: want one value",
		"words":                                       "line 1: want the keys store, live, workers, ingest, access, tls, flush, limits, log, ship, nats, syslog, tail, retention, close, protocols, azurelogs, otlp, fields, forms, time-near, counters, rules",
		"# a key\nnats: {url: '${NATS_URL}'}":         "nats.url: ${NATS_URL} stays as it is in this file; set BLOBTAIL_NATS instead",
	} {
		_, err := load(t, text)
		if err == nil {
			t.Errorf("%q is taken", text)
			continue
		}
		if _, got, _ := strings.Cut(err.Error(), ".yaml: "); got != want {
			t.Errorf("%q:\n%s\nwant\n%s", text, got, want)
		}
	}
	if _, err := load(t, "store: dir:x\n\tingest: {}\n"); err == nil || !strings.Contains(err.Error(), "line 2 has a tab; indent with blanks, since YAML takes no tabs there\n") {
		t.Error(err)
	}
}

// A file that does not exist is named with its directory, and with the file that was
// probably meant.
func TestNoFile(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	_, err = config.Load("blobtail.yml")
	if want := "configuration " + here + "/blobtail.yml: there is no such file; correct --config or BLOBTAIL_CONFIG, or leave it out for the defaults"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if err := os.WriteFile("blobtail.yaml", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = config.Load("blobtail.yml"); err == nil || !strings.HasSuffix(err.Error(), "; there is blobtail.yaml") {
		t.Error(err)
	}
}

func TestEmptyFileIsTheDefaults(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n# nothing\n---\n"} {
		c, err := load(t, text)
		if err != nil || !reflect.DeepEqual(c, config.Default()) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A section that names one key keeps the defaults of the others.
func TestPartialSection(t *testing.T) {
	c, err := load(t, "flush: {age: 5s}\n")
	want := config.Default()
	want.Flush.Age = config.Duration(5 * time.Second)
	if err != nil || !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v (%v)\nwant %+v", c, err, want)
	}
}

func TestLaneNumber(t *testing.T) {
	for _, tc := range []struct {
		lane, host string
		want       int
		settled    bool
	}{
		{"auto", "blobtail-3", 3, true}, {"auto", "web", 0, false}, {"auto", "7", 0, false}, {"auto", "a-99", 0, true},
		{"auto", "a-100", 1, true}, {"auto", "ip-10-0-0-12", 12, true}, {"5", "blobtail-3", 5, true}, {"auto", "x-", 0, false},
		{"0", "web", 0, true},
	} {
		c := config.Default()
		c.Ingest.Lane = tc.lane
		if got, ok := c.LaneNumber(tc.host); got != tc.want || ok != tc.settled {
			t.Errorf("lane %s on %s: %d, %v; want %d, %v", tc.lane, tc.host, got, ok, tc.want, tc.settled)
		}
	}
}

func TestUnits(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "1d12h": 36 * time.Hour, "2w": 14 * 24 * time.Hour, "1h30m": 90 * time.Minute, "1.5d": 36 * time.Hour, "0": 0,
	} {
		if got, err := config.ParseDuration(text); err != nil || got != want {
			t.Errorf("%s: %v %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "7", "-1h", "1x", "h", "1d-2h", "99999999w"} {
		if got, err := config.ParseDuration(text); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
	for text, want := range map[string]config.Size{"32MiB": 32 << 20, "1GB": 1e9, "512": 512, "1.5KiB": 1536, "0B": 0} {
		var got config.Size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%s: %v %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "-1MiB", "MiB", "NaN"} {
		var got config.Size
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
}

func TestRetention(t *testing.T) {
	c, err := load(t, "retention:\n  default: 30d\n  rules:\n    - {service: 'audit-*', age: keep}\n    - {service: _rejected, age: 1.5d}\n")
	want := config.Default()
	want.Retention.Default = config.Age(30 * 24 * time.Hour)
	want.Retention.Rules = []config.Rule{{Service: "audit-*", Age: config.Keep}, {Service: "_rejected", Age: config.Age(36 * time.Hour)}}
	if err == nil {
		err = c.Validate()
	}
	if err != nil || !reflect.DeepEqual(c, want) {
		t.Fatalf("got %+v (%v)\nwant %+v", c.Retention, err, want.Retention)
	}
	text, err := c.YAML()
	if err != nil || !strings.Contains(string(text), "default: 30d") || !strings.Contains(string(text), "age: keep") {
		t.Fatalf("%s (%v)", text, err)
	}
	if back, err := load(t, string(text)); err != nil || !reflect.DeepEqual(back, c) {
		t.Errorf("read back %+v (%v)\nfrom %s", back.Retention, err, text)
	}
}

// A dollar is a dollar, and a variable is refused with the setting to use instead.
func TestDollar(t *testing.T) {
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	c, err := config.Load(write("store: 'dir:./a$$b$c'\nnats: {url: 'nats://u:pa$$word@127.0.0.1:4222'}\n"))
	if err != nil || c.Store.String() != "dir:./a$$b$c" || string(c.NATS.URL) != "nats://u:pa$$word@127.0.0.1:4222" {
		t.Errorf("%+v, %v", c, err)
	}
	for text, want := range map[string]string{
		"nats: {url: '${NATS_URL}'}":        "nats.url: ${NATS_URL} stays as it is in this file; set BLOBTAIL_NATS instead",
		"store: 'dir:${HOME}/logs'":         "store: ${HOME} stays as it is in this file; set BLOBTAIL_STORE instead",
		"live: 'http://${HOST}:8514'":       "live: ${HOST} stays as it is in this file",
		"ingest: {wal: '/var/${NAME}/wal'}": "ingest.wal: ${NAME} stays as it is in this file; set BLOBTAIL_WAL instead",
	} {
		if _, err := config.Load(write(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// An operator has to name the senders of syslog beyond loopback, and may name everybody.
func TestSyslog(t *testing.T) {
	for _, text := range []string{
		"syslog: {listen: '127.0.0.1:6514'}",
		"syslog: {listen: '[::1]:6514'}",
		"syslog: {listen: ':6514', allow: [10.0.0.0/8, 192.0.2.7, 'fd00::/8']}",
		"syslog: {listen: ':6514', allow: [0.0.0.0/0, '::/0'], zone: Europe/Berlin}",
		"syslog: {listen: ':6514', cert: a, key: b, client-ca: c, services: ['web-*']}",
		"syslog: {allow: [nonsense]}", // it is not used
	} {
		c, err := load(t, text)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	s := config.Syslog{Allow: []string{"10.1.2.3/8", "192.0.2.7"}}
	got, err := s.Networks()
	if err != nil || len(got) != 2 || got[0].String() != "10.0.0.0/8" || got[1].String() != "192.0.2.7/32" {
		t.Errorf("networks %v, %v", got, err)
	}
}

// The partitions of a stream are numbers and ranges, in any order, or a number of ingesters.
func TestPartitions(t *testing.T) {
	for text, want := range map[string]string{
		"[]": "[] 0", "[3]": "[3] 0", "[7, 0-4, '3']": "[0 1 2 3 4 7] 0", "[9999]": "[9999] 0", "[auto/20]": "[] 20",
	} {
		c, err := load(t, "nats: {url: 'nats://x', partitions: "+text+"}")
		if err == nil {
			err = c.Validate()
		}
		numbers, ingesters := c.NATS.Taken()
		if got := fmt.Sprint(numbers, ingesters); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
	for host, want := range map[string]int{"ingest-3": 3, "blobtail-ingest-12": 12, "web": -1, "web3": -1, "a-1.b": -1} {
		if n, ok := config.Ordinal(host); ok != (want >= 0) || ok && n != want {
			t.Errorf("%s: %d, %v", host, n, ok)
		}
	}
}
