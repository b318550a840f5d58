package survey_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"blobtail/internal/budget"
	"blobtail/reading/survey"
)

func fieldOf(t *testing.T, s *survey.Survey, name string) *survey.Field {
	t.Helper()
	for _, f := range s.Fields() {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("no field %q", name)
	return nil
}

// Fields come in the order of their first sight, with their types, their first examples and the
// numbers of their values.
func TestFields(t *testing.T) {
	lines := `{"ts":"t","n":1,"msg":"m","o":{"a":1}}` + "\n" + `{"ts":"t","n":1.5,"k\"":"say \"hi\"","a":[1],"z":null,"b":true}` + "\n" + `{"ts":"t","n":1,"o":"x"}` + "\n"
	s := survey.New(survey.Options{Skip: []string{"ts", "msg"}, Values: 100, Plain: 256, Examples: 2})
	if err := s.Add([]byte(lines)); err != nil || s.Records != 3 || s.More {
		t.Fatal(err, s.Records)
	}
	var got []string
	for _, f := range s.Fields() {
		got = append(got, fmt.Sprint(f.Name, " ", f.Types, " ", f.Types.Names(), " ", f.Present, " ", f.Examples, " ", f.Top(1)))
	}
	want := []string{
		`n float [int float] 3 [1 1.5] [{1 2 int}]`, `o mixed [string object] 2 [{"a":1} "x"] [{x 1 string}]`, `k" string [string] 1 ["say \"hi\""] [{say "hi" 1 string}]`,
		`a array [array] 1 [[1]] [{[1] 1 array}]`, `z null [null] 1 [null] [{null 1 null}]`, `b bool [bool] 1 [true] [{true 1 bool}]`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A survey of one field, also of one in an object, counts its values as they are stored, each
// record once.
func TestOneField(t *testing.T) {
	s := survey.New(survey.Options{Only: []string{"o.a", "o.a"}, Values: 2})
	for _, value := range []string{`1`, `"1"`, `1`, `3`, `"1"`, `1`} {
		if err := s.Add([]byte(`{"o":{"a":` + value + "}}\n{\"x\":1}\n")); err != nil {
			t.Fatal(err)
		}
	}
	f := fieldOf(t, s, "o.a")
	if s.Records != 12 || f.Present != 6 || f.Distinct != 2 || !f.Capped || !slices.Equal(f.Top(0), []survey.Value{{Text: "1", Count: 3, Types: survey.Int}, {Text: `"1"`, Count: 2, Types: survey.String}}) {
		t.Errorf("%d records, %+v, %v", s.Records, f, f.Top(0))
	}
}

// The memory of a survey is bounded by numbers, by bytes, and by the budget of its query.
func TestBounds(t *testing.T) {
	var lines strings.Builder
	for i := range 500 {
		fmt.Fprintf(&lines, `{"id":"%0100d","f%d":1}`+"\n", i, i)
	}
	ctx, b := budget.NewPool(budget.Limits{Query: 64 << 10, Sure: 32 << 10}).Begin(context.Background())
	defer b.End()
	for what, o := range map[string]survey.Options{
		"numbers": {Fields: 50, Values: 60}, "bytes": {Bytes: 5000, Values: 1000}, "the budget": {Budget: b, Values: 1000},
	} {
		s := survey.New(o)
		if err := s.Add([]byte(lines.String())); err != nil {
			t.Fatal(err)
		}
		if id := fieldOf(t, s, "id"); !s.More || !id.Capped || id.Present != 500 || id.Distinct > 200 || len(s.Fields()) > 260 {
			t.Errorf("by %s: %d fields, %d values, more %v, capped %v", what, len(s.Fields()), id.Distinct, s.More, id.Capped)
		}
	}
	if ctx.Err() != nil {
		t.Error("the budget has ended, although the rest may be left out")
	}
}

// The most frequent of many values are the first ones of all in order.
func TestTop(t *testing.T) {
	counts := map[string]int64{}
	for i := range 20_000 {
		counts[fmt.Sprint(i)] = int64(i * 7919 % 5000)
	}
	all := survey.Top(maps.All(counts), 0)
	for _, most := range []int{1, 10, 3000, 20_000, 30_000} {
		if got := survey.Top(maps.All(counts), most); !slices.Equal(got, all[:min(most, len(all))]) {
			t.Errorf("the first %d of %d values are others", most, len(all))
		}
	}
}

func BenchmarkOne(b *testing.B) {
	line := []byte(strings.Repeat(`{"ts":"2026-11-20T12:00:00.000000000Z","level":"info","service":"web","msg":"a message of some words","status":200,"path":"/a/b"}`+"\n", 500))
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		s := survey.New(survey.Options{Only: []string{"path"}, Values: 1000})
		if err := s.Add(line); err != nil {
			b.Fatal(err)
		}
	}
}

// Combinations of fields are counted with the fields that a record lacks, and bounded like values.
func TestTogether(t *testing.T) {
	lines := []byte(`{"ts":"2026-11-10T15:04:05Z","a":1,"b":"x"}
{"ts":"2026-11-10T15:04:05Z","a":1,"b":"x\ny"}
{"ts":"2026-11-10T15:04:05Z","b":"x","a":1}
{"ts":"2026-11-10T15:04:05Z","a":"1"}
{"ts":"2026-11-10T15:04:05Z","c":1}
`)
	s := survey.New(survey.Options{Only: []string{"a", "b"}, Together: true, Values: 10})
	if err := s.Add(lines); err != nil {
		t.Fatal(err)
	}
	f, text := s.Together(), ""
	for _, v := range f.Top(0) {
		text += fmt.Sprintf("%q %d; ", survey.Split(v.Text), v.Count)
	}
	if want := `["1" "\"x\""] 2; ["\"1\"" ""] 1; ["1" "\"x\\ny\""] 1; `; text != want {
		t.Errorf("%s, not %s", text, want)
	}
	if s.Records != 5 || f.Present != 4 || f.Distinct != 3 || f.Capped {
		t.Errorf("%d records, %+v", s.Records, f)
	}
	for _, o := range []survey.Options{{Values: 2}, {Values: 10, Bytes: 6}} {
		o.Only, o.Together = []string{"a", "b"}, true
		s := survey.New(o)
		if err := s.Add(lines); err != nil || !s.Together().Capped {
			t.Errorf("%+v: %+v, %v", o, s.Together(), err)
		}
	}
}
