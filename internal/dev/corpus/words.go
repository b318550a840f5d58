package corpus

import (
	_ "embed" // of the messages
	"strconv"
	"strings"
)

// A pattern is a text with names of values in it, each behind a dollar sign.
type pattern []piece

// piece is a text with the name of the value behind it, or none.
type piece struct{ text, name string }

func parsePattern(s string) (p pattern) {
	for {
		text, rest, more := strings.Cut(s, "$")
		end := 0
		for end < len(rest) && rest[end] >= 'a' && rest[end] <= 'z' {
			end++
		}
		if p = append(p, piece{text, rest[:end]}); !more {
			return p
		}
		s = rest[end:]
	}
}

// fill appends the text with values that a function appends.
func (p pattern) fill(b []byte, value func(b []byte, name string) []byte) []byte {
	for _, part := range p {
		if b = append(b, part.text...); part.name != "" {
			b = value(b, part.name)
		}
	}
	return b
}

// append appends a new value of a name.
func (d dice) append(b []byte, name string) []byte {
	number := func(from, to int) []byte { return strconv.AppendInt(b, int64(from+d.IntN(to-from)), 10) }
	switch name {
	case "n", "left", "found":
		return number(0, 100)
	case "sku":
		return number(1000, 1300)
	case "items":
		return number(1, 6)
	case "skew":
		return number(3100, 3900)
	case "ids": // 20 KB of them
		for range 2000 {
			b = append(d.append(b, "many"), ", "...)
		}
		return number(100_000, 1_000_000)
	case "any":
		return append(b, d.of(`"59.90 EUR"`, "59", "59.9", "true", "null", "9007199254740993", `["59.90","EUR"]`)...)
	case "few":
		return number(0, 12)
	case "person":
		return append(b, strconv.Itoa(100_000 + d.IntN(20_000))[1:]...)
	case "many":
		return number(10_000_000, 99_999_999)
	case "size":
		return number(100, 1<<20)
	case "shard":
		return append(b, byte('0'+d.IntN(4)), byte('0'+d.IntN(10)))
	case "node":
		return strconv.AppendInt(append(b, "node-"...), int64(d.IntN(40)), 10)
	case "ip":
		b = append(b, "10."...)
		for _, most := range []int{16, 256} {
			b = append(strconv.AppendInt(b, int64(d.IntN(most)), 10), '.')
		}
		return number(1, 255)
	case "ms", "wait":
		return strconv.AppendFloat(b, d.millis(), 'f', 2, 64)
	case "delay":
		return append(strconv.AppendFloat(b, d.millis(), 'f', 2, 64), "ms"...)
	case "hex", "basket", "session":
		return d.hex(b, 12)
	case "amount":
		return strconv.AppendFloat(b, float64(500+d.IntN(30_000))/100, 'f', 2, 64)
	case "path":
		b = strconv.AppendInt(append(b, d.route()...), int64(d.IntN(50_000)), 10)
		return append(b, d.of("", "", "/rows", "/state", "/log")...)
	case "user":
		return append(b, d.of("alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan", "judy", "mallory", "niaj",
			"olivia", "peggy", "rupert", "sybil", "trent", "victor", "walter", "zoe")...)
	case "table":
		return append(b, d.of("orders", "baskets", "people", "refunds", "parcels", "prices", "reviews", "vouchers", "visits")...)
	case "issuer":
		return append(b, d.of("visa", "mastercard", "amex", "girocard")...)
	case "query":
		return append(b, d.of("red shoes", "größe 42", "tea pot", "スニーカー", "lamp", "crème brûlée torch", "usb-c cable")...)
	}
	return append(append(b, '$'), name...)
}

// route draws the beginning of a path.
func (d dice) route() string {
	return d.of("/shop/v1/orders/", "/shop/v1/baskets/", "/shop/v2/find/", "/shop/v1/people/", "/shop/v1/payments/",
		"/pages/v1/home/", "/pages/v1/item/", "/files/v1/thumb/")
}

// parseMessages has the messages of [Options.All] by level, from debug on.
func parseMessages() (all [5][]pattern) {
	for i, level := range strings.Split(messages, "\n\n") {
		for line := range strings.Lines(level) {
			if line = strings.TrimSpace(line); line != "" {
				all[i] = append(all[i], parsePattern(line))
			}
		}
	}
	return all
}

// messages are by level, with an empty line between two. Measurements search for some of their
// words: a change of them changes what is measured.
//
//go:embed messages.txt
var messages string
