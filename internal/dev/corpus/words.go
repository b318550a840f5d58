package corpus

import (
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
		b = append(b, d.of("/shop/v1/orders/", "/shop/v1/baskets/", "/shop/v2/find/", "/shop/v1/people/", "/shop/v1/payments/", "/pages/v1/home/", "/pages/v1/item/", "/files/v1/thumb/")...)
		b = strconv.AppendInt(b, int64(d.IntN(50_000)), 10)
		return append(b, d.of("", "", "/rows", "/state", "/log")...)
	case "user":
		return append(b, d.of("alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan", "judy", "mallory", "niaj",
			"olivia", "peggy", "rupert", "sybil", "trent", "victor", "walter", "zoe")...)
	case "table":
		return append(b, d.of("orders", "baskets", "people", "refunds", "parcels", "prices", "reviews", "vouchers", "visits")...)
	case "issuer":
		return append(b, d.of("visa", "mastercard", "amex", "girocard")...)
	case "query":
		return append(b, d.of("red shoes", "größe 42", "tea pot", "スニーカー", "lamp", "crème brûlée torch", "usb-c cable", "rain coat")...)
	}
	return append(append(b, '$'), name...)
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
const messages = `
session $hex is in the cache sessions and $ms ms old
basket $many is not in the cache of redis-$n, loaded from its table in $ms ms
took connection $n of the pool of the primary, $n are idle, after $ms ms
gave a connection back to the pool of replica-$n, $n are idle, used for $ms ms
sql: SELECT * FROM $table WHERE id = $many returned $n rows in $ms ms
sql: UPDATE $table SET changed = now() WHERE id = $many changed $n rows in $ms ms
asking GET http://$node.internal:8080$path, attempt $n, it may take $ms ms
read body of type application/json, $size bytes from $ip in $ms ms
storing block blk_$many from $ip:$n at $ip:50010
writer $n of block blk_$many has ended and closed its file
switch ranking-$n is on for $user, who is in group B of the experiment
heartbeat of $node is message $many, $ms ms behind the clock
span of handler $path in trace $hex$hex with $n children took $ms ms
lock order-$many is held by $node, which got it after $ms ms
poll of events.$table/$n from $many gave $n messages in $ms ms
token of $user is good for $ms ms more and is not renewed

GET $path for $ip answered 200, $size bytes in $ms ms
POST $path for $ip answered 201, $size bytes in $ms ms
PUT $path for $ip answered 204 without a body in $ms ms
$user signed in from $ip with a password, session $hex
$user signed out and ended session $hex after $ms ms
accepted key SHA256:$hex$hex of $user from $ip port $n
order $many of $user is placed: $n items, $amount EUR
payment $hex captured $amount EUR by $issuer for $user in $ms ms
receipt $n for $user$n@example.com is queued as <$hex@mail.example.com>
job reindex-$table is done: $many rows, $n failed, in $ms ms
job tidy-$table of the timetable begins as run $hex
peer $ip:$n connected by h2 with TLS_AES_128_GCM_SHA256
read settings again from /etc/shop/conf.d/$n.yaml, checksum $hex
deployed version v3.$n.$n of commit $hex on $node
stock of warehouse W-$n is counted: $many parts, $n differ, in $ms ms
search for "$table of $user" found $many in $n shards within $ms ms
uploaded s3://pictures-$n/$hex/$many.webp, $size bytes in $ms ms
hook https://hooks.example.com/$hex answered 200 at attempt $n in $ms ms
sent block blk_$many to its reader at $ip
key $hex of $node follows $hex

slow query of $ms ms: SELECT * FROM $table WHERE owner = $many ORDER BY changed DESC LIMIT $n
attempt $n at http://$node.internal$path after $ms ms: connection reset by peer
client $ip has used $n % of its requests of a minute
heap has $size of $size bytes on $node
old route $path was called by $ip with curl/8.$n.0
queue of $table holds $many messages, more than $n
clock of $node differs by $ms ms
refused password of unknown person $user from $ip port $n
certificate of $node.example.com with serial $hex ends in $n days
answer of $path was larger than expected, $size bytes for $ip

POST $path for $ip failed: upstream timeout after $delay shard-$shard trace=$hex$hex
write to $table of key $many failed: deadlock, rolled back $hex after $ms ms
payment $hex of $user was declined: insufficient funds for $amount EUR
dial tcp $ip:$n: connect: connection refused (service=$node attempt=$n)
worker $n stopped: java.lang.IllegalStateException at com.example.$table.Worker.step(Worker.java:$n)
recovered from panic in $path: slice bounds out of range [$n:$n], goroutine $many
undecodable message in events.$table/$n at $many: unexpected end of input
mail delivery failed to=$user$n@example.com relay=$ip: 550 mailbox unavailable, id $hex
permission denied for user $user on resource $path by policy $hex
http://$node.internal$path answered 503 after $ms ms: "busy"

killed process $n on $node for lack of memory, $size bytes resident of $size
replica $node lags by $ms ms, promoting shard-$shard
segment $hex of $table is damaged: checksum $hex, expected $hex
volume /var/lib/data/$n of $node is full, $size bytes left, writes are refused`
