package shop

import (
	"strings"

	"blobtail/record"
)

// Wild is a kind of record that is not like the others.
type Wild struct {
	Kind    string `json:"kind"`
	Service string `json:"service"`
	Text    string `json:"text"` // that each record of the kind has, and few others
}

// wild is a kind with its way to write one.
type wild struct {
	Wild
	write func(r *request, w Wild)
}

// Wilds are the kinds. Each is in the first 1,000 records.
func Wilds() []Wild {
	var all []Wild
	for _, w := range wilds() {
		all = append(all, w.Wild)
	}
	return all
}

// wild writes the kind whose turn it is.
func (r *request) wild(n int) {
	all := wilds()
	w := all[n/firstWild%len(all)]
	if n > firstWild*len(all) {
		w = all[n/wildEvery%len(all)]
	}
	w.write(r, w.Wild)
}

const trace = `java.lang.IllegalStateException: render thread has no session
	at com.shop.web.Session.current(Session.java:88)
	at com.shop.web.Page.render(Page.java:214)
	at com.shop.web.Server.handle(Server.java:61)
Caused by: java.util.NoSuchElementException: No value present
	at java.base/java.util.Optional.orElseThrow(Optional.java:377)
	... 12 more`

func wilds() []wild {
	return []wild{
		{Wild{"trace", web, "IllegalStateException"}, func(r *request, w Wild) {
			r.log(0, w.Service, record.Error, trace, "thread", "render-7")
		}},
		{Wild{"colours", stock, "warehouse feed"}, func(r *request, w Wild) {
			r.log(0, w.Service, record.Info, "\x1b[1;32mINFO\x1b[0m "+w.Text+" is \x1b[33m12 s\x1b[0m behind")
		}},
		{Wild{"text", gateway, "keepalive pool"}, func(r *request, w Wild) {
			r.text(w.Service, record.Warn, "WARN", "upstream "+w.Text+" is at 90 %")
		}},
		{Wild{"text without level", gateway, "reopening log files"}, func(r *request, w Wild) {
			r.text(w.Service, record.Other, "", "signal 30 received, "+w.Text)
		}},
		{Wild{"long", web, "slow query"}, func(r *request, w Wild) {
			var ids strings.Builder
			for ids.Len() < 20_000 {
				ids.WriteString(", " + number(100_000+r.g.rand.IntN(900_000)))
			}
			r.log(0, w.Service, record.Warn, w.Text+": SELECT * FROM products WHERE id IN ("+ids.String()[2:]+") took 812 ms")
		}},
		{Wild{"nested", orders, "invoice made"}, func(r *request, w Wild) {
			r.log(0, w.Service, record.Info, w.Text, "invoice", raw(`{"number":"2026-`+number(r.g.rand.IntN(9000))+
				`","customer":{"id":7,"address":{"city":"Köln","lines":["Domkloster 4",null]}},"lines":[{"sku":"SKU-1007","quantity":2,"net":{"amount":19.9,"currency":"EUR"}},{"sku":"SKU-1100","quantity":1,"net":{"amount":5,"currency":"EUR"}}],"paid":false}`))
		}},
		{Wild{"markup", web, "<b>red</b>"}, func(r *request, w Wild) {
			r.log(0, w.Service, record.Warn, `template got markup in a name: `+w.Text+` <img src=x onerror=alert(1)> <script>alert("2")</script> & more`,
				"name", `"><svg onload=alert(3)>`, "link", "javascript:alert(4)")
		}},
		{Wild{"types", payments, "imported from the old system"}, func(r *request, w Wild) {
			kinds := []any{"59.90 EUR", 59, 59.9, true, raw("null"), raw("9007199254740993"), raw(`["59.90","EUR"]`)}
			r.log(0, w.Service, record.Info, "payment "+w.Text, "amount", kinds[r.g.rand.IntN(len(kinds))], "status", "paid")
		}},
		{Wild{"unicode", orders, "Grüße"}, func(r *request, w Wild) {
			r.log(0, w.Service, record.Info, "note on an order: "+w.Text+" 👟 日本語 مرحبا \u202eoverride\u202c z\u0335a\u0335l\u0335g\u0335o", "customer", "Zoë Ångström")
		}},
	}
}
