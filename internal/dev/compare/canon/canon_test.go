package canon_test

import (
	"hash/maphash"
	"testing"

	"blobtail/internal/dev/compare/canon"
)

// A record is the same in the forms of the corpus, of blobtail and of VictoriaLogs, and no other.
func TestSum(t *testing.T) {
	seed := maphash.MakeSeed()
	ours, theirs := canon.Corpus(seed), canon.Victoria(seed)
	const record = `{"ts":"2026-11-10T12:00:00.120Z","level":"info","service":"web","n":12.340,"id":"007","none":"","msg":"say \"no\""}`
	at, want, err := ours.Sum([]byte(record))
	if err != nil || at != 1794312000120000000 {
		t.Fatal(at, err)
	}
	for _, c := range []struct {
		form canon.Form
		line string
		same bool
	}{
		{ours, `{"ts":"2026-11-10T12:00:00.120000000Z","level":"info","service":"web","msg":"say \"no\"","n":12.340,"id":"007"}` + "\n", true},
		{theirs, `{"_msg":"say \"no\"","_stream":"{}","_stream_id":"1","_time":"2026-11-10T12:00:00.12Z","id":"007","level":"info","n":"12.34","service":"web"}`, true},
		{theirs, `{"_msg":"say \u0022no\u0022","_time":"2026-11-10T13:00:00.12+01:00","id":"007","level":"info","n":"12.34","service":"web"}`, true},
		{theirs, `{"_msg":"say \"no\"","_time":"2026-11-10T12:00:00.12Z","id":"007","level":"info","n":"12.340000000000002","service":"web"}`, true},
		{theirs, `{"_msg":"say \"no\"","_time":"2026-11-10T12:00:00.12Z","id":"007","level":"info","n":"12.340000010000002","service":"web"}`, false},
		{ours, `{"ts":"2026-11-10T12:00:00.121Z","level":"info","service":"web","n":12.340,"id":"007","msg":"say \"no\""}`, false},
		{ours, `{"ts":"2026-11-10T12:00:00.120Z","level":"web","service":"info","n":12.340,"id":"007","msg":"say \"no\""}`, false},
		{ours, `{"ts":"2026-11-10T12:00:00.120Z","level":"info","service":"web","n":12.340,"id":"7","msg":"say \"no\""}`, false},
		{ours, `{"ts":"2026-11-10T12:00:00.120Z","level":"info","service":"web","n":12.340,"id":"007"}`, false},
		{ours, `{"ts":"2026-11-10T12:00:00.120Z","level":"info","service":"web","n":12.340,"id":"007","msg":"say \"no\"","more":1}`, false},
		{ours, `{"ts":"2026-11-10T12:00:00.120Z","level":"info","service":"web","n":123.40,"id":"007","msg":"say \"no\""}`, false},
	} {
		if _, sum, err := c.form.Sum([]byte(c.line)); err != nil || (sum == want) != c.same {
			t.Errorf("%s: the same %v, %v", c.line, sum == want, err)
		}
	}
	for _, line := range []string{"", "[]", `{"msg":"no time"}`, `{"ts":"now"}`, `{"ts":"2026-11-10T12:00:00Z","a":{"b":1}}`, `{"ts":"2026-11-10T12:00:00Z",}`, `{"ts`, `{"ts"}`, `{"ts":"2026-11-10T12:00:00Z""a":1}`} {
		if _, _, err := ours.Sum([]byte(line)); err == nil {
			t.Errorf("%q is no error", line)
		}
	}
}
