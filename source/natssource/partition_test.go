package natssource_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
	"blobtail/source/natssource"
)

// inPartitions gives a stream the transform that docs/operate/partitions.md shows.
func inPartitions(n int) func(*jetstream.StreamConfig) {
	return mapped("logs.*", fmt.Sprintf("logs-partition.{{partition(%d,1)}}.{{wildcard(1)}}", n))
}

func mapped(from, to string) func(*jetstream.StreamConfig) {
	return func(c *jetstream.StreamConfig) {
		c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: from, Destination: to}
	}
}

func partitions(numbers ...int) func(*natssource.Options) {
	return func(o *natssource.Options) { o.Partitions = numbers }
}

func share(ordinal, of int) func(*natssource.Options) {
	return func(o *natssource.Options) { o.Share = natssource.Share{Ordinal: ordinal, Ingesters: of} }
}

// update changes the stream.
func (e *env) update(change ...func(*jetstream.StreamConfig)) {
	e.t.Helper()
	c := testenv.Stream("LOGS")
	for _, f := range change {
		f(&c)
	}
	if _, err := e.js.UpdateStream(e.t.Context(), c); err != nil {
		e.t.Fatal(err)
	}
}

// servicesOf counts the lines of requests by their service.
func servicesOf(t testing.TB, m *memory) map[string]int {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	n := map[string]int{}
	for i := range m.requests {
		for _, l := range linesOf(t, &m.requests[i]) {
			n[l.Service]++
		}
	}
	return n
}

// another runs a second source on the same server.
func (e *env) another(m *memory, change ...func(*natssource.Options)) *env {
	e.t.Helper()
	o := &env{t: e.t, nats: e.nats, conn: e.conn, js: e.js, log: &syncBuffer{}}
	o.run(m, change...)
	return o
}

// With partitions a service is what it was without them, and goes to the ingester that takes its
// partition. Messages that the transform does not match go to any.
func TestPartitions(t *testing.T) {
	t.Parallel()
	e := newEnv(t, inPartitions(4))
	low, high := &memory{}, &memory{}
	e.run(low, partitions(0, 1))
	o := e.another(high, partitions(2, 3))
	low.stored, high.stored = e.stored, o.stored
	for i := range 40 {
		for range 3 {
			e.publish(fmt.Sprintf("logs.s%d", i), `{"msg":"a"}`)
		}
	}
	e.publish("logs.web.node-1", `{"msg":"a"}`)
	e.publish("logs.any", `{"msg":"a"}`, "Blobtail-Service", "com.example")
	e.left(0)
	a, b := servicesOf(t, low), servicesOf(t, high)
	if a["web"]+b["web"] != 1 || a["com.example"]+b["com.example"] != 1 {
		t.Errorf("%v and %v lack what is in no partition, or has a header", a, b)
	}
	for i := range 40 {
		name := fmt.Sprintf("s%d", i)
		if max(a[name], b[name]) != 3 || min(a[name], b[name]) != 0 {
			t.Errorf("%s: %d and %d records, want 3 at one of the two", name, a[name], b[name])
		}
	}
	if len(a) < 8 || len(b) < 8 {
		t.Errorf("%d and %d services", len(a), len(b))
	}
}

// stored acknowledges a message.
func (e *env) stored(reply string) { e.source.Stored(reply) }

// The number of an ingester among others gives it its partitions: each goes to two.
func TestShare(t *testing.T) {
	t.Parallel()
	e := newEnv(t, inPartitions(6))
	var sources []*env
	for i := range 3 {
		sources = append(sources, e.another(&memory{}, share(i, 3)))
	}
	want := map[string]int{}
	for p := range 6 {
		want[fmt.Sprint("blobtail-", p)] = 2
	}
	want["blobtail"] = 3
	testkit.Until(t, "each partition is asked for by two", func() bool {
		return maps.Equal(e.asking(), want)
	})
	sources[1].stop()
	e.update(inPartitions(7)) // one more is noticed without a restart
	testkit.Until(t, "the others ask for the new one too", func() bool {
		n := e.asking()
		return n["blobtail"] == 2 && n["blobtail-6"] >= 1 && n["blobtail-1"] >= 1 && n["blobtail-0"] >= 1
	})
}

// asking is how many pulls wait at each consumer.
func (e *env) asking() map[string]int {
	stream, err := e.js.Stream(e.t.Context(), "LOGS")
	if err != nil {
		e.t.Fatal(err)
	}
	n := map[string]int{}
	for c := range stream.ListConsumers(e.t.Context()).Info() {
		n[c.Name] = c.NumWaiting
	}
	return n
}

// If an ingester goes away, another that is given its partition has its messages: those that it
// was not delivered at once, and the others when they are delivered again.
func TestPartitionHandedOver(t *testing.T) {
	t.Parallel()
	e := newEnv(t, inPartitions(1))
	first, second := &memory{}, &memory{}
	e.run(first, partitions(0))
	for i := range 10 {
		e.publish("logs.web", fmt.Sprintf(`{"msg":"%d"}`, i))
	}
	first.await(t, 10)
	e.source.Stored(first.requests[0].Reply)
	e.left(9)
	o := e.another(second, partitions(0))
	second.stored = o.stored
	for _, r := range first.requests[1:] {
		e.source.Dropped(r.Reply) // as the buffer does at the end
	}
	e.stop()
	e.left(0)
	origins := map[record.Origin]bool{}
	for _, r := range second.await(t, 9) {
		origins[r.Origin] = true
	}
	for i, r := range first.requests {
		if origins[r.Origin] != (i > 0) {
			t.Errorf("message %d: handed over %v", i, origins[r.Origin])
		}
	}
}

// A stream in use gets partitions, more of them, and loses them again, while messages come. No
// ingester is stopped for it. Each message is taken, and keeps its service and identity whatever
// consumer it comes from.
func TestToPartitionsAndBack(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	all := &everything{t: t, lines: map[string]map[record.Origin]bool{}}
	soon := ackWait(2 * time.Second)     // for what an ingester had that ended
	one := e.another(all.memory(), soon) // today's ingester
	all.add(one)
	n := 0
	publish := func(some int) {
		for range some {
			service := fmt.Sprintf("s%d", n%23)
			key := fmt.Sprintf("%08x-0000-7000-8000-%012x", 0x019a0000+n, n)
			e.publish("logs."+service, fmt.Sprintf(`{"ts":"2026-11-20T10:00:00Z","msg":"%s %d"}`, service, n), nats.MsgIdHdr, key)
			n++
		}
	}
	publish(100) // before: some are delivered, and none is stored
	testkit.Until(t, "they are delivered", func() bool { return all.len() >= 100 })
	two := e.another(all.memory(), soon, partitions(0, 1))
	all.add(two)
	publish(50) // the new ingester is there, the transform is not
	e.update(inPartitions(3))
	publish(50) // the last partition has no ingester yet
	three := e.another(all.memory(), soon, partitions(2))
	all.add(three)
	publish(50)
	one.stop()
	publish(50)
	all.store()
	e.left(0)
	e.update(inPartitions(2))
	publish(50)
	e.update() // and back
	publish(50)
	one = e.another(all.memory(), soon)
	all.add(one)
	publish(50)
	all.store()
	e.left(0)
	two.stop()
	three.stop()
	for _, c := range []string{"blobtail-0", "blobtail-1", "blobtail-2"} {
		if err := e.js.DeleteConsumer(t.Context(), "LOGS", c); err != nil {
			t.Fatal(err)
		}
	}
	publish(50)
	e.left(0)
	all.check(n)
}

// everything collects what several sources take. Messages are stored from the first call of store on.
type everything struct {
	t      *testing.T
	mu     sync.Mutex
	lines  map[string]map[record.Origin]bool // the origins of each message's text
	all    []*memory
	envs   []*env
	stores bool
}

func (a *everything) memory() *memory {
	m := &memory{}
	a.all = append(a.all, m)
	return m
}

// add has a source's messages stored once all are.
func (a *everything) add(e *env) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.envs = append(a.envs, e)
	if a.stores {
		a.storeAll()
	}
}

func (a *everything) len() (n int) {
	for _, m := range a.all {
		m.mu.Lock()
		n += len(m.requests)
		m.mu.Unlock()
	}
	return n
}

// store acknowledges all messages, also the coming ones. Sources that have ended have given
// theirs back.
func (a *everything) store() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stores = true
	a.storeAll()
}

func (a *everything) storeAll() {
	for i, e := range a.envs {
		m := a.all[i]
		m.mu.Lock()
		if m.stored == nil {
			m.stored = e.stored
			for _, r := range m.requests {
				e.stored(r.Reply)
			}
		}
		m.mu.Unlock()
	}
}

// check compares all that was taken with n messages.
func (a *everything) check(n int) {
	a.t.Helper()
	seen := map[string]record.Origin{}
	for _, m := range a.all {
		m.mu.Lock()
		for i := range m.requests {
			r := &m.requests[i]
			for _, l := range linesOf(a.t, r) {
				service, _, _ := strings.Cut(l.Msg, " ")
				if l.Service != service {
					a.t.Errorf("%q is of service %s", l.Msg, l.Service)
				}
				if was, again := seen[l.Msg]; again && was != r.Origin {
					a.t.Errorf("%q has two identities: a reader shows it twice", l.Msg)
				}
				seen[l.Msg] = r.Origin
			}
		}
		m.mu.Unlock()
	}
	if len(seen) != n {
		a.t.Errorf("%d different messages were taken, of %d", len(seen), n)
	}
}

// A message that its publisher sends again is the same one with and without a partition: the same
// identity, service and text, also of what is rejected.
func TestSameWithAndWithoutPartition(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ subject, partitioned string }{
		{"logs.web", "logs-partition.3.web"},
		{"logs.web.node-1.x", "logs-partition.39.web.node-1.x"},
		{"logs.3", "logs-partition.0.3"},
		{"logs.3.4", "logs-partition.0.3.4"},
		{"logs.web", "logs-partition.1.logs-partition.0.web"}, // mapped by two servers
		{"logs.logs-partition", "logs-partition.1.logs-partition"},
		{"logs-partition.x.web", "logs-partition.x.web"}, // no number
		{"logs-partition.3", "logs-partition.3"},         // no service
	} {
		var read []string
		for _, subject := range []string{tt.subject, tt.partitioned} {
			m := nats.NewMsg(subject)
			m.Header.Set(nats.MsgIdHdr, "019a0000-0000-7000-8000-000000000001")
			m.Data = []byte("{\"msg\":\"a\"}\n{\"ts\":\"2099-01-01T00:00:00Z\"}\n{broken")
			r, err := natssource.Read(m, time.Unix(1e9, 0), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			read = append(read, fmt.Sprintf("%x %v %s", r.Origin, r.Services, r.Data))
		}
		if read[0] != read[1] {
			t.Errorf("%s:\n%s\n%s:\n%s", tt.subject, read[0], tt.partitioned, read[1])
		}
	}
}

// A server's mapping of all of an account does the same as a stream's transform, also for subjects
// with more tokens.
func TestMappedByTheServer(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(c *jetstream.StreamConfig) { c.Subjects = []string{"logs.>", "logs-partition.>"} })
	e.nats.Map("logs.*", "logs-partition.{{partition(2,1)}}.{{wildcard(1)}}")
	e.nats.Map("logs.*.>", "logs-partition.{{partition(2,1)}}.{{wildcard(1)}}.>")
	zero, one := &memory{}, &memory{}
	e.run(zero, partitions(0))
	o := e.another(one, partitions(1))
	zero.stored, one.stored = e.stored, o.stored
	for i := range 20 {
		e.publish(fmt.Sprintf("logs.s%d", i), `{"msg":"a"}`)
		e.publish(fmt.Sprintf("logs.s%d.node-%d.b", i, i), `{"msg":"a"}`)
	}
	e.left(0)
	a, b := servicesOf(t, zero), servicesOf(t, one)
	for i := range 20 {
		name := fmt.Sprintf("s%d", i)
		if max(a[name], b[name]) != 2 || min(a[name], b[name]) != 0 {
			t.Errorf("%s: %d and %d", name, a[name], b[name])
		}
	}
}

// Partitions that cannot be taken are an error with the reason and the fix, of a start and of a
// check alike.
func TestUnfitPartitions(t *testing.T) {
	t.Parallel()
	consumer := func(name string, filters ...string) func(*env) {
		return func(e *env) {
			_, err := e.js.CreateConsumer(e.t.Context(), "LOGS", jetstream.ConsumerConfig{
				Durable: name, AckPolicy: jetstream.AckExplicitPolicy, FilterSubjects: filters})
			if err != nil {
				e.t.Fatal(err)
			}
		}
	}
	for name, tt := range map[string]struct {
		stream  func(*jetstream.StreamConfig)
		prepare func(*env)
		options func(*natssource.Options)
		want    string // "": it is accepted
	}{
		"another consumer takes a partition": {inPartitions(4), consumer("mine", "logs-partition.*.web"), partitions(1, 2),
			"consumer blobtail-1 of stream LOGS has to take logs-partition.1.>, and consumer mine with logs-partition.*.web takes some of that too"},
		"another consumer takes the rest": {inPartitions(4), consumer("mine", "logs.web"), partitions(1),
			"consumer blobtail of stream LOGS has to take logs.>, and consumer mine with logs.web takes some"},
		"another consumer takes all":          {inPartitions(4), consumer("mine"), partitions(1), "consumer mine with all subjects takes some"},
		"another consumer, and no partitions": {inPartitions(4), consumer("mine", "logs.>"), partitions(), "consumer mine with logs.>"},
		"the shared one has another filter": {inPartitions(4), consumer("blobtail", ">"), partitions(1),
			"consumer blobtail-1 of stream LOGS has to take logs-partition.1.>, and consumer blobtail with > takes some"},
		"the shared one takes all":                {inPartitions(4), consumer("blobtail"), partitions(1), ""},
		"the shared one leaves them":              {inPartitions(4), consumer("blobtail", "logs.>", "logs"), partitions(1), ""},
		"the shared one has the stream's subject": {inPartitions(4), consumer("blobtail", "logs.>"), partitions(1), ""},
		"the partition's own with others":         {inPartitions(4), consumer("blobtail-1", "logs-partition.1.web"), partitions(1), "consumer blobtail-1 of stream LOGS has a filter that leaves out logs-partition.1.>"},
		"beyond the last":                         {inPartitions(4), nil, partitions(4), "nats.partitions has 4, and stream LOGS has the partitions 0 to 3"},
		"a share of no partitions":                {func(*jetstream.StreamConfig) {}, nil, share(1, 3), "has no partitions to count"},
		"numbers before the transform":            {func(*jetstream.StreamConfig) {}, nil, partitions(1), ""},
		"the number in the service's place": {mapped("logs.*", "logs.{{partition(7,1)}}.{{wildcard(1)}}"), nil, partitions(),
			"would be taken for the service; the number belongs behind logs-partition., and the service behind that: nats stream edit LOGS --transform-source 'logs.*' --transform-destination 'logs-partition.{{partition(40,1)}}.{{wildcard(1)}}' --force"},
		"no number":         {mapped("logs.*", "logs-partition.{{wildcard(1)}}"), nil, partitions(1), "would be taken for the service"},
		"another transform": {mapped("logs.*", "logs.{{wildcard(1)}}.x"), nil, partitions(), ""},
		"interest":          {func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy }, nil, partitions(1), "retention interest"},
		"interest, and others take the partitions": {func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy; inPartitions(4)(c) }, nil, partitions(), "retention interest"},
		"interest, and a server maps": {func(c *jetstream.StreamConfig) {
			c.Retention, c.Subjects = jetstream.InterestPolicy, []string{"logs.>", "logs-partition.>"}
		}, nil, partitions(), "retention interest"},
		"interest alone":     {func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy }, nil, partitions(), ""},
		"limits":             {func(c *jetstream.StreamConfig) { c.Retention = jetstream.LimitsPolicy; inPartitions(4)(c) }, consumer("mine"), partitions(1), ""},
		"other subjects too": {func(c *jetstream.StreamConfig) { c.Subjects = []string{"logs.>", "metrics.>"} }, consumer("blobtail"), partitions(1), "nats consumer edit LOGS blobtail --filter 'logs.>' --force"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, tt.stream)
			if tt.prepare != nil {
				tt.prepare(e)
			}
			checked := e.check(tt.options)
			s, err := e.open(tt.options)
			if fmt.Sprint(checked) != fmt.Sprint(err) {
				t.Errorf("Check: %v\nOpen: %v", checked, err)
			}
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				s.Close(t.Context())
				return
			}
			var refused *natssource.RefusedError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("%v, want %s", err, tt.want)
			}
		})
	}
}

// Messages of a partition that no ingester takes are reported by all ingesters.
func TestUntaken(t *testing.T) {
	t.Parallel()
	for name, numbers := range map[string][]int{"others taken": {0}, "none taken": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, inPartitions(2))
			before := e.another(&memory{}, partitions(0)) // it narrows the shared consumer
			if numbers == nil {
				before.stop()
			}
			e.run(&memory{}, partitions(numbers...), func(o *natssource.Options) { o.Survey(100 * time.Millisecond) })
			want := map[int]bool{1: true, 0: numbers == nil}
			for i := range 20 {
				e.publish(fmt.Sprintf("logs.s%d", i), `{"msg":"a"}`)
			}
			testkit.Until(t, "the log has the partitions", func() bool {
				for text := range strings.Lines(e.log.String()) {
					var said struct {
						Partitions []int
						Messages   int
						Message    string
					}
					if json.Unmarshal([]byte(text), &said) == nil && strings.HasPrefix(said.Message, "no ingester asks") && said.Messages > 0 {
						if slices.Contains(said.Partitions, 1) == want[1] && slices.Contains(said.Partitions, 0) == want[0] {
							return e.value("blobtail_nats_untaken_messages", "") > 0
						}
					}
				}
				return false
			})
		})
	}
}

// What the last ingester of a partition was delivered and gave back, or had when it was killed, is
// reported too: nobody asks for it.
func TestUntakenOfOneThatEnded(t *testing.T) {
	t.Parallel()
	e := newEnv(t, inPartitions(1))
	m := &memory{}
	before := e.another(m, partitions(0))
	for range 10 {
		e.publish("logs.web", `{"msg":"a"}`)
	}
	m.await(t, 10)
	before.stop()
	e.run(&memory{}, func(o *natssource.Options) { o.Survey(100 * time.Millisecond) })
	testkit.Until(t, "its messages are counted", func() bool {
		return e.value("blobtail_nats_untaken_messages", "") == 10
	})
}

// If the transform goes while ingesters run with a share, they go on with what they had, also after
// they had to look at the stream again.
func TestShareWithoutTransform(t *testing.T) {
	t.Parallel()
	e := newEnv(t, inPartitions(2))
	m := &memory{}
	e.run(m, share(0, 1))
	m.stored = e.stored
	e.publish("logs.web", `{"msg":"a"}`)
	e.left(0)
	e.update()
	if err := e.js.DeleteConsumer(t.Context(), "LOGS", "blobtail-1"); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		e.publish("logs.web", `{"msg":"a"}`)
	}
	e.left(0)
	testkit.Until(t, "all consumers are there", func() bool {
		return e.asking()["blobtail-1"] == 1
	})
}

// A consumer that is near its limit of unacknowledged messages is reported, so that the buffer cuts
// batches; and no more when they are acknowledged.
func TestCrowded(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	m := &memory{}
	e.run(m, func(o *natssource.Options) { o.Pending(1000) })
	if e.source.Crowded() {
		t.Error("crowded without a message")
	}
	for range 800 {
		e.publish("logs.web", `{"msg":"a"}`)
	}
	testkit.Until(t, "crowded", e.source.Crowded)
	m.mu.Lock()
	replies := m.requests
	m.stored = e.stored
	m.mu.Unlock()
	for _, r := range replies {
		e.source.Stored(r.Reply)
	}
	e.left(0)
	testkit.Until(t, "not crowded any more", func() bool { return !e.source.Crowded() })
}
