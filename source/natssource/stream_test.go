package natssource_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
	"blobtail/source/natssource"
)

// A stream that discards unflushed messages is refused, with the command that fixes
// it, unless the options allow it.
func TestLossyStreams(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*jetstream.StreamConfig)
		want   string // in the error; "" accepts it
	}{
		"as it should be": {func(*jetstream.StreamConfig) {}, ""},
		"limits, discard new": {func(c *jetstream.StreamConfig) {
			c.Retention, c.MaxBytes, c.MaxMsgs = jetstream.LimitsPolicy, 1<<20, 100
		}, ""},
		"discard old without limits": {func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld }, ""},
		"max_bytes": {func(c *jetstream.StreamConfig) { c.Discard, c.MaxBytes = jetstream.DiscardOld, 1<<20 },
			"discard old with max_bytes 1048576); mend it: nats stream edit LOGS --discard new --force"},
		"max_msgs": {func(c *jetstream.StreamConfig) { c.Discard, c.MaxMsgs = jetstream.DiscardOld, 7 },
			"discard old with max_msgs 7); mend it: nats stream edit LOGS --discard new --force"},
		"max_msgs_per_subject": {func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 7 },
			"nats stream edit LOGS --max-msgs-per-subject=-1 --force"},
		"max_msgs_per_subject, discard new": {func(c *jetstream.StreamConfig) {
			c.MaxMsgsPerSubject, c.MaxMsgs, c.DiscardNewPerSubject = 7, 100, true
		}, ""},
		"max_age": {func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
			"max_age 1h0m0s); mend it: nats stream edit LOGS --max-age 0s --force"},
		"all": {func(c *jetstream.StreamConfig) {
			c.Discard, c.MaxMsgs, c.MaxAge, c.MaxMsgsPerSubject = jetstream.DiscardOld, 9, time.Hour, 7
		}, "--discard new --max-msgs-per-subject=-1 --max-age 0s --force (or take it as it is: --allow-lossy-stream)"},
		// It discards nothing as long as its server runs; that is the operator's choice.
		"memory": {func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, tt.change)
			checked := e.check()
			s, err := e.open()
			if fmt.Sprint(checked) != fmt.Sprint(err) {
				t.Errorf("Check: %v; Open: %v", checked, err)
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
			if s, err = e.open(func(o *natssource.Options) { o.AllowLossy = true }); err != nil {
				t.Fatal(err)
			}
			s.Close(t.Context())
		})
	}
}

// An unusable stream is an error that includes a fix, whether or not lossy ones are
// allowed.
func TestUnfit(t *testing.T) {
	for name, tt := range map[string]struct {
		make func(*testing.T, jetstream.JetStream)
		want string
	}{
		"missing": {func(*testing.T, jetstream.JetStream) {}, "there is no stream LOGS; make it: nats stream add LOGS --subjects 'logs.>'"},
		"other subjects": {func(t *testing.T, js jetstream.JetStream) {
			c := testenv.Stream("LOGS")
			c.Subjects = []string{"metrics.*"}
			create(t, js, c)
		}, "--subjects 'metrics.*,logs.>'"},
		"mirror": {func(t *testing.T, js jetstream.JetStream) {
			c := testenv.Stream("OTHER")
			create(t, js, c)
			c = testenv.Stream("LOGS")
			c.Subjects, c.Retention, c.Mirror = nil, jetstream.LimitsPolicy, &jetstream.StreamSource{Name: "OTHER"}
			create(t, js, c)
		}, "take from the stream that it mirrors, OTHER"},
		"consumer that acknowledges all": {func(t *testing.T, js jetstream.JetStream) {
			c := testenv.Stream("LOGS")
			c.Retention = jetstream.LimitsPolicy
			create(t, js, c)
			_, err := js.CreateConsumer(t.Context(), "LOGS", jetstream.ConsumerConfig{Durable: "blobtail", AckPolicy: jetstream.AckAllPolicy})
			if err != nil {
				t.Fatal(err)
			}
		}, "nats consumer rm LOGS blobtail --force"},
		"subject logs": {func(t *testing.T, js jetstream.JetStream) {
			c := testenv.Stream("LOGS")
			c.Subjects = []string{"logs"}
			create(t, js, c)
		}, "--subjects 'logs,logs.>'"},
		"consumer that pushes": {func(t *testing.T, js jetstream.JetStream) {
			create(t, js, testenv.Stream("LOGS"))
			_, err := js.CreatePushConsumer(t.Context(), "LOGS", jetstream.ConsumerConfig{Durable: "blobtail",
				AckPolicy: jetstream.AckExplicitPolicy, DeliverSubject: "elsewhere"})
			if err != nil {
				t.Fatal(err)
			}
		}, "pushes messages; remove it, and it is made as it should be: nats consumer rm LOGS blobtail --force"},
		"consumer of one service":    {filtered("logs.web"), "has a filter that leaves out logs.>; remove it"},
		"consumer of short subjects": {filtered("logs.*", "logs.*.*"), "has a filter that leaves out logs.>; remove it"},
	} {
		t.Run(name, func(t *testing.T) {
			e := &env{t: t, nats: testenv.StartNATS(t), log: &syncBuffer{}}
			_, e.js = e.nats.Connect()
			tt.make(t, e.js)
			lossy := func(o *natssource.Options) { o.AllowLossy = true }
			checked := e.check(lossy)
			_, err := e.open(lossy)
			if err == nil || !strings.Contains(err.Error(), tt.want) || checked == nil || checked.Error() != err.Error() {
				t.Errorf("%v, want %s; Check: %v", err, tt.want, checked)
			}
		})
	}
}

// filtered makes a consumer of a part of a stream that has other messages too.
func filtered(subjects ...string) func(*testing.T, jetstream.JetStream) {
	return func(t *testing.T, js jetstream.JetStream) {
		c := testenv.Stream("LOGS")
		c.Subjects = []string{"other.*", "logs.>"}
		create(t, js, c)
		_, err := js.CreateConsumer(t.Context(), "LOGS", jetstream.ConsumerConfig{Durable: "blobtail",
			AckPolicy: jetstream.AckExplicitPolicy, FilterSubjects: subjects})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func create(t testing.TB, js jetstream.JetStream, c jetstream.StreamConfig) {
	t.Helper()
	testkit.Until(t, "the files of a deleted stream of its name are gone", func() bool {
		_, err := js.CreateStream(t.Context(), c)
		const noStore = 10049 // JSStreamStoreFailed of the server
		if failed, ok := errors.AsType[*jetstream.APIError](err); ok && failed.ErrorCode == noStore {
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
		return true
	})
}

// The consumer is created correctly, and an existing one is changed if the server
// allows it.
func TestConsumer(t *testing.T) {
	e := newEnv(t, func(c *jetstream.StreamConfig) { c.Subjects = []string{"logs.*", "other"} })
	_, err := e.js.CreateConsumer(t.Context(), "LOGS", jetstream.ConsumerConfig{Durable: "blobtail",
		AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: 3, AckWait: time.Second, MaxAckPending: 10,
		FilterSubject: "logs.*", Description: "mine", InactiveThreshold: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // changed, and then created
		s, err := e.open()
		if err != nil {
			t.Fatal(err)
		}
		s.Close(t.Context())
		c := e.consumer().Config
		if c.AckPolicy != jetstream.AckExplicitPolicy || c.MaxDeliver != -1 || c.AckWait != 10*time.Minute ||
			c.MaxAckPending != 500_000 || c.InactiveThreshold != 0 || !strings.HasPrefix(c.FilterSubject, "logs.") {
			t.Errorf("%+v", c)
		}
		if err := e.js.DeleteConsumer(t.Context(), "LOGS", "blobtail"); err != nil {
			t.Fatal(err)
		}
	}
}

// A source goes on pulling from a stream that becomes lossy, and logs an error for
// the operator.
func TestLossyLater(t *testing.T) {
	e := newEnv(t)
	m := &memory{}
	e.run(m)
	c := testenv.Stream("LOGS")
	c.MaxAge = time.Hour
	if _, err := e.js.UpdateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	e.js.DeleteConsumer(t.Context(), "LOGS", "blobtail") // triggers a check
	testkit.Until(t, "an error in the log", func() bool { return strings.Contains(e.log.String(), "max_age") })
}

// A server restarts and everything goes on: delivered messages are acknowledged by
// their old replies, and new messages arrive.
func TestServerRestart(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	m, first := e.taken()
	e.nats.Stop()
	e.source.Stored(first.Reply)
	e.nats.Start()
	testkit.Until(t, "a message is published", func() bool {
		_, err := e.js.Publish(t.Context(), "logs.web", []byte(`{"msg":"b"}`))
		return err == nil
	})
	second := m.await(t, 2)[1]
	if !strings.Contains(string(second.Data), `"b"`) {
		t.Errorf("%s", second.Data)
	}
	e.source.Stored(second.Reply)
	e.left(0)
}

// A check changes nothing: it makes no consumer.
func TestCheckMakesNothing(t *testing.T) {
	e := newEnv(t)
	if err := e.check(); err != nil {
		t.Error(err)
	}
	if _, err := e.js.Consumer(t.Context(), "LOGS", "blobtail"); !errors.Is(err, jetstream.ErrConsumerNotFound) {
		t.Errorf("the consumer: %v", err)
	}
	_, host, _ := strings.Cut(e.nats.URL, "://")
	e.nats.Stop()
	if err := e.check(within(time.Second)); err == nil || !strings.Contains(err.Error(), "NATS at "+host+": ") || !strings.HasSuffix(err.Error(), "start it, or correct --nats (nats.url)") {
		t.Errorf("a server that is down: %v", err)
	}
}

// Without JetStream, the reason has the flag that starts it, for a check and in the log of an
// ingester.
func TestNoJetStream(t *testing.T) {
	t.Parallel()
	e := &env{t: t, log: &syncBuffer{}}
	e.nats = testenv.StartNATS(t, func(o *server.Options) { o.JetStream = false })
	want := "runs without JetStream: start it with -js (nats-server -js)"
	if err := e.check(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	e.run(&memory{}, within(time.Second))
	testkit.Until(t, "the log has the reason", func() bool { return strings.Contains(e.log.String(), want) })
}

// A server that is down at the start is found later.
func TestServerLate(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.publish("logs.web", `{"msg":"a"}`)
	e.nats.Stop()
	m := &memory{}
	e.run(m, within(time.Second))
	if !strings.Contains(e.log.String(), "no stream yet") {
		t.Error(e.log)
	}
	e.nats.Start()
	e.source.Stored(m.await(t, 1)[0].Reply)
	e.left(0)
}

// A recreated stream counts from 1 again: its messages have other identities, and
// acknowledgements for the old ones remove nothing from it.
func TestStreamMadeAnew(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"while it runs", "between runs", "while there is no connection"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			p := newProxy(t, e.nats.URL)
			through := func(o *natssource.Options) { o.URL = p.url }
			m := &memory{}
			e.run(m, through)
			publish := func(word string) {
				for i := range 3 {
					e.publish("logs.web", fmt.Sprintf(`{"msg":"%s %d"}`, word, i))
				}
			}
			publish("old")
			old := m.await(t, 3)
			switch how {
			case "between runs":
				e.stop()
			case "while there is no connection":
				p.setDown(true)
			}
			if err := e.js.DeleteStream(t.Context(), "LOGS"); err != nil {
				t.Fatal(err)
			}
			create(t, e.js, testenv.Stream("LOGS"))
			publish("new")
			switch how {
			case "between runs":
				s, err := e.open(through)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range old {
					s.Found(r.Reply)
					s.Stored(r.Reply)
				}
				s.Close(t.Context())
				e.run(m, through)
			case "while there is no connection":
				for _, r := range old {
					e.source.Stored(r.Reply)
				}
				p.setDown(false)
			}
			e.tellApart(m, old)
		})
	}
}

// tellApart ensures that three old messages and three new ones are different, and
// that reports about the old ones settle no new one.
func (e *env) tellApart(m *memory, old []record.Request) {
	e.t.Helper()
	all := m.await(e.t, 6)
	seen := map[record.Origin]bool{}
	for _, r := range all {
		if seen[r.Origin] {
			e.t.Errorf("%v twice", r.Origin)
		}
		seen[r.Origin] = true
	}
	for _, r := range old {
		e.source.Stored(r.Reply)
	}
	e.publish("logs.web", `{"msg":"more"}`)
	last := m.await(e.t, 7)
	e.left(4) // the old replies settled nothing
	for _, r := range last[3:] {
		e.source.Stored(r.Reply)
	}
	e.left(0)
}

// A deleted consumer is created again. Its delivered messages are delivered again, or
// the server restores the old delivery state (a race in the server decides). Either
// way all of them can be acknowledged.
func TestConsumerDeleted(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	m, first := e.taken(ackWait(2 * time.Second))
	if err := e.js.DeleteConsumer(t.Context(), "LOGS", "blobtail"); err != nil {
		t.Fatal(err)
	}
	e.publish("logs.web", `{"msg":"b"}`)
	testkit.Until(t, "the message after the deletion", func() bool {
		return slices.ContainsFunc(m.await(t, 1), func(r record.Request) bool { return strings.Contains(string(r.Data), `"msg":"b"`) })
	})
	for _, r := range m.await(t, 2) {
		if strings.Contains(string(r.Data), `"msg":"a"`) && r.Origin != first.Origin {
			t.Errorf("origin %v, was %v", r.Origin, first.Origin)
		}
	}
	testkit.Until(t, "an empty stream", func() bool {
		for _, r := range m.await(t, 2) {
			e.source.Stored(r.Reply)
		}
		s, err := e.js.Stream(t.Context(), "LOGS")
		return err == nil && s.CachedInfo().State.Msgs == 0
	})
}
