package sim_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"

	"blobtail/record"
	"blobtail/source/natssource"
)

// parts are the partitions of a stream in use. They come, and go again, while messages are
// published; in the end their consumers are removed, and forget what they had delivered. Each
// message has an id. Some are published again much later, in a partition or in none.
type parts struct {
	n             int
	each          int // ingesters of each partition
	ingesters     int
	from, to, end time.Time
	removed       bool
}

// takes reports whether an ingester takes the partition of a message.
func (p *parts) takes(ingester int, m *message) bool {
	if p == nil || m.partition < 0 {
		return true
	}
	for i := range p.each {
		if (m.partition+i)%p.ingesters == ingester {
			return true
		}
	}
	return false
}

// inParts fills the stream with n messages, some of them twice.
func (s *stream) inParts(n int, rng *rand.Rand) {
	now := time.Now()
	from := now.Add(time.Duration(rng.IntN(60)) * time.Second)
	to := from.Add(time.Duration(rng.IntN(300)) * time.Second)
	s.parts = &parts{n: 1 + rng.IntN(4), each: 1 + rng.IntN(2), ingesters: s.w.p.Ingesters, from: from, to: to,
		end: to.Add(time.Duration(rng.IntN(120)) * time.Second)}
	for i := range n {
		service := rng.IntN(s.w.p.Services)
		at := now.Add(time.Duration(rng.IntN(60)) * time.Second)
		body, ids := s.body(fmt.Sprintf("m%d", i), service, rng)
		for tries := 1 + rng.IntN(2); tries > 0; tries-- {
			s.publish(i, service, body, ids, at)
			at = at.Add(time.Duration(rng.IntN(300)) * time.Second)
		}
	}
	s.unacked = len(s.messages)
	s.w.totals.messages = n
	s.w.totals.republished = len(s.messages) - n
}

// body makes the lines of a message, known by name.
func (s *stream) body(name string, service int, rng *rand.Rand) (body []byte, ids []string) {
	for j := range 1 + rng.IntN(6) {
		at := epoch.UnixNano() + int64(rng.IntN(s.w.p.Periods*60))*int64(time.Minute)
		if s.w.expiry != nil {
			at -= int64(rng.IntN(oldDays)) * 24 * int64(time.Hour)
		}
		id := fmt.Sprintf("%s-%d", name, j)
		body = append(record.AppendTime(append(body, `{"ts":"`...), at), fmt.Sprintf(`","level":"info","msg":"%s %0100d"}`+"\n", id, j)...)
		ids = append(ids, id)
		s.w.ledger.Sent(id, serviceName(service), at)
		if s.w.expiry != nil {
			s.w.expiry.composed(id, serviceName(service), at)
		}
	}
	return body, ids
}

func serviceName(n int) string { return []string{"a", "b", "c"}[n] }

// publish adds a message that comes at a time: as the source reads it from the subject that the
// stream has for it then.
func (s *stream) publish(i, service int, body []byte, ids []string, at time.Time) {
	subject, partition := "logs."+serviceName(service), -1
	if !at.Before(s.parts.from) && at.Before(s.parts.to) {
		partition = service % s.parts.n
		subject = fmt.Sprintf("logs-partition.%d.%s", partition, serviceName(service))
	}
	m := nats.NewMsg(subject)
	m.Header.Set(nats.MsgIdHdr, fmt.Sprintf("%08x-0000-7000-8000-%012x", s.w.seed&0xffffffff, i))
	m.Data = body
	r, err := natssource.Read(m, epoch, nil, nil)
	if err != nil {
		s.w.trouble("read a message: %v", err)
		return
	}
	s.messages = append(s.messages, &message{request: &request{r: *r, ids: ids}, ready: at, partition: partition})
}

// forget removes the consumers of the partitions once their time is over. Their messages are then
// the shared consumer's, which knows of no delivery. s.mu is held.
func (s *stream) forget() {
	if s.parts == nil || s.parts.removed || time.Now().Before(s.parts.end) {
		return
	}
	s.parts.removed = true
	for _, m := range s.messages {
		if m.partition >= 0 {
			m.partition, m.forgotten = -1, m.deliveries
			if !m.acked && m.deliveries > 0 {
				m.ready = time.Now()
			}
		}
	}
}

// delivery is the number of a delivery by its reply.
func (s *stream) delivery(to string) (n int) {
	var i int
	_, _ = fmt.Sscanf(to, "%d.%d", &i, &n) // of has looked at it
	return n
}
