package scale

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Lines makes lines like those of the reference generator: JSON of 323 bytes on average, with
// levels as uneven and ids as random as there. Equal seeds give equal lines.
type Lines struct {
	r                    *rand.Rand
	templates            [5][]string
	users, tables, heads []string
	statuses             [5][5]string
}

// NewLines returns a generator.
func NewLines(seed uint64) *Lines {
	return &Lines{
		r: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)), templates: templates(),
		users:    strings.Fields(`alice bob carol dave erin frank grace heidi ivan judy mallory niaj olivia peggy rupert sybil trent victor walter zoe webmaster admin root oracle test`),
		tables:   strings.Fields(`orders users sessions invoices products carts shipments events refunds audit_log`),
		heads:    strings.Fields(`/api/v1/orders/ /api/v1/users/ /api/v2/search/ /api/v1/cart/ /api/v1/payments/ /internal/health/ /api/v1/products/ /static/img/ /api/v2/sessions/ /admin/reports/`),
		statuses: [5][5]string{{"200", "200", "200", "204", "304"}, {"200", "200", "201", "204", "302"}, {"200", "404", "429", "401", "200"}, {"500", "502", "503", "504", "400"}, {"500", "503", "500", "503", "507"}},
	}
}

// Services are the names of the first n services.
func Services(n int) []string {
	names := []string{"api-gateway", "checkout", "auth", "payments", "search", "inventory", "notifier", "billing"}
	for i := len(names); i < n; i++ {
		names = append(names, fmt.Sprintf("svc-%03d", i))
	}
	return names[:n]
}

// Append appends a line of a service to b, with its newline.
func (g *Lines) Append(b []byte, service string, t time.Time) []byte {
	level := g.level()
	b = append(b, `{"ts":"`...)
	b = t.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","level":"`...)
	b = append(b, [5]string{"debug", "info", "warn", "error", "critical"}[level]...)
	b = append(b, `","service":"`...)
	b = append(b, service...)
	b = append(b, `","host":"`...)
	b = append(b, service...)
	b = append(b, "-0fc4-"...)
	b = strconv.AppendInt(b, int64(g.r.IntN(12)), 10)
	b = append(b, `","request_id":"`...)
	b = g.hex(b, 32)
	b = append(b, `","status":`...)
	b = append(b, g.statuses[level][g.r.IntN(5)]...)
	b = append(b, `,"duration_ms":`...)
	b = strconv.AppendFloat(b, g.duration(), 'f', 3, 64)
	b = append(b, `,"path":"`...)
	b = g.path(b)
	b = append(b, `","user_id":"u`...)
	b = strconv.AppendInt(b, int64(100000+g.r.IntN(20000)), 10)
	b = append(b, `","msg":"`...)
	b = g.fill(b, g.templates[level][g.r.IntN(len(g.templates[level]))])
	return append(b, "\"}\n"...)
}

func (g *Lines) level() int {
	x := g.r.Float64()
	for i, most := range [5]float64{0.60, 0.90, 0.96, 0.99, 1} {
		if x < most {
			return i
		}
	}
	return 4
}

func (g *Lines) duration() float64 { return math.Exp(g.r.NormFloat64()*1.3 + 2.2) } // ms

func (g *Lines) hex(b []byte, n int) []byte {
	for range n {
		b = append(b, "0123456789abcdef"[g.r.IntN(16)])
	}
	return b
}

func (g *Lines) path(b []byte) []byte {
	b = append(b, g.heads[g.r.IntN(len(g.heads))]...)
	b = strconv.AppendInt(b, int64(g.r.IntN(50000)), 10)
	return append(b, [7]string{"", "", "", "/items", "/status", "/history", "/details"}[g.r.IntN(7)]...)
}

// fill appends a message by its template, escaped for JSON.
func (g *Lines) fill(b []byte, template string) []byte {
	for i := 0; i < len(template); i++ {
		switch c := template[i]; c {
		case '%':
			i++
			b = g.verb(b, template[i])
		case '"':
			b = append(b, '\\', c)
		default:
			b = append(b, c)
		}
	}
	return b
}

// verb appends a random value: %i a small number, %I a large one, %a an address, %p a path, %d a
// duration, %u a user, %e an address of mail, %h an id, %n a node, %s a shard, %f an amount, %b
// bytes, %t a table.
func (g *Lines) verb(b []byte, verb byte) []byte {
	r := g.r
	switch verb {
	case 'i':
		return strconv.AppendInt(b, int64(r.IntN(100)), 10)
	case 'I':
		return strconv.AppendInt(b, int64(r.IntN(90000000)+10000000), 10)
	case 'a':
		return fmt.Appendf(b, "10.%d.%d.%d", r.IntN(16), r.IntN(256), 1+r.IntN(254))
	case 'p':
		return g.path(b)
	case 'd':
		return append(strconv.AppendFloat(b, g.duration(), 'f', 2, 64), "ms"...)
	case 'u':
		return append(b, g.users[r.IntN(len(g.users))]...)
	case 'e':
		return fmt.Appendf(b, "%s%d@example.com", g.users[r.IntN(len(g.users))], r.IntN(1000))
	case 'h':
		return g.hex(b, 12)
	case 'n':
		return fmt.Appendf(b, "node-%d", r.IntN(40))
	case 's':
		return append(b, byte('0'+r.IntN(4)), byte('0'+r.IntN(10)))
	case 'f':
		return strconv.AppendFloat(b, float64(r.IntN(100000))/100, 'f', 2, 64)
	case 'b':
		return strconv.AppendInt(b, int64(r.IntN(1<<20)), 10)
	case 't':
		return append(b, g.tables[r.IntN(len(g.tables))]...)
	}
	return append(b, verb)
}

// templates are those of messages, by level.
func templates() [5][]string {
	return [5][]string{
		{ // debug
			"cache lookup key=session:%h hit=true age=%d",
			"cache lookup key=cart:%I hit=false backend=redis-%i took %d",
			"acquired connection from pool pool=primary idle=%i inuse=%i wait=%d",
			"released connection to pool pool=replica-%i idle=%i lifetime=%d",
			"sql: SELECT * FROM %t WHERE id = $1 [args: %I] rows=%i took %d",
			"sql: UPDATE %t SET updated_at = now() WHERE id = $1 [args: %I] affected=%i took %d",
			"outbound request GET http://%n.internal:8080%p attempt=%i timeout=%d",
			"decoded payload content-type=application/json bytes=%b from %a in %d",
			"Receiving block blk_%I src: /%a:%i dest: /%a:50010",
			"PacketResponder %i for block blk_%I terminating",
			"feature flag evaluated flag=new-ranking-%i user=%u variant=treatment",
			"heartbeat from node %n seq=%I lag=%d",
			"span finished name=handler%p trace=%h%h children=%i elapsed=%d",
			"lock acquired name=order-%I owner=%n waited=%d",
			"kafka poll topic=events.%t partition=%i offset=%I records=%i in %d",
			"token refresh skipped subject=%u expires_in=%d",
		},
		{ // info
			"handled request GET %p from %a status=200 bytes=%b in %d",
			"handled request POST %p from %a status=201 bytes=%b in %d",
			"handled request PUT %p from %a status=204 in %d",
			"user %u logged in from %a using method=password session=%h",
			"user %u logged out session=%h after %d",
			"Accepted publickey for %u from %a port %i ssh2: RSA SHA256:%h%h",
			"order %I placed by user %u total=%f currency=EUR items=%i",
			"payment %h captured amount=%f provider=stripe customer=%u took %d",
			"email queued template=receipt-%i to=%e message_id=<%h@mail.example.com>",
			"job reindex-%t finished processed=%I failed=%i in %d",
			"scheduled task cleanup-%t started run=%h",
			"connection established peer=%a:%i protocol=h2 cipher=TLS_AES_128_GCM_SHA256",
			"config reloaded from /etc/app/config.d/%i.yaml checksum=%h",
			"deployed version v2.%i.%i commit=%h on %n",
			"inventory sync completed warehouse=WH-%i skus=%I changed=%i in %d",
			"search query=\"%t %u\" hits=%I shards=%i took %d",
			"uploaded object s3://assets-%i/%h/%I.bin size=%b in %d",
			"webhook delivered url=https://hooks.example.com/%h status=200 attempt=%i in %d",
			"Served block blk_%I to /%a",
			"rotated key kid=%h next=%h owner=%n",
		},
		{ // warn
			"slow query took %d on table %t: SELECT * FROM %t WHERE user_id = %I ORDER BY created_at DESC LIMIT %i",
			"retrying request to http://%n.internal%p attempt=%i after %d: connection reset by peer",
			"rate limit close to exhaustion client=%a used=%i%% window=60s",
			"high memory usage heap=%b limit=%b node=%n",
			"deprecated endpoint called path=%p client=%a agent=curl/7.%i.0",
			"queue depth above threshold queue=%t depth=%I threshold=%i",
			"clock skew detected peer=%n skew=%d",
			"Failed password for invalid user %u from %a port %i ssh2",
			"certificate for %n.example.com expires in %i days serial=%h",
			"response larger than expected path=%p bytes=%b client=%a",
		},
		{ // error
			"request POST %p from %a failed: upstream timeout after %d shard-%s trace=%h%h",
			"failed to write to database table=%t key=%I: deadlock detected, transaction %h rolled back after %d",
			"payment %h declined for user %u: insufficient funds amount=%f",
			"dial tcp %a:%i: connect: connection refused (service=%n attempt=%i)",
			"unhandled exception in worker %i: java.lang.NullPointerException at com.example.%t.Handler.process(Handler.java:%i)",
			"panic recovered in handler %p: runtime error: index out of range [%i] with length %i goroutine %I",
			"could not deserialize message topic=events.%t partition=%i offset=%I: unexpected end of JSON input",
			"mail delivery failed to=%e relay=%a: 550 5.1.1 mailbox unavailable id=%h",
			"permission denied for user %u on resource %p policy=%h",
			"upstream http://%n.internal%p returned status=503 after %d body=\"service unavailable\"",
		},
		{ // critical
			"out of memory: killed process %i (%n) total-vm:%b anon-rss:%b",
			"replication lag on %n exceeded limit: lag=%d limit=30s, failing over to shard-%s",
			"data corruption detected in segment %h of %t: checksum mismatch want=%h got=%h",
			"disk full on %n mount=/var/lib/data/%i free=%b, entering read-only mode",
		},
	}
}
