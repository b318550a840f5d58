package logstest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Classic makes the blobs of one service in one hour of Storage Analytics. Lines of
// versions 1.0 and 2.0 are mixed, and their times rise except for some seconds.
func Classic(o Options) Logs {
	c := classic{maker: newMaker(o, 0x636c6173736963)}
	m := c.maker
	whichever := func(sent) bool { return true }
	for i := range o.Lines {
		if i%m.o.BlobLines == 0 {
			c.close()
			m.open(fmt.Sprintf("%s/%s/%06d.log", m.o.Service, m.o.Hour.Format("2006/01/02/1504"), i/m.o.BlobLines))
		}
		m.malformed(func() string { return c.spoilt(i) })
		if line, ok := m.again(Duplicate, m.recent, whichever); ok {
			m.repeat(line)
		} else if line, ok := m.again(FarDuplicate, m.former, whichever); ok {
			m.repeat(line)
		} else {
			m.record(c.line(i))
		}
	}
	c.close()
	return m.done()
}

// classic composes lines of Storage Analytics.
type classic struct {
	*maker
	id    string // request id of the last line
	count int    // its operation count
	start time.Time

	// The line at hand.
	raw, want []string
}

// close ends a blob. Its metadata has seconds only, as Azure's.
func (c *classic) close() {
	p := c.page
	if p == nil {
		return
	}
	c.logs.Blobs = append(c.logs.Blobs, Blob{Container: "$logs", Key: p.key, Body: p.body, Metadata: map[string]string{
		"LogType": "read,write,delete", "LogVersion": "2.0",
		"StartTime": p.first.Format(time.RFC3339), "EndTime": p.last.Format(time.RFC3339),
	}})
}

// classicNames are Azure's names of the fields; version 1.0 has the first 30.
var classicNames = []string{
	"version-number", "request-start-time", "operation-type", "request-status", "http-status-code",
	"end-to-end-latency-in-ms", "server-latency-in-ms", "authentication-type", "requester-account-name",
	"owner-account-name", "service-type", "request-url", "requested-object-key", "request-id-header",
	"operation-count", "requester-ip-address", "request-version", "request-header-size", "request-packet-size",
	"response-header-size", "response-packet-size", "request-content-length", "request-md5", "server-md5",
	"etag-identifier", "last-modified-time", "conditions-used", "user-agent-header", "referrer-header",
	"client-request-id", "user-object-id", "tenant-id", "application-id", "audience", "issuer",
	"user-principal-name", "reserved", "authorization-detail",
}

// classicNumbers are the names of the fields with numbers.
var classicNumbers = []string{
	"http-status-code", "end-to-end-latency-in-ms", "server-latency-in-ms", "operation-count", "request-header-size",
	"request-packet-size", "response-header-size", "response-packet-size", "request-content-length",
}

// classicFields are the values of a line.
type classicFields []string

func (f classicFields) all() map[string]any {
	out := map[string]any{}
	for i, v := range f {
		if v != "" && slices.Contains(classicNumbers, classicNames[i]) {
			out[classicNames[i]] = json.Number(v)
		} else {
			out[classicNames[i]] = v
		}
	}
	return out
}

// add adds the next field: a text without quotes that is the same in the record.
func (c *classic) add(values ...string) {
	c.raw = append(c.raw, values...)
	c.want = append(c.want, values...)
}

// quoted adds a field in quotes, an empty text without them.
func (c *classic) quoted(w *words) {
	raw := w.raw.String()
	if raw != "" {
		raw = `"` + raw + `"`
	}
	c.raw = append(c.raw, raw)
	c.want = append(c.want, w.want.String())
}

// text is quoted for a text without traps.
func (c *classic) text(s string) {
	w := newWords()
	w.text(s)
	c.quoted(w)
}

// outcome is a status, and the level of a record with it.
type outcome struct{ status, http, level string }

func (c *classic) outcome() outcome {
	if c.hit(OddStatus) {
		return pick(c.maker, []outcome{
			{"Unknown", "", "info"},
			{"ThrottlingError", "503", "warn"}, {"ThrottlingError", "", "warn"}, {"SASThrottlingError", "503", "warn"},
			{"ClientOtherError", "429", "warn"}, {"ClientOtherError", "409", "warn"}, {"ClientOtherError", "", "info"},
			{"SASAuthorizationError", "403", "warn"}, {"AnonymousClientOtherError", "404", "warn"},
			{"ServerOtherError", "500", "error"}, {"ServerTimeoutError", "504", "error"}, {"NetworkError", "206", "info"},
		})
	}
	return pick(c.maker, []outcome{{"Success", "200", "info"}, {"Success", "201", "info"}, {"SASSuccess", "200", "info"}, {"AnonymousSuccess", "304", "info"}})
}

func (c *classic) operation() string {
	switch c.o.Service {
	case "table":
		return pick(c.maker, []string{"QueryEntities", "InsertEntity", "DeleteEntity", "EntityGroupTransaction"})
	case "queue":
		return pick(c.maker, []string{"PutMessage", "GetMessages", "DeleteMessage", "GetQueueMetadata"})
	}
	return pick(c.maker, []string{"GetBlob", "PutBlob", "DeleteBlob", "GetBlobProperties", "ListBlobs", "SetBlobTier"})
}

// begin decides the start of a request that ended as the i-th, and how long it took. A
// batch goes on with the request before it.
func (c *classic) begin(i int) (took time.Duration) {
	const tick = 100 * time.Nanosecond
	if i > 0 && c.start.After(c.o.Hour) && c.hit(Batch) {
		c.count++
		return time.Duration(c.IntN(30)) * time.Millisecond
	}
	c.id, c.count = c.uuid(), 0
	end := c.o.Hour.Add(time.Duration(i)*time.Hour/time.Duration(c.o.Lines) + 10*time.Second*time.Duration(c.IntN(2)*c.IntN(2)))
	if last := c.o.Hour.Add(time.Hour - tick); end.After(last) {
		end = last
	}
	took = time.Duration(c.Int64N(int64(time.Second)))
	if c.IntN(20) == 0 {
		took += time.Duration(c.Int64N(int64(8 * time.Second)))
	}
	c.start = end.Add(-took).Truncate(tick)
	if c.start.Before(c.o.Hour) {
		c.start = c.o.Hour
	}
	if c.hit(Early) {
		c.start = c.o.Hour.Add(-time.Duration(1 + c.Int64N(int64(5*time.Minute)))).Truncate(tick)
		took = end.Sub(c.start)
		return took
	}
	c.start = c.tie(c.start)
	return took
}

// clock is a time as the logs have it.
func clock(t time.Time) string { return t.Format("2006-01-02T15:04:05.0000000Z") }

// line composes the i-th line.
func (c *classic) line(i int) sent {
	took := c.begin(i)
	c.raw, c.want = make([]string, 0, 38), make([]string, 0, 38)
	version := pick(c.maker, []string{"1.0", "2.0", "2.0"})
	out, op := c.outcome(), c.operation()
	sas := strings.HasPrefix(out.status, "SAS") || c.IntN(4) == 0
	ms := strconv.FormatInt(took.Milliseconds(), 10)
	c.add(version, clock(c.start), op, out.status, out.http, ms, strconv.FormatInt(took.Milliseconds()/2, 10))
	if sas {
		c.add("sas", "")
	} else {
		c.add(pick(c.maker, []string{"authenticated", "OAuth"}), c.o.Account)
	}
	c.add(c.o.Account, c.o.Service)
	path := c.target(sas)
	c.add(c.id, strconv.Itoa(c.count), c.address(), "2020-04-08")
	c.add(strconv.Itoa(300+c.IntN(500)), strconv.Itoa(c.IntN(1<<20)), strconv.Itoa(200+c.IntN(300)), strconv.Itoa(c.IntN(1<<30)), strconv.Itoa(c.IntN(1<<20)))
	c.integrity(version)
	c.client()
	if version == "2.0" {
		c.identity()
	}
	var msg []string
	for _, word := range []string{op, out.http, path, ms + "ms"} {
		if word == "" {
			word = out.status
		}
		msg = append(msg, word)
	}
	return sent{raw: strings.Join(c.raw, ";"), newline: "\n", at: c.start,
		record: Record{Level: out.level, Msg: strings.Join(msg, " "), fields: classicFields(c.want)}}
}

// target adds the address and the key of the object, and returns the key without its
// account.
func (c *classic) target(sas bool) (path string) {
	path = c.path()
	address := newWords()
	address.text("https://" + c.o.Account + "." + c.o.Service + ".core.windows.net" + encode(path))
	if c.hit(AddressEntity) {
		address.text("('it''s')")
	}
	address.parameters(c.maker, sas)
	if c.IntN(4) == 0 {
		c.quoted(address)
	} else {
		c.raw = append(c.raw, address.raw.String())
		c.want = append(c.want, address.want.String())
	}
	key := newWords()
	key.text("/" + c.o.Account)
	object := newWords()
	object.text(path)
	object.sprinkle(c.maker)
	key.as(object.raw.String(), object.want.String())
	c.quoted(key)
	return object.want.String()
}

// integrity adds the checksums, the etag, the time and the conditions.
func (c *classic) integrity(version string) {
	sum := fmt.Sprintf("%016x%06xQ==", c.Uint64(), c.IntN(1<<24))
	for range 2 {
		c.text(pick(c.maker, []string{"", sum}))
	}
	etag := `"` + c.etag() + `"`
	switch {
	case version == "1.0" && c.hit(OldETag):
		c.raw = append(c.raw, `"`+etag+`"`)
		c.want = append(c.want, etag)
	default:
		c.text(pick(c.maker, []string{"", etag}))
	}
	c.add(c.start.Add(-time.Hour).Format("Monday, 02-Jan-06 15:04:05 GMT"))
	c.text(pick(c.maker, []string{"", "If-None-Match=*", "If-Match=" + etag}))
}

// client adds the agent, the referrer and the client's id.
func (c *classic) client() {
	agent := newWords()
	if c.hit(Forged) {
		agent.forge(c.maker, clock(c.start))
	} else {
		agent.text(pick(c.maker, agents()))
		agent.sprinkle(c.maker)
	}
	c.quoted(agent)
	referrer := newWords()
	if c.IntN(4) == 0 {
		referrer.text("https://portal.example.org" + encode(c.path()))
		referrer.parameters(c.maker, c.IntN(2) == 0)
		if c.hit(Newline) {
			referrer.text("&note=a\nb;c")
		}
	}
	c.quoted(referrer)
	c.text(pick(c.maker, []string{"", c.uuid()}))
}

// identity adds the fields that only version 2.0 has.
func (c *classic) identity() {
	if c.IntN(2) == 0 {
		c.add("", "", "", "", "", "", "", "")
		return
	}
	for range 3 {
		c.text(c.uuid())
	}
	c.text("https://storage.azure.com/")
	c.text("https://sts.windows.net/" + c.uuid() + "/")
	c.text(pick(c.maker, []string{"", "ann@example.org", "jürgen@example.org"}))
	c.add("")
	c.text(pick(c.maker, []string{"", `[{"action":"Microsoft.Storage/storageAccounts/blobServices/containers/blobs/read";"roleAssignmentId":"` + c.uuid() + `"}]`}))
}

// spoilt composes a malformed line.
func (c *classic) spoilt(i int) string {
	count, start, id := c.count, c.start, c.id
	traps := maps.Clone(c.logs.Traps) // a line without a record has no traps
	defer func() { c.count, c.start, c.id, c.logs.Traps = count, start, id, traps }()
	for {
		c.line(i)
		if !strings.Contains(strings.Join(c.raw, ";"), "\n") {
			break
		}
	}
	f := slices.Clone(c.raw)
	switch c.IntN(6) {
	case 0:
		f = f[:1+c.IntN(28)]
		if len(c.raw) == 38 && c.IntN(2) == 0 {
			f = c.raw[:32+c.IntN(6)]
		}
	case 1:
		for range 50 - len(f) {
			f = append(f, "more")
		}
	case 2:
		f[1] = pick(c.maker, []string{"yesterday", "2026-13-45T25:61:61Z", "", "2026-11-22Tnoon"})
	case 3:
		f[12] = `"/` + c.o.Account + `/container1/open.txt`
	case 4:
		return c.garbage()
	default:
		f[0] = ""
	}
	return strings.Join(f, ";")
}
