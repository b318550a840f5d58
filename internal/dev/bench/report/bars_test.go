package report_test

import (
	"bytes"
	"encoding/xml"
	"io"
	"testing"

	"blobtail/internal/dev/bench/report"
)

// The picture of bars is well-formed, has each sum, and is the same each time.
func TestDrawBars(t *testing.T) {
	bars := report.Bars{Title: "A", Under: "b", Foot: "c", Parts: []string{"one", "two"}, Panels: []report.Panel{
		{Title: "small", Bars: []report.Bar{{Name: "x", Parts: []float64{1, 2.5}}, {Name: "nothing", Parts: []float64{0, 0}}}},
		{Title: "large", Bars: []report.Bar{{Name: "y", Parts: []float64{2300}}}},
	}}
	picture, err := report.DrawBars(bars)
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(bytes.NewReader(picture)); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{">3.5<", ">2300<", ">0<", ">one<", ">small<"} {
		if !bytes.Contains(picture, []byte(want)) {
			t.Errorf("the picture lacks %s", want)
		}
	}
	if bytes.Contains(picture, []byte("NaN")) || bytes.Contains(picture, []byte("href")) {
		t.Errorf("%s", picture)
	}
	if again, _ := report.DrawBars(bars); !bytes.Equal(picture, again) {
		t.Error("the same bars have two pictures")
	}
	if _, err := report.DrawBars(report.Bars{}); err == nil {
		t.Error("nothing was drawn")
	}
}
