package survey_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
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

// What a joined survey lists has the numbers of all records, whatever the bounds of its pieces. Pieces
// without bounds make the survey of the whole.
func TestJoinedSurvey(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	left := 0
	for range 60 {
		o := survey.Options{Values: 1 + rng.IntN(30), Plain: 20, Fields: 1 + rng.IntN(9), Bytes: 50 + rng.IntN(2000)}
		ofPieces, bounded := survey.Options{Values: 1000, Plain: 20}, rng.IntN(2) == 0
		if bounded {
			ofPieces = survey.Options{
				Values: o.Values * (1 + rng.IntN(3)), Plain: 20, Fields: o.Fields * (1 + rng.IntN(2)), Bytes: o.Bytes * (1 + rng.IntN(2)),
			}
		}
		if !bounded {
			o.Bytes = 0
		}
		whole, joined := survey.New(o), survey.New(o)
		present, counts := map[string]int64{}, map[string]map[string]int64{}
		for range 1 + rng.IntN(6) {
			piece := survey.New(ofPieces)
			for range rng.IntN(50) {
				line := []string{}
				for range 1 + rng.IntN(3) {
					name, value := fmt.Sprint("f", rng.IntN(12)), fmt.Sprint(rng.IntN(1+rng.IntN(60)))
					if len(line) > 0 && strings.Contains(strings.Join(line, ","), `"`+name+`"`) {
						continue
					}
					if present[name]++; counts[name] == nil {
						counts[name] = map[string]int64{}
					}
					counts[name][value]++
					line = append(line, fmt.Sprintf("%q:%s", name, value))
				}
				text := []byte("{" + strings.Join(line, ",") + "}\n")
				if err := errors.Join(whole.Add(text), piece.Add(text)); err != nil {
					t.Fatal(err)
				}
			}
			if err := joined.Join(sent(t, piece)); err != nil {
				t.Fatal(err)
			}
		}
		if !bounded {
			if a, b := text(t, whole), text(t, joined); a != b {
				t.Fatalf("seed %d: %+v, not %+v", seed, joined, whole)
			}
			continue
		}
		if joined.Records != whole.Records || len(joined.Fields()) < len(present) && !joined.More {
			t.Fatalf("seed %d: %d records of %d, %d fields of %d", seed, joined.Records, whole.Records, len(joined.Fields()), len(present))
		}
		for _, f := range joined.Fields() {
			values := f.Top(0)
			if f.Present != present[f.Name] || len(values) < len(counts[f.Name]) && !f.Capped || f.Distinct < len(values) {
				t.Fatalf("seed %d: %s in %d of %d records: %+v", seed, f.Name, f.Present, present[f.Name], f)
			}
			for _, v := range values {
				if v.Count != counts[f.Name][v.Text] {
					t.Fatalf("seed %d: %s=%s in %d of %d records", seed, f.Name, v.Text, v.Count, counts[f.Name][v.Text])
				}
			}
			if f.Capped {
				left++
			}
		}
	}
	if left == 0 {
		t.Error("no bound was reached")
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

// sent is a state as another process gets it.
func sent[T any](t *testing.T, state *T) *T {
	t.Helper()
	var bytes bytes.Buffer
	again := new(T)
	if err := errors.Join(gob.NewEncoder(&bytes).Encode(state), gob.NewDecoder(&bytes).Decode(again)); err != nil {
		t.Fatal(err)
	}
	return again
}

// text is a survey in words.
func text(t *testing.T, s *survey.Survey) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
