package natssource_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/zeebo/xxh3"

	"blobtail/internal/dev/testkit"
	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/record/origin"
	"blobtail/source/natssource"
)

// A line is a canonical line as readers parse it.
type line struct {
	Ts, Level, Service, Msg, Reason, Source string
	Bytes                                   int
	Original                                string `json:"service.name"`
}

func linesOf(t testing.TB, r *record.Request) []line {
	t.Helper()
	var all []line
	for _, l := range r.Lines {
		var parsed line
		if err := json.Unmarshal(r.Data[l.Off:l.Off+l.Len], &parsed); err != nil {
			t.Fatalf("%v: %s", err, r.Data[l.Off:l.Off+l.Len])
		}
		if parsed.Service != r.Services[l.Service] {
			t.Errorf("service %q in the table of %s", r.Services[l.Service], r.Data[l.Off:l.Off+l.Len])
		}
		all = append(all, parsed)
	}
	return all
}

func zip(t testing.TB, s string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const ct, ce = "Content-Type", "Content-Encoding"

// Possible contents of a message, and the resulting lines.
func TestBodies(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	m := &memory{}
	e.run(m)
	for i, tt := range []struct {
		name, subject, data string
		header              []string
		want                string // service: msg, of all lines; ! marks rejected ones
	}{
		{"one object", "logs.web", `{"msg":"a"}`, nil, "web: a"},
		{"lines", "logs.web", "{\"msg\":\"a\"}\n{\"msg\":\"b\"}\n", nil, "web: a, web: b"},
		{"array", "logs.web", `[{"msg":"a"},{"msg":"b"}]`, []string{ct, "application/json"}, "web: a, web: b"},
		{"text", "logs.web", "a\nb", []string{ct, "text/plain"}, "web: a, web: b"},
		{"half a surrogate pair", "logs.web", `{"msg":"cut \uD83D"}`, nil, `web: cut \ud83d`},
		{"gzip", "logs.web", zip(t, `{"msg":"a"}`), []string{ce, "gzip"}, "web: a"},
		{"further tokens", "logs.web.host-7.x", `{"msg":"a"}`, nil, "web: a"},
		{"folded", "logs.Web_Front", `{"msg":"a"}`, nil, "web_front: a"},
		{"header", "logs.x", `{"msg":"a"}`, []string{"Blobtail-Service", "Com.Example.Web"}, "com.example.web: a"},
		{"own service", "logs.web", `{"msg":"a","service":"api"}`, nil, "web(api): a"},
		{"one bad line", "logs.web", "{\"msg\":\"a\"}\nx\n", []string{ct, "application/x-ndjson"}, "web: a, !x"},
		{"nothing but bad lines", "logs.web", "x\ny\n", []string{ct, "application/x-ndjson"}, "!x, !y"},
		{"binary", "logs.web", "\x00\xff", nil, `web: ` + "\x00" + `\xff`},
		{"bad gzip", "logs.web", "no gzip", []string{ce, "gzip"}, "!no gzip"},
		{"cut gzip", "logs.web", zip(t, strings.Repeat("{\"msg\":\"a\"}\n", 99))[:40], []string{ce, "gzip"}, "!raw"},
		{"gzip that does not say so", "logs.web", zip(t, "{}"), nil, "!raw"},
		{"bomb", "logs.web", zip(t, strings.Repeat("\n", 20<<20)), []string{ce, "gzip"}, "!raw"},
		{"UTF-16", "logs.web", "\xff\xfea\x00", nil, "!\\xff\\xfea\x00"},
		{"UTF-16 in gzip", "logs.web", zip(t, "\xfe\xff\x00a"), []string{ce, "gzip", ct, "application/json"}, "!raw"},
		{"unknown type", "logs.web", `<a/>`, []string{ct, "application/xml"}, "!<a/>"},
		{"unknown encoding", "logs.web", `{}`, []string{ce, "br"}, "!{}"},
		{"two encodings", "logs.web", `{}`, []string{ce, "gzip", ce, "gzip"}, "!{}"},
	} {
		e.publish(tt.subject, tt.data, tt.header...)
		r := m.await(t, i+1)[i]
		var got []string
		for _, l := range linesOf(t, &r) {
			text := l.Service
			if l.Original != "" && l.Service != record.RejectedService {
				text += "(" + l.Original + ")"
			}
			text += ": " + l.Msg
			if l.Service == record.RejectedService {
				text = "!" + l.Msg
				if l.Reason == "" || l.Source != "nats "+tt.subject || l.Original == "" {
					t.Errorf("%s: %+v", tt.name, l)
				}
				if tt.want == "!raw" {
					if text = "!raw"; l.Bytes != len(tt.data) {
						t.Errorf("%s: %d bytes of %d", tt.name, l.Bytes, len(tt.data))
					}
				}
			}
			got = append(got, text)
		}
		if s := strings.Join(got, ", "); s != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, s, tt.want)
		}
		e.source.Stored(r.Reply)
	}
	e.left(0)
}

// The names of the configuration count for the service of a subject.
func TestFields(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	m := &memory{}
	e.run(m, func(o *natssource.Options) {
		o.Fields = meaning.NewMapping([]meaning.Naming{
			{Services: []string{"web"}, Names: meaning.Names{Message: []string{"words"}}},
			{Names: meaning.Names{Time: []string{"when"}, Level: []string{"prio"}}},
		})
	})
	e.publish("logs.web", `{"when":"2026-11-20T10:00:00Z","prio":"E","words":"a","msg":"b"}`)
	e.publish("logs.api", `{"when":"2026-11-20T10:00:00Z","prio":"E","words":"a","msg":"b"}`)
	requests := m.await(t, 2)
	for i, want := range []line{
		{Ts: "2026-11-20T10:00:00.000000000Z", Level: "error", Service: "web", Msg: "a"},
		{Ts: "2026-11-20T10:00:00.000000000Z", Level: "error", Service: "api", Msg: "b"},
	} {
		if got := linesOf(t, &requests[i]); len(got) != 1 || got[0] != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// An empty message is acknowledged without being passed on.
func TestEmptyMessage(t *testing.T) {
	e := newEnv(t)
	m := &memory{}
	e.run(m)
	e.publish("logs.web", "")
	e.publish("logs.web", "\n\r\n")
	e.left(0)
	if m.calls != 0 {
		t.Errorf("%d calls", m.calls)
	}
}

// A large message that cannot be read keeps its first 256 KiB.
func TestLargePoison(t *testing.T) {
	e := newEnv(t)
	m := &memory{}
	e.run(m)
	e.publish("logs.web", strings.Repeat("x", 900<<10), "Content-Encoding", "zstd")
	r := m.await(t, 1)[0]
	l := linesOf(t, &r)
	if len(l) != 1 || len(l[0].Msg) != record.MaxRejected || l[0].Bytes != 900<<10 {
		t.Errorf("%d lines, the first of %d bytes, said to have had %d", len(l), len(l[0].Msg), l[0].Bytes)
	}
}

// Identities and times are functions of the message and its stream alone.
func TestIdentity(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	m := &memory{}
	e.run(m)
	stream, err := e.js.Stream(t.Context(), "LOGS")
	if err != nil {
		t.Fatal(err)
	}
	created := stream.CachedInfo().Created
	const own = "2026-11-20T10:00:00.000000001Z"
	at, _ := time.Parse(time.RFC3339Nano, own)
	sum := func(subject, body string) uint64 { return xxh3.HashString(subject + "\x00" + body) }
	for i, tt := range []struct {
		name, key, data string
		encoding        string
		want            func(seq uint64) record.Origin
		sum             uint64
		time            func(published time.Time) time.Time
	}{
		{name: "none", data: `{"msg":"a"}`,
			want: func(seq uint64) record.Origin { return origin.OfStream(created, "LOGS", seq) }},
		{name: "own times alone make none", data: `{"msg":"a","ts":"` + own + `"}`,
			want: func(seq uint64) record.Origin { return origin.OfStream(created, "LOGS", seq) },
			time: func(time.Time) time.Time { return at }},
		{name: "key without time", key: "k-1", data: `{"msg":"a"}`, sum: sum("logs.web", `{"msg":"a"}`),
			want: func(uint64) record.Origin { return origin.OfKey("", "k-1", 0, 0, false) }},
		{name: "key and own time", key: "k-2", data: "{\"msg\":\"a\"}\n{\"ts\":\"" + own + "\"}", sum: sum("logs.web", "{\"msg\":\"a\"}\n{\"ts\":\""+own+"\"}"),
			want: func(uint64) record.Origin { return origin.OfKey("", "k-2", 0, at.UnixNano(), true) }},
		{name: "key with time", key: "0192e4a0-0000-7000-8000-000000000001", data: `{"msg":"a"}`, sum: sum("logs.web", `{"msg":"a"}`),
			want: func(uint64) record.Origin {
				return origin.OfKey("", "0192e4a0-0000-7000-8000-000000000001", 0, 0, false)
			},
			time: func(time.Time) time.Time { return time.UnixMilli(0x0192e4a00000) }},
		{name: "compressed", key: "k-3", data: zip(t, `{"msg":"a"}`), encoding: "gzip", sum: sum("logs.web", `{"msg":"a"}`),
			want: func(uint64) record.Origin { return origin.OfKey("", "k-3", 0, 0, false) }},
	} {
		header := []string{"Content-Encoding", tt.encoding}
		if tt.key != "" {
			header = append(header, nats.MsgIdHdr, tt.key)
		}
		seq := e.publish("logs.web", tt.data, header...)
		stored, err := stream.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		r := m.await(t, i+1)[i]
		if want := tt.want(seq); r.Origin != want || r.Sum != tt.sum {
			t.Errorf("%s: origin %v sum %x, want %v %x", tt.name, r.Origin, r.Sum, want, tt.sum)
		}
		want := stored.Time
		if tt.time != nil {
			want = tt.time(stored.Time)
		}
		if got := r.Lines[0].Time; got != want.UnixNano() {
			t.Errorf("%s: time %v, want %v", tt.name, time.Unix(0, got).UTC(), want)
		}
	}
}

// The same key for another message: both are kept.
func TestKeyReuse(t *testing.T) {
	t.Parallel()
	// The server itself would remember a key for two minutes. If a stream gets a
	// shorter time later, that may not apply to its present keys.
	e := newEnv(t, func(c *jetstream.StreamConfig) { c.Duplicates = 100 * time.Millisecond })
	s, err := e.js.Stream(t.Context(), "LOGS")
	if err != nil {
		t.Fatal(err)
	}
	m := &memory{}
	e.run(m)
	e.publish("logs.web", `{"msg":"a"}`, nats.MsgIdHdr, "k")
	m.await(t, 1)
	testkit.Until(t, "another message with the key", func() bool {
		msg := nats.NewMsg("logs.web")
		msg.Data = []byte(`{"msg":"b"}`)
		msg.Header.Set(nats.MsgIdHdr, "k")
		ack, err := e.js.PublishMsg(t.Context(), msg)
		return err == nil && !ack.Duplicate
	})
	all := m.await(t, 2)
	if want := origin.OfStream(s.CachedInfo().Created, "LOGS", 2); all[1].Origin != want || all[1].Sum != 0 {
		t.Errorf("origin %v sum %x, want %v 0", all[1].Origin, all[1].Sum, want)
	}
	for _, r := range all {
		e.source.Stored(r.Reply)
	}
	e.left(0)
}

// A message with an earlier key gets the times and the origin of the first one, its
// rejected lines too.
func TestEarlier(t *testing.T) {
	e := newEnv(t)
	then := &record.EarlierError{Origin: origin.OfKey("", "k", 0, 5e9, true), DefaultTime: 1_795_186_860_000_000_001}
	m := &memory{refuse: func(n int) error {
		if n == 1 {
			return fmt.Errorf("the buffer: %w", then)
		}
		return nil
	}}
	e.run(m)
	const own = "2026-11-20T15:01:00.000000007Z"
	e.publish("logs.web", "{\"msg\":\"a\"}\nx\n{\"msg\":\"b\",\"ts\":\""+own+"\"}\n", nats.MsgIdHdr, "k", ct, "application/x-ndjson")
	r := m.await(t, 1)[0]
	if r.Origin != then.Origin || r.DefaultTime != then.DefaultTime || r.Sum == 0 || r.Outcome.Accepted != 2 || r.Outcome.Rejected != 1 {
		t.Errorf("%+v", r)
	}
	got := ""
	for i, l := range linesOf(t, &r) {
		got += fmt.Sprintf("%s %d %s, ", l.Ts, r.Index(uint32(i)), l.Msg)
		if at, ok := record.LineTime(r.Data[r.Lines[i].Off:]); !ok || at != r.Lines[i].Time {
			t.Errorf("line %d is of %d, its record says %d", i, at, r.Lines[i].Time)
		}
	}
	if want := "2026-11-20T15:01:00.000000001Z 0 a, " + own + " 2 b, 2026-11-20T15:01:00.000000001Z 1 x, "; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A time far ahead of the message is none, whenever it is delivered.
func TestFuture(t *testing.T) {
	e := newEnv(t)
	m := &memory{}
	e.run(m)
	e.publish("logs.web", fmt.Sprintf(`{"msg":"a","ts":%q}`, time.Now().Add(25*time.Hour).Format(time.RFC3339)))
	r := m.await(t, 1)[0]
	if l := linesOf(t, &r); l[0].Service != "web" || time.Unix(0, r.Lines[0].Time).After(time.Now()) {
		t.Errorf("%+v", l)
	}
}

// A message that becomes too many bytes of lines is kept as it is, with the reason of a body of HTTP.
func TestTooManyLines(t *testing.T) {
	testkit.FullOnly(t, "many MiB in one goroutine")
	m := nats.NewMsg("logs.web")
	m.Data = []byte(strings.Repeat("a\n", 2_000_000))
	r, err := natssource.Read(m, time.Unix(1795500000, 0), nil, nil)
	if err == nil || !strings.Contains(err.Error(), "more than 128 MiB of lines") || !strings.Contains(err.Error(), "of 4000000 bytes") {
		t.Error(err)
	}
	if all := linesOf(t, r); len(all) != 1 || all[0].Service != record.RejectedService || all[0].Reason != err.Error() || all[0].Bytes != len(m.Data) {
		t.Errorf("%d lines, %.300s", len(all), r.Data)
	}
}

// Records of services that are not allowed for now are kept in _rejected, and the message is
// acknowledged as others are.
func TestNotAllowedForNow(t *testing.T) {
	e := newEnv(t)
	m := &memory{}
	e.run(m, func(o *natssource.Options) {
		o.Allow = func(service string) string {
			if service == "new" {
				return "new is a new service"
			}
			return ""
		}
	})
	m.stored = e.stored
	e.publish("logs.new", `{"msg":"a"}`)
	e.publish("logs.web", `{"msg":"b"}`)
	for _, r := range m.await(t, 2) {
		for _, l := range linesOf(t, &r) {
			if rejected := l.Service == record.RejectedService; rejected != strings.Contains(l.Msg, "a") || rejected && l.Reason != "new is a new service" {
				t.Errorf("%+v", l)
			}
		}
	}
	e.left(0)
}
