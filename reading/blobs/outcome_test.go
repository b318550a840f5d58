package blobs_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"blobtail/reading/blobs"
)

// Each count of a part is in the whole: a field that an adder forgets would be 0.
func TestOutcomeAdds(t *testing.T) {
	full := func(n int64) *blobs.Outcome {
		sum := blobs.Summary{More: true, Warnings: []error{errors.New("slow")}, Absent: []*blobs.NoServiceError{{Name: "nope"}}}
		v := reflect.ValueOf(&sum).Elem()
		for i := range v.NumField() {
			if v.Field(i).Kind() == reflect.Int64 {
				v.Field(i).SetInt(n)
			}
		}
		out := sum.Outcome()
		out.Notes, out.Gaps = []string{"a note"}, []blobs.Gap{{Service: "web", Records: 1}}
		return out
	}
	out := full(3)
	out.Add(full(4))
	sum := out.Summary()
	v := reflect.ValueOf(sum)
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Int64 && f.Int() != 7 {
			t.Errorf("%s is %d, want 7", v.Type().Field(i).Name, f.Int())
		}
	}
	if !sum.More || len(sum.Warnings) != 1 || len(sum.Absent) != 1 || len(out.Notes) != 2 || len(out.Gaps) != 2 {
		t.Errorf("%+v", out)
	}
	if !out.Complete() {
		t.Error("two parts without problems lack something")
	}
}

// A caller can make an outcome incomplete, and not complete again.
func TestOutcomeStaysIncomplete(t *testing.T) {
	sum := blobs.Summary{}
	out := sum.Outcome()
	sum.Lack(errors.New("after the outcome was made"))
	if !out.Complete() {
		t.Error("an outcome shares problems with its summary")
	}
	out.Lack(errors.New("first"))
	other := &blobs.Outcome{}
	other.Lack(errors.New("first"))
	out.Add(other)
	out.Add(&blobs.Outcome{})
	problems := out.Problems()
	clear(problems)
	_ = append(problems[:0], errors.New("other"))
	counts := out.Summary()
	counts.Problems = nil
	if out.Complete() || out.Summary().Problems == nil {
		t.Error("an outcome with problems is complete")
	}
	if got := out.Problems(); !slices.EqualFunc(got, []string{"first", "first"}, func(err error, text string) bool { return err.Error() == text }) {
		t.Errorf("the problems are %v", got)
	}
}
