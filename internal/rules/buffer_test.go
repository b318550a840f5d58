package rules_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"blobtail/buffer"
	"blobtail/buffer/wal"
	"blobtail/internal/rules"
	"blobtail/record"
	"blobtail/source/body"
)

// nowhere is for a buffer that does not run, and so stores no batch.
type nowhere struct{}

func (nowhere) Plan(string, time.Time) []byte              { return nil }
func (nowhere) Write(context.Context, *buffer.Batch) error { return buffer.ErrAside }

// stored notes the messages that the buffer is done with.
type stored struct{ replies []string }

func (*stored) Found(string)          {}
func (s *stored) Stored(reply string) { s.replies = append(s.replies, reply) }
func (*stored) Dropped(string)        {}

// send gathers a body of a sender with a key, as a source does at a time of arrival, and hands
// it over. Nothing in it has a time.
func send(t *testing.T, to body.Accepter, lines, key, reply string, arrival int64) (record.Receipt, error) {
	t.Helper()
	g := body.NewGatherer()
	g.After = func(int) bool { return true }
	g.Arrive(body.Arrival{Source: "test", Service: "web", Time: arrival, Clock: "the test's clock", Key: key})
	form, err := body.ParseForm("application/x-ndjson", nil)
	if err == nil {
		err = form.Decode([]byte(lines), g)
	}
	if err != nil {
		t.Fatal(err)
	}
	g.IdentifyByKey("/ingest/web", 0, []byte(lines))
	if err := g.AddRejected(nil); err != nil {
		t.Fatal(err)
	}
	g.Req.Reply = reply
	return g.Append(t.Context(), to, nil)
}

// A repeat is recognised although its records without times have another time now, with masks
// and drops, and with rejected records.
func TestRepeats(t *testing.T) {
	const second = 1_000_000_000
	const lines = `{"msg":"pin 1234"}` + "\n" + `{"msg":"noise"}` + "\n" + `{"msg":"x"` + "\n" + `{"msg":"pin 99"}`
	mask := rules.Rule{Name: "pin", Service: "web", Mask: []rules.Mask{{Pattern: `\d+`, With: "#"}}}
	log, err := wal.Open(t.TempDir(), wal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	told := &stored{}
	buf := buffer.New(log, nowhere{}, buffer.Options{Messages: told})
	f := rules.NewFilter(must(t, mask, rules.Rule{Name: "noise", Service: "web", Where: `msg == "noise"`, Drop: true}), buf, nil)
	for key, reply := range map[string]string{"key-1": "", "key-2": "reply"} {
		for i, later := range []int64{0, 5 * second, 7 * second} {
			if r, err := send(t, f, lines, key, reply, arrival+later); err != nil || r.Duplicate != (i > 0) {
				t.Errorf("%s, number %d: %+v, %v", key, i, r, err)
			}
		}
		if _, err := send(t, f, lines+"\n", key, reply, arrival); !errors.Is(err, record.ErrKeyReused) {
			t.Errorf("%s with another body: %v", key, err)
		}
	}
	// With other masks the same body is another request, and the records of both are kept.
	other := rules.NewFilter(must(t, rules.Rule{Name: "pin", Service: "web", Mask: []rules.Mask{{Pattern: `\d`}}}), buf, nil)
	if r, err := send(t, other, lines, "key-1", "", arrival+9*second); err != nil || r.Duplicate {
		t.Errorf("with other masks: %+v, %v", r, err)
	}
	// The filter acknowledges a message at once if a rule drops all of it.
	all := rules.NewFilter(must(t, rules.Rule{Name: "all", Service: "web", Drop: true}), buf, nil)
	if _, err := send(t, all, `{"msg":"a"}`, "key-3", "dropped", arrival); err != nil || !slices.Contains(told.replies, "dropped") {
		t.Errorf("acknowledged: %v, %v", told.replies, err)
	}
}

// A repeat of two days later is recognised although a guessed time is near no longer, so that lines
// are other records now.
func TestRepeatsOfGuesses(t *testing.T) {
	const day = 24 * 3600 * 1_000_000_000
	log, err := wal.Open(t.TempDir(), wal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	buf := buffer.New(log, nowhere{}, buffer.Options{Messages: &stored{}})
	created := string(record.AppendTime(nil, arrival-day/2))
	for i, lines := range []string{
		`{"msg":"a","created":"` + created + `"}` + "\n" + `{"msg":"b"}`,
		`{"msg":"a","created":"` + created + `"}` + "\n" + `{"msg":"b","time":"2019-05-05T10:00:00Z"}`,
		`{"msg":"a {\"time\":\"` + created + `\"}"}`,
	} {
		for n, later := range []int64{0, 2 * day} {
			if r, err := send(t, buf, lines, fmt.Sprint("key", i), "", arrival+later); err != nil || r.Duplicate != (n > 0) {
				t.Errorf("%s, number %d: %+v, %v", lines, n, r, err)
			}
		}
	}
}
