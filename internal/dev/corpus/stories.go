package corpus

import (
	_ "embed" // of the stories
	"fmt"
	"strings"

	"blobtail/record"
)

// The beginnings of the two messages of the incident.
const (
	newMessage = "card token expired before capture of order"
	warning    = "retrying capture after clock skew of"
)

// story is how a request goes.
type story struct {
	weights [2]int // in total, before the deploy and since
	job     bool   // no user asked for it
	steps   []*step
}

// total is the sum of the weights of all stories.
const total = 1000

// step writes a record.
type step struct {
	service   string
	level     record.Level
	low, high int  // ms from the record before
	oneIn     int  // the step is told once in so many times
	text      bool // a line of text
	msg, line pattern
	part      part
}

// newStep makes a step of a message and its fields.
func newStep(service string, level record.Level, text bool, msg, fields string) *step {
	s := &step{service: service, level: level, oneIn: 1, text: text, msg: parsePattern(msg)}
	switch {
	case strings.HasPrefix(msg, warning):
		s.part = telling
	case strings.HasPrefix(msg, newMessage):
		s.part = failure
	}
	line := "$time $msg"
	if !text {
		line = fmt.Sprintf(`{"ts":"$time","level":"%s","service":"%s","msg":"$msg","host":"%[2]s-$host","version":"$version"$request%s}`, level, service, members(fields))
	}
	s.line = parsePattern(line + "\n")
	return s
}

// stories are those of the shop, each with its weights. A step has a service, a level, the
// milliseconds from the step before, how often it comes (/3 for once in three times), its message,
// and its fields: name=text, or name:JSON. A line "access" is the gateway's record of the answer.
//
//go:embed stories.txt
var stories string

// shorts are lines that several stories have.
func shorts(line string) string {
	kind, rest, _ := strings.Cut(line, " ")
	switch kind {
	case "access":
		of := strings.Fields(rest)
		level := map[byte]string{'2': "info", '4': "warn", '5': "error"}[of[2][0]]
		return fmt.Sprintf("gateway %s 0-2 %s in $took ms -- method=%s path=%s status:%s duration_ms:$took user=$user client_ip=$ip bytes:$size", level, rest, of[0], of[1], of[2])
	case "place":
		return `web info 1-4 checkout of basket $basket begins -- basket=$basket user=$user
			orders info 2-9 order $order placed: $items items, $amount EUR -- order:$order items:$items amount:$amount user=$user
			stock info 2-15 reserved $items items for order $order -- order:$order items:$items
			payments debug 2-9 capture of order $order: asking issuer $issuer -- order:$order issuer=$issuer amount:$amount`
	case "skew":
		return `payments warn 60-200 ` + warning + ` $skew ms -- order:$order issuer=$issuer skew_ms:$skew attempt:2`
	case "expire":
		return `payments error 3100-3900 ` + newMessage + ` $order -- order:$order issuer=$issuer amount:$amount token=tok_$hex status:502`
	case "fail":
		of := strings.SplitN(rest, " ", 3)
		return fmt.Sprintf(`orders error %s payment of order $order failed: %s -- order:$order status:%s
			web error 1-4 checkout of basket $basket failed: orders answered %[3]s -- basket=$basket status:%[3]s user=$user duration_ms:$took
			%s`, of[0], of[2], of[1], shorts("access POST /checkout "+of[1]))
	}
	return line
}

func parseStories() (all []story) {
	for line := range strings.SplitSeq(strings.TrimSpace(stories), "\n") {
		if !strings.HasPrefix(line, "\t") {
			var s story
			var name string
			_, _ = fmt.Sscan(line, &name, &s.weights[0], &s.weights[1])
			s.job = strings.HasPrefix(name, "job-")
			all = append(all, s)
			continue
		}
		last := &all[len(all)-1]
		for text := range strings.Lines(shorts(strings.TrimSpace(line))) {
			last.steps = append(last.steps, parseStep(strings.TrimSpace(text)))
		}
	}
	return all
}

func parseStep(line string) *step {
	of := strings.SplitN(line, " ", 4)
	msg, fields, _ := strings.Cut(of[3], " -- ")
	s := newStep(of[0], record.LevelOf([]byte(of[1])), false, msg, fields)
	_, _ = fmt.Sscanf(of[2], "%d-%d/%d", &s.low, &s.high, &s.oneIn)
	return s
}

// members makes members of an object of fields.
func members(fields string) string {
	var b []byte
	for f := range strings.FieldsSeq(fields) {
		at := strings.IndexAny(f, "=:")
		b = append(append(append(b, `,"`...), f[:at]...), `":`...)
		if f[at] == '=' {
			b = append(record.AppendEscaped(append(b, '"'), []byte(f[at+1:])), '"')
		} else {
			b = append(b, f[at+1:]...)
		}
	}
	return string(b)
}

// Wild is a kind of record that is not like the others.
type Wild struct {
	Kind    string `json:"kind"`
	Service string `json:"service"`
	Text    string `json:"text"` // that each record of the kind has, and few others
}

// Wilds are the kinds. Each is in the first 1,000 records of a shop.
func Wilds() (all []Wild) {
	for _, w := range wilds() {
		all = append(all, w.Wild)
	}
	return all
}

// wild is a kind with its records. The message has @ for its text.
type wild struct {
	Wild
	level       record.Level
	msg, fields string
}

func wilds() []wild {
	return []wild{
		{Wild{"trace", "web", "IllegalStateException"}, record.Error, "java.lang.@: render thread has no session\n\tat com.shop.web.Session.current(Session.java:88)\n" +
			"\tat com.shop.web.Page.render(Page.java:214)\n\tat com.shop.web.Server.handle(Server.java:61)\nCaused by: java.util.NoSuchElementException: No value present\n\t... 12 more", "thread=render-7"},
		{Wild{"colours", "stock", "warehouse feed"}, record.Info, "\x1b[1;32mINFO\x1b[0m @ is \x1b[33m12 s\x1b[0m behind", ""},
		{Wild{"text", "gateway", "keepalive pool"}, record.Warn, "WARN upstream @ is at 90 %", ""},
		{Wild{"text without level", "gateway", "reopening log files"}, record.Other, "signal 30 received, @", ""},
		{Wild{"long", "web", "slow query"}, record.Warn, "@: SELECT * FROM products WHERE id IN ($ids) took 812 ms", ""},
		{Wild{"nested", "orders", "invoice made"}, record.Info, "@", `invoice:{"number":"2026-$sku","customer":{"id":7,"address":{"city":"Köln","lines":["Domkloster",null]}},` +
			`"lines":[{"sku":"SKU-1007","quantity":2,"net":{"amount":19.9,"currency":"EUR"}},{"sku":"SKU-1100","quantity":1,"net":{"amount":5,"currency":"EUR"}}],"paid":false}`},
		{Wild{"markup", "web", "<b>red</b>"}, record.Warn, `template got markup in a name: @ <img src=x onerror=alert(1)> <script>alert("2")</script> & more`,
			`name="><svg/onload=alert(3)> link=javascript:alert(4)`},
		{Wild{"types", "payments", "imported from the old system"}, record.Info, "payment @", "amount:$any status=paid"},
		{Wild{"unicode", "orders", "Grüße"}, record.Info, "note on an order: @ 👟 日本語 مرحبا \u202eoverride\u202c z\u0335a\u0335l\u0335g\u0335o", "customer=Zoë_Ångström"},
	}
}
