package buffer

import "blobtail/record"

// maxOpenMessages is how many messages may wait in open batches before these are
// cut early: a server stops delivering when too many are not acknowledged.
const maxOpenMessages = 10000

// message is a request with a Reply, from the moment it is accepted, or found by
// a start, until all its runs are stored. Of its records nothing is kept here.
type message struct {
	rememberedOrigin
	reply string
	left  int  // runs that are not stored
	open  int  // runs that no batch record names
	gone  bool // it will not be stored whole, and its server knows
}

// repeated answers a message that is delivered again while its first copy is
// still here: only the reply is new. Where the copy is not here any more, or was
// not named whole by batch records before a start, the message is taken again,
// because then nobody may be told that it is safe. The message is nil then.
// b.mu is held.
func (b *Buffer) repeated(r *record.Request) (*message, error) {
	m := b.messages[r.Origin]
	if m == nil || r.Origin.IsZero() {
		return nil, nil
	}
	if same, err := m.repeatOf(r); !same || err != nil {
		return nil, err
	}
	if m.reply != r.Reply {
		b.o.Messages.Dropped(m.reply)
		m.reply = r.Reply
	}
	b.m.redelivered.Inc()
	return m, nil
}

// newMessage begins the account of a message with n runs. b.mu is held.
func (b *Buffer) newMessage(r *record.Request, n, expired int) *message {
	m := &message{reply: r.Reply, left: n, open: n}
	m.rememberedOrigin = rememberedOrigin{
		origin: r.Origin, sum: r.Sum, outcome: r.Outcome, defaultTime: r.DefaultTime, expired: uint32(expired),
	}
	b.remember(m)
	b.openMessages++
	return m
}

// remember makes a message known by its origin, unless a younger copy is.
// b.mu is held.
func (b *Buffer) remember(m *message) {
	if _, ok := b.messages[m.origin]; !ok && !m.origin.IsZero() {
		b.messages[m.origin] = m
	}
}

// named notes that a batch record names a run of each of these messages.
// b.mu is held.
func (b *Buffer) named(messages []*message) {
	for _, m := range messages {
		if m.open--; m.open == 0 {
			b.openMessages--
		}
	}
}

// cutMessages cuts every open batch that holds messages when too many wait.
// b.mu is held.
func (b *Buffer) cutMessages() {
	if b.openMessages < maxOpenMessages {
		return
	}
	for _, ob := range b.open {
		if len(ob.messages) > 0 {
			b.cut(ob)
		}
	}
}

// storedMessages notes that a run of each of these messages is stored.
// b.mu is held.
func (b *Buffer) storedMessages(messages []*message) {
	for _, m := range messages {
		if m.left--; m.left == 0 && !m.gone {
			b.forgetMessage(m)
			b.o.Messages.Stored(m.reply)
		}
	}
}

// dropMessages gives up messages of which a run will not be stored: they must be
// delivered again, and taken as new then. b.mu is held.
func (b *Buffer) dropMessages(messages []*message) {
	for _, m := range messages {
		if !m.gone {
			m.gone = true
			b.forgetMessage(m)
			b.o.Messages.Dropped(m.reply)
		}
	}
}

func (b *Buffer) forgetMessage(m *message) {
	if b.messages[m.origin] == m {
		delete(b.messages, m.origin)
	}
}

// dropOpen gives up the messages of open batches at the end: a start leaves them
// out, so the sooner they are delivered again the better.
func (b *Buffer) dropOpen() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ob := range b.open {
		b.dropMessages(ob.messages)
	}
}

// noMessages is told of messages where there are none.
type noMessages struct{}

func (noMessages) Found(string)   {}
func (noMessages) Stored(string)  {}
func (noMessages) Dropped(string) {}
