package logstest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Resource makes one hour of the resource logs of some storage accounts: a blob of JSON
// lines each. Their times rise except for some seconds, and late records.
//
// Fields has every member but time and level, operationName and resultDescription
// included. A time that is none is a field too.
func Resource(o Options) Logs {
	m := newMaker(o, 0x7265736f75726365)
	m.o.Account = strings.ToLower(m.o.Account)
	r := resource{maker: m, subscription: m.uuid()}
	for n := range m.o.Resources {
		r.account = fmt.Sprintf("%s%02d", m.o.Account, n)
		r.ids = nil
		m.open("resourceId=" + strings.ToUpper(r.id()) + m.hour() + "PT1H.json")
		lines := m.o.Lines / m.o.Resources
		if n < m.o.Lines%m.o.Resources {
			lines++
		}
		for i := range lines {
			m.malformed(r.spoilt)
			r.next(float64(i) / float64(lines))
		}
		if m.o.Unfinished {
			r.unfinished(n == 0)
		}
		m.logs.Blobs = append(m.logs.Blobs, Blob{Container: "insights-logs-" + strings.ToLower(m.o.Category), Key: m.page.key, Body: m.page.body})
	}
	return m.done()
}

// resource composes lines of one resource.
type resource struct {
	*maker
	subscription, account string
	ids                   []string // some correlation ids of this blob
}

func (r *resource) id() string {
	return "/subscriptions/" + r.subscription + "/resourceGroups/logs/providers/Microsoft.Storage/storageAccounts/" + r.account + "/blobServices/default"
}

// next appends one line; done is the part of the hour that is over.
func (r *resource) next(done float64) {
	m := r.maker
	if line, ok := m.again(Duplicate, m.recent, func(s sent) bool { return !s.plain }); ok {
		m.repeat(line)
		return
	}
	if line, ok := m.again(PlainRepeat, m.recent, func(s sent) bool { return s.plain }); ok {
		m.record(line)
		return
	}
	if line, ok := m.again(FarRepeat, m.former, func(s sent) bool { return !slices.Contains(m.page.far, s.raw) }); ok {
		m.page.far = append(m.page.far, line.raw)
		m.record(line)
		return
	}
	at := r.time(done)
	if m.hit(Untimed) {
		m.record(r.untimed())
		return
	}
	m.record(r.timed(at))
}

// timed composes a line with a time.
func (r *resource) timed(at time.Time) sent {
	return r.line(at, []member{{"time", r.timeText(at)}})
}

// untimed composes a line without a time, or with one that is none. It has the hour of the blob.
func (r *resource) untimed() sent {
	if r.IntN(2) == 0 {
		return r.line(r.o.Hour, nil)
	}
	none := member{"time", pick[any](r.maker, []any{"yesterday", "2026-13-45T25:61:61Z", "", nil, true})}
	return r.line(r.o.Hour, nil, none)
}

// time is the time of a record that arrives when a part of the hour is over.
func (r *resource) time(done float64) time.Time {
	const tick = 100 * time.Nanosecond
	at := r.o.Hour.Add(time.Duration(done * float64(time.Hour)))
	if r.hit(Late) {
		at = r.o.Hour.Add(-2*time.Minute - time.Duration(r.Int64N(int64(298*time.Minute))))
	} else if at = at.Add(-time.Duration(r.Int64N(int64(8 * time.Second)))); at.Before(r.o.Hour) {
		at = r.o.Hour.Add(time.Duration(r.Int64N(int64(time.Second))))
	}
	return r.tie(at.Truncate(tick))
}

// timeText is a time in one of the forms that exact ones may have.
func (r *resource) timeText(at time.Time) string {
	forms := []string{"2006-01-02T15:04:05.0000000Z", "2006-01-02T15:04:05.0000000Z", "2006-01-02T15:04:05.9999999Z", "2006-01-02T15:04:05.0000000+00:00"}
	return at.Format(pick(r.maker, forms))
}

// line composes a line with the members of its head, and with fields before the usual ones.
func (r *resource) line(at time.Time, head []member, more ...member) sent {
	plain := r.hit(Plain)
	level, mark, status := r.severity()
	message, fields := r.fields(plain, status)
	fields = append(more, fields...)
	if mark != nil {
		head = append(head, member{"level", mark})
	}
	all := append(slices.Clone(head), fields...)
	if r.hit(Order) {
		all = append(slices.Clone(fields), head...)
	}
	w := writer{maker: r.maker, keys: r.hit(EscapedKey)}
	if r.hit(Spaces) {
		w.spaces = []string{"", " ", "\t", "   "}
	}
	w.value(object(all))
	newline := "\n"
	if r.hit(CRLF) {
		newline = "\r\n"
	}
	return sent{raw: w.b.String(), newline: newline, at: at, plain: plain, record: Record{Level: level, Msg: message, fields: fields}}
}

// severity decides the level of a record, the member that has it (nil: none), and the
// members that have the status.
func (r *resource) severity() (level string, mark any, status []member) {
	type outcome struct {
		code        int
		text, level string
	}
	o := pick(r.maker, []outcome{
		{200, "Success", "info"}, {200, "SASSuccess", "info"}, {201, "Success", "info"}, {404, "ClientOtherError", "warn"},
		{403, "SASAuthorizationError", "warn"}, {429, "ThrottlingError", "warn"}, {503, "ThrottlingError", "warn"}, {500, "ServerOtherError", "error"},
	})
	status = []member{{"statusCode", number(o.code)}, {"statusText", o.text}}
	if r.hit(StatusText) {
		text := fmt.Sprint(o.code)
		status[0] = pick(r.maker, []member{{"statusCode", text}, {"httpStatusCode", number(o.code)}, {"httpStatusCode", text}, {"resultSignature", text}, {"resultSignature", number(o.code)}})
	}
	type word struct {
		mark  any
		level string
	}
	switch {
	case r.hit(LevelWord):
		w := pick(r.maker, []word{{"Informational", "info"}, {"Warning", "warn"}, {"Error", "error"}, {"Critical", "critical"}, {"Verbose", "trace"}, {"informational", "info"}, {"WARNING", "warn"}})
		return w.level, w.mark, status
	case r.hit(LevelNumber):
		w := pick(r.maker, []word{{number(1), "critical"}, {number(2), "error"}, {number(3), "warn"}, {number(4), "info"}, {number(5), "trace"}, {"2", "error"}, {"4", "info"}})
		return w.level, w.mark, status
	}
	return o.level, nil, status
}

// fields composes all members but time and level, and the message of the record.
func (r *resource) fields(plain bool, status []member) (message string, out object) {
	op := pick(r.maker, []string{"GetBlob", "ListBlobs", "GetBlobProperties", "MICROSOFT.STORAGE/STORAGEACCOUNTS/LISTKEYS/ACTION"})
	message = op
	out = object{{"resourceId", r.id()}, {"category", r.o.Category}, {"operationName", op}, {"operationVersion", "2021-06-08"}, {"schemaVersion", "1.0"}}
	out = append(out, status...)
	if r.IntN(10) == 0 {
		t := r.newText(false)
		t.text(pick(r.maker, []string{"the blob is gone", "a \"quoted\" word\nand a line", "see https://example.org/?"}))
		if r.IntN(2) == 0 && r.hit(Signature) {
			t.text(" https://example.org/c?sp=r&")
			t.masked("sig=", r.signature())
			t.text("&sr=b failed")
		}
		message += " " + t.want.String()
		out = append(out, member{"resultDescription", t})
	}
	var took any = number(r.IntN(5000))
	if r.IntN(10) == 0 {
		took = fmt.Sprint(took)
	}
	out = append(out, member{"durationMs", took}, member{"callerIpAddress", r.address()})
	if !plain {
		id := r.uuid()
		if len(r.ids) > 0 && r.hit(SameID) {
			id = pick(r.maker, r.ids)
		}
		r.ids = sample(r.maker, r.ids, id)
		out = append(out, member{"correlationId", id})
	}
	path := r.path()
	out = append(out, member{"identity", r.identity()}, member{"location", "West Europe"}, member{"properties", r.properties(path)},
		member{"uri", r.uri(path)}, member{"protocol", "HTTPS"}, member{"resourceType", "Microsoft.Storage/storageAccounts/blobServices"})
	return message, out
}

func (r *resource) identity() any {
	if r.IntN(3) == 0 {
		return object{{"type", "Anonymous"}}
	}
	return object{{"type", "OAuth"}, {"tokenHash", "key1(" + r.etag() + ")"}, {"authorization", []any{
		object{{"action", "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/read"}, {"granted", true}, {"roles", []any{"Reader", nil, number(r.IntN(9))}}},
		object{{"granted", false}},
	}}, {"requester", nil}}
}

// properties has nested members, and texts with traps.
func (r *resource) properties(path string) any {
	heavy := r.hit(Escapes)
	agent := r.newText(heavy)
	agent.text(pick(r.maker, agents()))
	if heavy || r.IntN(20) == 0 {
		agent.text(" \"\\/\b\f\n\r\t\x00\x01\x1f é ☃ 😀 \u2028 A]}{[,:")
	}
	if r.hit(NonASCII) {
		agent.text(pick(r.maker, []string{" grün", " 日本語", " Ωmega", " 😀"}))
	}
	p := object{
		{"accountName", r.account}, {"userAgentHeader", agent}, {"serviceType", "blob"}, {"objectKey", "/" + r.account + path},
		{"etag", `"` + r.etag() + `"`}, {"serverLatencyMs", number(r.IntN(900))}, {"ratio", json.Number("12.5")}, {"delta", number(-r.IntN(9))},
		{"ticks", json.Number("9007199254740993")}, {"conditions", nil}, {"nothing", object{}}, {"none", []any{}}, {"tlsVersion", "TLS 1.2"},
	}
	if r.hit(EncodedSignature) {
		t := r.newText(false)
		t.text("https://portal.example.org/?url=https%3A%2F%2F" + r.account + ".blob.core.windows.net%2Fc%3Fsv%3D2020-04-08%26")
		t.masked(pick(r.maker, []string{"sig%3D", "sig%3d"}), strings.ReplaceAll(r.signature(), "%", "%25"))
		t.text("%26se%3D2026-12-02&tab=1")
		p = append(p, member{"referrerHeader", t})
	}
	if r.hit(Big) {
		p = append(p, member{"requestBody", strings.Repeat("lorem \"ipsum\" \\ dolor\n", 500+r.IntN(1000))})
	}
	return p
}

// uri is an address with its parameters. Some writers of JSON escape the ampersand, and
// some more.
func (r *resource) uri(path string) *words {
	t := r.newText(false)
	usual := t.escape
	escaped := map[int]string{0: "&", 1: "&=", 2: "&=sig"}[r.IntN(6)]
	t.escape = func(c rune) string {
		if strings.ContainsRune(escaped, c) {
			return r.unicode(c)
		}
		return usual(c)
	}
	t.text("https://" + r.account + ".blob.core.windows.net:443" + encode(path))
	t.parameters(r.maker, r.IntN(3) > 0)
	return t
}

// spoilt composes a malformed line.
func (r *resource) spoilt() string {
	ids, traps := slices.Clone(r.ids), maps.Clone(r.logs.Traps) // a line without a record has no traps
	defer func() { r.ids, r.logs.Traps = ids, traps }()
	raw := r.timed(r.o.Hour).raw
	switch r.IntN(6) {
	case 0:
		return "the service is being restarted"
	case 1:
		return "[" + raw + "]"
	case 2:
		return r.part(raw)
	case 3:
		return r.garbage()
	case 4:
		return pick(r.maker, []string{"null", "17", `"text"`})
	default:
		return raw + " and more"
	}
}

// unfinished appends a line that the writer of the blob has not finished: it lacks its
// newline, and its end unless it is whole.
func (r *resource) unfinished(whole bool) {
	traps := maps.Clone(r.logs.Traps)
	s := r.timed(r.o.Hour)
	s.newline = ""
	if whole {
		r.expect(s)
		return
	}
	at, _ := r.put(r.part(s.raw), "")
	r.logs.Cut, r.logs.Traps = append(r.logs.Cut, at), traps
}

// part is the beginning of a line.
func (m *maker) part(raw string) string { return raw[:len(raw)/2+m.IntN(len(raw)/2)] }
