package buffer

import (
	"cmp"
	"slices"

	"blobtail/record"
)

// maxOpenMessages is how many messages may wait in open batches: each takes memory here and at
// its server. docs/operate/partitions.md has the arithmetic.
const maxOpenMessages = 100_000

// message is a request with a Reply, from its acceptance, or its detection by a start,
// until all its runs are stored. Its records are not kept here.
type message struct {
	rememberedOrigin
	reply string
	left  int  // runs that are not stored
	open  int  // runs that no batch record names
	gone  bool // it will not be stored whole, and its server knows
}

// messages are the messages that are not stored. Buffer.mu guards them.
//
// Its invariant: left and open of a message that is not gone count its runs in open
// batches and in the queue. A message that is gone, or stored, is not in byOrigin.
type messages struct {
	told     Messages
	byOrigin map[record.Origin]*message // the youngest of each origin
	open     int                        // messages with runs that no batch record names
}

// repeated finds the first copy of a message that is delivered again, and replaces its
// reply. It returns nil if there is none, or if a start did not find the message named whole by
// batch records. Then no answer may call it safe, and the message is accepted again.
func (s *messages) repeated(r *record.Request) (*message, error) {
	m := s.byOrigin[r.Origin]
	if m == nil || r.Origin.IsZero() {
		return nil, nil
	}
	if same, err := m.repeatOf(r); !same || err != nil {
		return nil, err
	}
	if m.reply != r.Reply {
		s.told.Dropped(m.reply)
		m.reply = r.Reply
	}
	return m, nil
}

// add begins the account of a message with n runs.
func (s *messages) add(r rememberedOrigin, reply string, n int) *message {
	m := &message{rememberedOrigin: r, reply: reply, left: n, open: n}
	s.remember(m)
	s.open++
	return m
}

// remember makes a message known by its origin, unless a younger one is known.
func (s *messages) remember(m *message) {
	if _, ok := s.byOrigin[m.origin]; !ok && !m.origin.IsZero() {
		s.byOrigin[m.origin] = m
	}
}

// named notes that a batch record names a run of each message.
func (s *messages) named(batch []*message) {
	for _, m := range batch {
		if m.open--; m.open == 0 {
			s.open--
		}
	}
}

// stored notes that a run of each message is stored.
func (s *messages) stored(batch []*message) {
	for _, m := range batch {
		if m.left--; m.left == 0 && !m.gone {
			s.forget(m)
			s.told.Stored(m.reply)
		}
	}
}

// drop gives up messages with a run that will not be stored. They must be delivered
// again, and are accepted as new then.
func (s *messages) drop(batch []*message) {
	for _, m := range batch {
		if !m.gone {
			m.gone = true
			s.forget(m)
			s.told.Dropped(m.reply)
		}
	}
}

func (s *messages) forget(m *message) {
	if s.byOrigin[m.origin] == m {
		delete(s.byOrigin, m.origin)
	}
}

// cutMessages cuts batches until half of the messages wait in open ones. It begins with the
// batches that have the most messages, so that this costs the fewest blobs. b.mu is held.
func (b *Buffer) cutMessages() {
	var open []*Batch
	for _, ob := range b.index.open {
		if len(ob.messages) > 0 {
			open = append(open, ob)
		}
	}
	slices.SortFunc(open, func(x, y *Batch) int { return cmp.Compare(len(y.messages), len(x.messages)) })
	goal := b.messages.open / 2
	for _, ob := range open {
		if b.messages.open <= goal {
			return
		}
		b.cut(ob, byMessages)
	}
}

// crowded reports whether the server of the messages delivers no more soon, and most that are not
// stored wait in open batches. If most are cut already, their acknowledgements are on the way.
func (b *Buffer) crowded() bool {
	open := b.messages.open
	return 2*open > len(b.messages.byOrigin) && b.o.Crowded != nil && b.o.Crowded()
}

// noMessages is for a buffer without messages.
type noMessages struct{}

func (noMessages) Found(string)   {}
func (noMessages) Stored(string)  {}
func (noMessages) Dropped(string) {}
