package report_test

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"blobtail/internal/dev/bench/report"
)

func grown() report.Report {
	once := func(v float64) report.Spread { return report.Spread{Median: v, Min: v - 1, Max: v + 2} }
	return report.Report{Commit: "abc1234", Date: "2026-11-23T22:00:00Z", Machine: report.Machine{Cores: 2}, Growth: []report.Point{
		{Records: 2e6, Services: 8, Hours: 6, Blobs: 54, IngestY: 2.25, RSSMB: 187, Window: once(12.8), Newest: once(8.8)},
		{Records: 8e6, Services: 8, Hours: 24, Blobs: 216, IngestY: 2.26, RSSMB: 240, Window: once(12.9), Newest: once(8.9)},
		{Records: 20e6, Services: 8, Hours: 60, Blobs: 540, IngestY: 2.27, RSSMB: 280, Window: once(13.1), Newest: once(9.1)},
		{Records: 2.1e6, Services: 1, Hours: 168, Blobs: 10_012, IngestY: 3.5, RSSMB: 90, Window: once(31), Newest: once(14)},
	}}
}

// The picture is well-formed XML without references to anything else, and has each figure.
func TestDraw(t *testing.T) {
	picture, err := report.Draw(grown())
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for d := xml.NewDecoder(bytes.NewReader(picture)); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok {
			texts = append(texts, strings.TrimSpace(string(text)))
		}
	}
	all := strings.Join(texts, "\n") + "\n"
	for _, want := range []string{"2.25", "2.26", "2.27", "3.5", "187", "240", "280", "90", "12.8", "12.9", "13.1", "31", "8.8", "8.9", "9.1", "14", "2", "8", "20 million", "10,012 blobs"} {
		if !strings.Contains(all, "\n"+want+"\n") {
			t.Errorf("the picture lacks %s:\n%s", want, all)
		}
	}
	if bytes.Contains(picture, []byte("href")) || bytes.Contains(picture, []byte("NaN")) {
		t.Errorf("it refers to something else, or has no numbers:\n%s", picture)
	}
	if again, _ := report.Draw(grown()); !bytes.Equal(picture, again) {
		t.Error("the same report has two pictures")
	}
}

// Without growth, or without the store of many blobs, there is no picture.
func TestDrawNothing(t *testing.T) {
	r := grown()
	for _, growth := range [][]report.Point{nil, r.Growth[:3], r.Growth[3:]} {
		if picture, err := report.Draw(report.Report{Growth: growth}); err == nil {
			t.Errorf("%d points make a picture: %s", len(growth), picture)
		}
	}
}
