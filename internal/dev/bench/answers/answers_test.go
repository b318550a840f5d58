package answers_test

import (
	"hash/maphash"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"blobtail/internal/dev/bench/answers"
	"blobtail/internal/dev/bench/rig"
	"blobtail/internal/dev/corpus"
)

// A record is the same in the forms of the corpus, of blobtail and of VictoriaLogs, and no other.
func TestRecord(t *testing.T) {
	seed := maphash.MakeSeed()
	ours, theirs := answers.Ours(seed), answers.Theirs(seed, nil)
	const record = `{"ts":"2026-11-10T12:00:00.120Z","level":"info","service":"web","n":12.340,"id":"007","none":"","msg":"say \"no\""}`
	const theirLine = `{"_msg":"say \"no\"","_stream":"{}","_stream_id":"1","_time":"2026-11-10T12:00:00.12Z",` +
		`"id":"007","level":"info","n":"12.34","service":"web"}`
	want, err := ours.Record([]byte(record))
	if err != nil || want.At != 1794312000120000000 {
		t.Fatal(want, err)
	}
	for _, c := range []struct {
		form answers.Form
		line string
		same bool
	}{
		{ours, `{"ts":"2026-11-10T12:00:00.120000000Z","level":"info","service":"web","msg":"say \"no\"","n":12.34,"id":"007"}`, true},
		{theirs, theirLine, true},
		{theirs, strings.Replace(theirLine, "T12:00:00.12Z", "T13:00:00.12+01:00", 1), true},
		{theirs, strings.Replace(theirLine, `\"no\"`, `\u0022no\u0022`, 1), true},
		{theirs, strings.Replace(theirLine, "12.34", "12.340000000000002", 1), true},
		{theirs, strings.Replace(theirLine, "12.34", "12.340000010000002", 1), false},
		{ours, strings.Replace(record, ".120Z", ".121Z", 1), false},
		{ours, strings.Replace(strings.Replace(record, "info", "web", 1), `e":"web`, `e":"info`, 1), false},
		{ours, strings.Replace(record, `"007"`, `"7"`, 1), false},
		{ours, strings.Replace(record, `,"msg":"say \"no\""`, "", 1), false},
		{ours, strings.Replace(record, `"none":""`, `"none":"1"`, 1), false},
		{ours, strings.Replace(record, "12.340", "123.40", 1), false},
	} {
		if got, err := c.form.Record([]byte(c.line)); err != nil || (got == want) != c.same {
			t.Errorf("%s: the same %v, %v", c.line, got == want, err)
		}
	}
	for _, line := range []string{"", "[]", `{"msg":"no time"}`, `{"ts":"now"}`, `{"ts":"2026-11-10T12:00:00Z","a":{"b":1}}`,
		`{"ts":"2026-11-10T12:00:00Z",}`, `{"ts`, `{"ts"}`, `{"ts":"2026-11-10T12:00:00Z""a":1}`} {
		if _, err := ours.Record([]byte(line)); err == nil {
			t.Errorf("%q is no error", line)
		}
	}
}

// Only the right records, each as often as it must be there and in order, are the right answer.
func TestCheck(t *testing.T) {
	form := answers.Ours(maphash.MakeSeed())
	lines := []string{`{"ts":"2026-11-10T12:00:00Z","msg":"a"}` + "\n", `{"ts":"2026-11-10T12:00:01Z","msg":"b"}` + "\n",
		`{"ts":"2026-11-10T12:00:01Z","msg":"b"}` + "\n", `{"ts":"2026-11-10T12:00:02Z","msg":"c"}` + "\n"}
	want, err := answers.AnswerOfLines(form, []byte(strings.Join(lines, "")))
	if err != nil || want.Len() != 4 {
		t.Fatal(want.Len(), err)
	}
	backwards := slices.Clone(lines)
	slices.Reverse(backwards)
	for _, c := range []struct {
		name  string
		order answers.Order
		lines []string
		want  string // of the error; "": none
	}{
		{"as it is", answers.OldestFirst, lines, ""},
		{"the newest first", answers.NewestFirst, backwards, ""},
		{"in any order", answers.AnyOrder, backwards, ""},
		{"not in order", answers.OldestFirst, backwards, "record 2 of 2026-11-10T12:00:01Z is out of order"},
		{"one less", answers.OldestFirst, lines[1:], "of those it lacks one is of 2026-11-10T12:00:00Z"},
		{"one of two equal ones less", answers.OldestFirst, append(lines[:2:2], lines[3]), "1 are missing"},
		{"one twice", answers.OldestFirst, append(lines[:4:4], lines[3]), "0 are missing, 1 are there too often"},
		{"one for another", answers.OldestFirst, append(lines[:3:3], lines[2]), "1 are missing, 1 are there too often"},
		{"another message", answers.OldestFirst, append(lines[:3:3], strings.Replace(lines[3], "c", "d", 1)), "1 are not right, such as {"},
		{"no record", answers.OldestFirst, append(lines[:4:4], "note\n"), "this is no record"},
		{"nothing", answers.OldestFirst, nil, "4 are missing"},
	} {
		err := want.Check(answers.Format{Form: form, Order: c.order}, strings.NewReader(strings.Join(c.lines, "")))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// Each question of a corpus has variants with answers of both sides' forms. Of numbers the right ones
// pass, and no others do.
func TestQuestions(t *testing.T) {
	o := rig.Chunk(0, 20_000)
	c, err := rig.Generate(o, filepath.Join(t.TempDir(), "corpus"))
	if err != nil {
		t.Fatal(err)
	}
	x, err := answers.New(c, maphash.MakeSeed())
	if err != nil {
		t.Fatal(err)
	}
	all, err := x.Questions(answers.Theirs(x.Seed, nil))
	if err != nil || len(all) != 16 {
		t.Fatal(len(all), err)
	}
	least := map[string]int{"word": 200, "text": 200, "id": 1000, "window": 50, "hour": 30, "expression": 60, "rare": 60, "newest": 8}
	for _, q := range all {
		if len(q.Variants) < least[q.ID] {
			t.Errorf("%s has %d variants", q.ID, len(q.Variants))
		}
		for _, v := range q.Variants[:min(20, len(q.Variants))] {
			if v.Want.Len() == 0 || len(v.Args) == 0 || len(v.Ours) == 0 || len(v.Theirs) == 0 {
				t.Errorf("%s: %+v", q.ID, v)
			}
		}
	}
	for id, v := range x.Table() {
		if n := v.Want.Len(); (n == 0) != strings.HasPrefix(id, "absent") || (id == "everything" || id == "v") && n != o.Records {
			t.Errorf("%s has an answer of %d records", id, n)
		}
	}
	one := answers.MinutesOf(&rig.Corpus{Answers: &corpus.Answers{PerMinute: map[string][5]int{"2026-11-10T12:00:00Z": {3, 0, 0, 1, 0}}}})
	var minutes map[string]answers.Format
	for _, q := range all {
		if q.ID == "minutes" {
			minutes = map[string]answers.Format{"printed": q.Printed, "ours": q.Ours.Format, "theirs": q.Theirs.Format}
		}
	}
	minutes["loki"] = answers.Matrix()
	for name, right := range map[string]string{
		"printed": `{"ts":"2026-11-10T12:00:00.000Z","levels":{"debug":3,"error":1}}` + "\n" + `{"ts":"2026-11-10T12:01:00Z","levels":{}}`,
		"ours":    `{"buckets":[{"t":"2026-11-10T12:00:00Z","total":4,"counts":{"debug":3,"error":1,"info":0}}],"complete":true}`,
		"theirs": `{"hits":[{"fields":{"level":"debug"},"timestamps":["2026-11-10T12:00:00Z"],"values":[3]},` +
			`{"fields":{"level":"error"},"timestamps":["2026-11-10T12:00:00Z"],"values":[1]}]}`,
		"loki": `{"data":{"result":[{"metric":{"level":"debug"},"values":[[1794312060,"3"]]},` +
			`{"metric":{"level":"error"},"values":[[1794312060,"1"]]}]}}`,
	} {
		for body, same := range map[string]bool{right: true, "{": false, "{}": false, strings.ReplaceAll(right, "3", "2"): false,
			strings.ReplaceAll(right, "error", "warn"):                                                  false,
			strings.ReplaceAll(strings.ReplaceAll(right, "12:00", "12:07"), "1794312060", "1794312120"): false} {
			if err := one.Check(minutes[name], strings.NewReader(body)); (err == nil) != same {
				t.Errorf("%s: %s: %v", name, body, err)
			}
		}
	}
}
