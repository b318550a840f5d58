package shop

import (
	"fmt"
	"time"

	"blobtail/record"
)

// tell writes the records of a request. One of 33 is a job of a service instead.
func (r *request) tell() {
	switch n := r.g.rand.IntN(100); {
	case n < 47:
		r.browse()
	case n < 65:
		r.search()
	case n < 78:
		r.basket()
	case n < 84:
		r.signIn()
	case n < 94:
		r.checkout()
	case n < 97:
		r.log(0, gateway, record.Debug, "health check of web answered in "+millis(r.ms(1, 4)), "path", "/healthz", "status", 200)
	default:
		r.job()
	}
}

// access writes the gateway's record of an answer.
func (r *request) access(method, path string, status int) {
	level := record.Info
	switch {
	case status >= 500:
		level = record.Error
	case status >= 400:
		level = record.Warn
	}
	r.log(r.ms(0, 2), gateway, level, fmt.Sprintf("%s %s %d in %s", method, path, status, millis(r.took())),
		"method", method, "path", path, "status", status, "duration_ms", r.took(), "user", r.user, "client_ip", r.ip,
		"bytes", 300+r.g.rand.IntN(40_000))
}

func (r *request) product() (sku, path string) {
	n := 1000 + r.g.rand.IntN(300)
	return "SKU-" + number(n), "/products/" + number(n)
}

func (r *request) browse() {
	sku, path := r.product()
	if r.oneIn(3) {
		r.log(r.ms(0, 3), web, record.Debug, "rendering "+path+" from template product.v3", "path", path)
	}
	if r.oneIn(250) { // a failure of every day
		r.log(r.ms(900, 1400), stock, record.Error, "query of "+sku+" failed: connection to database reset by peer", "sku", sku, "attempt", 1)
		r.log(r.ms(1, 3), web, record.Error, "page "+path+" failed: stock answered 500", "path", path, "status", 502)
		r.access("GET", path, 502)
		return
	}
	left, took := r.g.rand.IntN(80), r.ms(1, 12)
	level := record.Debug
	msg := fmt.Sprintf("stock of %s is %d", sku, left)
	if left < 2 {
		level, msg = record.Warn, fmt.Sprintf("stock of %s is low: %d left", sku, left)
	}
	r.log(took, stock, level, msg, "sku", sku, "quantity", left, "duration_ms", took)
	if r.oneIn(120) {
		slow := r.ms(700, 1900)
		r.log(slow, web, record.Warn, "slow render of "+path+": "+millis(slow), "path", path, "duration_ms", slow)
	}
	r.access("GET", path, 200)
}

func (r *request) search() {
	words := []string{"red shoes", "größe 42", "tea pot", "スニーカー", "lamp", "crème brûlée torch", "usb-c cable", "rain coat"}
	q := words[r.g.rand.IntN(len(words))]
	took, found := r.ms(4, 60), r.g.rand.IntN(120)
	if r.oneIn(2) {
		r.log(r.ms(0, 2), stock, record.Debug, "cache miss for query "+q, "query", q)
	}
	r.log(took, web, record.Info, fmt.Sprintf("search for %q found %d products", q, found), "query", q, "found", found, "duration_ms", took, "user", r.user)
	if r.oneIn(150) {
		r.access("GET", "/search", 429)
		return
	}
	r.access("GET", "/search", 200)
}

func (r *request) basket() {
	sku, _ := r.product()
	basket := r.hex(8)
	r.log(r.ms(1, 6), stock, record.Debug, "held 1 of "+sku+" for basket "+basket, "sku", sku, "basket", basket)
	cents := 500 + r.g.rand.IntN(20_000)
	r.log(r.ms(1, 8), orders, record.Debug, "basket "+basket+" priced at "+money(cents)+" EUR", "basket", basket, "amount", float64(cents)/100)
	r.log(r.ms(1, 4), web, record.Info, "basket "+basket+": added "+sku, "basket", basket, "sku", sku, "user", r.user)
	r.access("POST", "/basket", 200)
}

func (r *request) signIn() {
	took := r.ms(40, 140)
	if r.oneIn(12) {
		r.log(took, web, record.Warn, "sign-in of "+r.user+" failed: wrong password", "user", r.user, "client_ip", r.ip)
		r.access("POST", "/login", 401)
		return
	}
	r.log(took, web, record.Info, "user "+r.user+" signed in", "user", r.user, "client_ip", r.ip, "session", r.hex(16))
	r.access("POST", "/login", 200)
}

// job writes a record of the work beside requests.
func (r *request) job() {
	s := r.g.system(time.Unix(0, r.begun))
	n := s.g.rand.IntN(400)
	switch s.g.rand.IntN(4) {
	case 0:
		s.log(0, stock, record.Info, fmt.Sprintf("inventory sync: %d of 4200 items changed", n), "job", "inventory-sync", "changed", n, "duration_ms", s.ms(800, 4000))
	case 1:
		s.log(0, orders, record.Info, fmt.Sprintf("exported %d orders to the warehouse", n/10), "job", "export", "orders", n/10)
	case 2:
		s.log(0, payments, record.Info, fmt.Sprintf("settlement batch %s: %d captures, %s EUR", s.hex(6), n/4, money(n*991)), "job", "settlement", "captures", n/4)
	default:
		if n < 60 {
			s.log(0, orders, record.Warn, fmt.Sprintf("queue of invoices holds %d jobs, more than 500", 500+n), "queue", "invoices", "depth", 500+n)
			return
		}
		s.log(0, orders, record.Debug, fmt.Sprintf("queue of invoices holds %d jobs", n), "queue", "invoices", "depth", n)
	}
}

// purchase is the order of a checkout.
type purchase struct {
	*request
	basket, issuer string
	cents, items   int
}

func (r *request) checkout() {
	r.g.orders++
	r.order = r.g.orders
	p := purchase{request: r, basket: r.hex(8), cents: 900 + r.g.rand.IntN(25_000), items: 1 + r.g.rand.IntN(5)}
	p.issuer = []string{"visa", "mastercard", "amex", "girocard"}[r.g.rand.IntN(4)]
	p.log(r.ms(1, 4), web, record.Info, "checkout of basket "+p.basket+" begins", "basket", p.basket, "user", r.user)
	p.log(r.ms(2, 9), orders, record.Info, fmt.Sprintf("order %d placed: %d items, %s EUR", r.order, p.items, money(p.cents)),
		"order", r.order, "items", p.items, "amount", float64(p.cents)/100, "user", r.user)
	p.log(r.ms(2, 15), stock, record.Info, fmt.Sprintf("reserved %d items for order %d", p.items, r.order), "order", r.order, "items", p.items)
	p.log(r.ms(2, 9), payments, record.Debug, fmt.Sprintf("capture of order %d: asking issuer %s", r.order, p.issuer),
		"order", r.order, "issuer", p.issuer, "amount", float64(p.cents)/100)
	switch n := r.g.rand.IntN(1000); {
	case r.g.version(payments, r.host, r.at) == newPayments && n < 850:
		p.incident()
	case n < 870:
		p.captured()
	case n < 980:
		p.declined()
	default:
		took := p.ms(3000, 3040)
		p.log(took, payments, record.Error, "issuer "+p.issuer+" did not answer within 3000 ms", "order", r.order, "issuer", p.issuer, "duration_ms", took)
		p.failed(502)
	}
}

// captured ends the checkout well.
func (p purchase) captured() {
	took := p.ms(90, 420)
	p.log(took, payments, record.Info, fmt.Sprintf("captured %s EUR for order %d", money(p.cents), p.order),
		"order", p.order, "issuer", p.issuer, "amount", float64(p.cents)/100, "duration_ms", took)
	p.log(p.ms(1, 5), orders, record.Info, fmt.Sprintf("order %d paid", p.order), "order", p.order)
	p.access("POST", "/checkout", 201)
}

func (p purchase) declined() {
	p.log(p.ms(90, 400), payments, record.Warn, fmt.Sprintf("issuer %s declined order %d: insufficient funds", p.issuer, p.order), "order", p.order, "issuer", p.issuer)
	p.log(p.ms(1, 5), orders, record.Info, fmt.Sprintf("order %d waits for another card", p.order), "order", p.order)
	p.access("POST", "/checkout", 402)
}

// incident is a checkout with the new version. One of eight goes well after all.
func (p purchase) incident() {
	skew := 3100 + p.g.rand.IntN(800)
	p.log(p.ms(60, 200), payments, record.Warn, fmt.Sprintf("%s %d ms", tellingMessage, skew),
		"order", p.order, "issuer", p.issuer, "skew_ms", skew, "attempt", 2).as(telling)
	if p.oneIn(8) {
		p.captured()
		return
	}
	p.log(time.Duration(skew)*time.Millisecond, payments, record.Error, fmt.Sprintf("%s %d", newMessage, p.order),
		"order", p.order, "issuer", p.issuer, "amount", float64(p.cents)/100, "token", "tok_"+p.hex(10), "status", 502).as(failure)
	if p.oneIn(4) {
		p.failed(504)
		return
	}
	p.failed(502)
}

// failed ends a checkout that payments refused, or did not answer in time.
func (p purchase) failed(status int) {
	msg := fmt.Sprintf("payment of order %d failed: payments answered 502", p.order)
	after := p.ms(1, 6)
	if status == 504 {
		msg = fmt.Sprintf("payment of order %d failed: no answer within 5000 ms", p.order)
		after = max(after, 5*time.Second-p.took())
	}
	p.log(after, orders, record.Error, msg, "order", p.order, "status", status)
	p.log(p.ms(1, 4), web, record.Error, fmt.Sprintf("checkout of basket %s failed: orders answered %d", p.basket, status),
		"basket", p.basket, "status", status, "user", p.user, "duration_ms", p.took())
	p.access("POST", "/checkout", status)
}

func money(cents int) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }
