package loggers

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/internal/azurelogs/formats"
	"blobtail/internal/config"
	"blobtail/record"
	"blobtail/source/body"
	"blobtail/source/carry"
	"blobtail/source/dryrun"
	"blobtail/source/otlp"
	"blobtail/source/shippers"
	"blobtail/source/syslog"
)

// Each row has the same time, level, message and service behind each door.
func TestDoors(t *testing.T) {
	rows, err := Read("testdata")
	if err != nil {
		t.Error(err)
	}
	for _, row := range rows {
		t.Run(row.Name, func(t *testing.T) {
			for name := range row.Not {
				if _, ok := carry.Named(name); !ok {
					t.Errorf("%s: not: %s is no door", row.Name, name)
				}
			}
			if row.Raw == blobs {
				for i, g := range inBlob(t, &row) {
					for _, fault := range compare(&row, carry.Door{Name: blobs}, i, carry.Record{}, g) {
						t.Errorf("%s: record %d: %s", row.Name, i+1, fault)
					}
				}
				return
			}
			tried, failed := []string{}, map[string][]string{}
			for _, d := range carry.Doors() {
				if _, no := row.Not[d.Name]; no {
					continue
				}
				if row.Raw != "" && !slices.Contains(strings.Fields(row.Raw), d.Name) {
					continue
				}
				found, ok := faults(t, &row, d)
				if !ok {
					continue
				}
				tried = append(tried, d.Name)
				for _, fault := range found {
					failed[fault] = append(failed[fault], d.Name)
				}
			}
			for _, fault := range slices.Sorted(maps.Keys(failed)) {
				doors := strings.Join(failed[fault], " ")
				if len(failed[fault]) == len(tried) {
					doors = "all doors"
				}
				t.Errorf("%s: %s: %s", row.Name, doors, fault)
			}
		})
	}
}

// blobs is no door: the bytes are a blob of Azure's own logs.
const blobs = "azurelogs"

// inBlob returns the records of a blob.
func inBlob(t *testing.T, row *Row) (out []got) {
	t.Helper()
	s, tr := formats.NewSplitter(formats.Resource), formats.NewTranslator(formats.Resource, "shop", row.Arrived)
	scanner := bufio.NewScanner(bytes.NewReader(row.Bytes))
	scanner.Split(s.Split)
	for scanner.Scan() {
		line, stamp, err := tr.Append(nil, scanner.Bytes())
		seen := body.Seen{Line: line, Stamp: stamp}
		if err != nil {
			seen.Rejected = err.Error()
		}
		out = append(out, gotOf(seen))
	}
	if len(out) != len(row.Records) {
		t.Fatalf("%s: %d records, want %d", row.Name, len(out), len(row.Records))
	}
	return out
}

// attributes is the door that makes objects of attributes beside a message.
const attributes = "otlp-attributes"

// hidden reports whether the message is in an object within the object: a bridge of its logger has
// it as the body, and the test cannot tell.
func (r Record) hidden() bool {
	var members map[string]any
	if r.Message == nil || json.Unmarshal(r.Text, &members) != nil {
		return false
	}
	for _, v := range members {
		if v == *r.Message {
			return false
		}
	}
	return true
}

// derived are the settings of the protocols that an ingester has by default.
func derived() shippers.Options {
	return shippers.Options{OTLP: otlp.Options{ServiceFrom: config.Default().OTLP.ServiceFrom}}
}

// A got is a record as it came out of a door.
type got struct {
	rejected, level, message, service string
	time                              int64
}

// faults returns the differences from the row behind a door. ok is false if the door takes objects
// only, and the row has others.
func faults(t *testing.T, row *Row, d carry.Door) (out []string, ok bool) {
	t.Helper()
	sent, ok := cargo(row, d)
	if !ok {
		return nil, false
	}
	c := sent
	if d.Lines {
		c.Records = []carry.Record{{Text: bytes.TrimSuffix(row.Bytes, []byte("\n"))}}
	}
	pack := func() (carry.Parcel, error) { return d.Pack(c) }
	if row.Raw != "" {
		pack = func() (carry.Parcel, error) { return d.Raw("", row.Bytes) }
	}
	p, err := pack()
	if err != nil {
		t.Fatal(err)
	}
	var records []got
	o := dryrun.Options{Arrived: row.Arrived, Shippers: derived(), Syslog: syslog.Options{Zone: time.UTC}}
	o.Watch = func(s body.Seen) { records = append(records, gotOf(s)) }
	a, err := dryrun.Send(t.Context(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	if a.Refused() {
		return []string{fmt.Sprintf("refused: %d %s", a.Status, strings.TrimSpace(a.Text))}, true
	}
	if len(records) != len(row.Records) {
		out = append(out, fmt.Sprintf("records: %d, want %d", len(records), len(row.Records)))
	}
	for i := range min(len(records), len(row.Records)) {
		found := compare(row, d, i, sent.Records[i], records[i])
		for _, fault := range found {
			out = append(out, fmt.Sprintf("record %d: %s", i+1, fault))
		}
		if len(found) > 0 && len(records) != len(row.Records) {
			break // those behind are others
		}
	}
	return out, true
}

// cargo has the records of a row for a door. ok is false if the door takes objects only, and the
// row has others.
func cargo(row *Row, d carry.Door) (c carry.Cargo, ok bool) {
	for i, r := range row.Records {
		if row.Raw != "" {
			c.Records = append(c.Records, carry.Record{Text: r.Text})
			continue
		}
		one := carry.Record{Text: r.Text, Object: r.Object()}
		if d.Only && !one.Object || d.Name == attributes && r.hidden() {
			return c, false
		}
		if d.Timed {
			one.Time = protocolTime(row, i)
		}
		if strings.HasPrefix(d.Name, "syslog") || d.Name == "journald" {
			one.Priority = assumed
		}
		c.Records = append(c.Records, one)
	}
	if !d.Objects || d.Named {
		c.Service = "shop"
	}
	return c, true
}

// protocolTime is the time of message i by a protocol that gives each message a time. It counts
// before any time in the text.
func protocolTime(row *Row, i int) time.Time {
	return row.Arrived.Add(-time.Hour).Truncate(time.Second).Add(time.Duration(i) * time.Second)
}

// assumed is local0.notice, which rsyslog gives to all lines of a file.
const assumed = 16*8 + 5

func gotOf(s body.Seen) (g got) {
	if g.rejected = s.Rejected; g.rejected != "" {
		return g
	}
	g.time = s.Stamp.Time
	g.level, g.message, g.service = member(s.Line, "level"), member(s.Line, "msg"), member(s.Line, "service")
	return g
}

func member(line []byte, name string) string {
	v, _ := record.Lookup(line, name)
	return string(record.TextOf(v))
}

// compare returns the differences in one record.
func compare(row *Row, d carry.Door, i int, sent carry.Record, g got) (out []string) {
	want := row.Records[i]
	if g.rejected != "" {
		return []string{"rejected: " + g.rejected}
	}
	if fault := compareTime(row, d, i, sent, g.time); fault != "" {
		out = append(out, fault)
	}
	level := ""
	if want.Level != nil {
		level = *want.Level
	}
	switch {
	case (strings.HasPrefix(d.Name, "syslog") || d.Name == "journald") && row.Raw == "" && record.LevelOf([]byte(level)) == record.Other:
		if g.level != "info" {
			out = append(out, fmt.Sprintf("level: %q, and the priority says info", g.level))
		}
	case sent.Object && (!d.Objects || d.Name == attributes) && record.LevelOf([]byte(level)) == record.Other:
		if g.level != "" { // a word of the sender's own is none in a text
			out = append(out, fmt.Sprintf("level: %q, want none", g.level))
		}
	case g.level != level:
		out = append(out, fmt.Sprintf("level: %q, want %q", g.level, level))
	}
	message := string(want.Text)
	switch {
	case (sent.Object && d.Objects || row.Raw != "" || d.Lines) && want.Message != nil:
		message = *want.Message
	case sent.Object && d.Objects || row.Raw != "":
		message = ""
	}
	if g.message != message {
		out = append(out, fmt.Sprintf("message: %.120q, want %.120q", g.message, message))
	}
	if want.Service != "" && (sent.Object && d.Objects || row.Raw != "") && !d.Named && d.Name != attributes {
		if service := record.FoldService(want.Service); g.service != service {
			out = append(out, fmt.Sprintf("service: %q, want %q", g.service, service))
		}
	}
	return out
}

// compareTime returns the fault of a time.
func compareTime(row *Row, d carry.Door, i int, sent carry.Record, ns int64) string {
	at := time.Unix(0, ns).UTC()
	switch want := row.Records[i]; {
	case !sent.Time.IsZero():
		if !at.Equal(sent.Time) {
			return fmt.Sprintf("time: %s, and the protocol's is %s", stamp(at), stamp(sent.Time))
		}
	case want.InRun:
		from := row.From.Truncate(time.Second)
		if at.Before(from) || at.After(row.To) {
			return fmt.Sprintf("time: %s, want from %s to %s%s", stamp(at), stamp(from), stamp(row.To), arrival(at, row))
		}
		if at.Equal(row.Arrived) {
			return "time: that of arrival, want one of its own"
		}
	case want.Time != nil:
		if !at.Equal(*want.Time) {
			return fmt.Sprintf("time: %s, want %s%s", stamp(at), stamp(*want.Time), arrival(at, row))
		}
	case d.Lines && row.timeBeside(i, at), at.Equal(row.Arrived):
	default:
		return fmt.Sprintf("time: %s, want that of arrival", stamp(at))
	}
	return ""
}

func arrival(at time.Time, row *Row) string {
	if at.Equal(row.Arrived) {
		return " (it is that of arrival)"
	}
	return ""
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// timeBeside reports whether a record without a time may have this one, in lines: that of a record
// before it, or else of the first one behind.
func (row *Row) timeBeside(i int, at time.Time) bool {
	for _, r := range row.Records {
		if r.Time != nil && r.Time.Equal(at) || r.InRun && !at.Before(row.From.Truncate(time.Second)) && !at.After(row.To) {
			return true
		}
	}
	return false
}

// Bad rows are told apart.
func TestParse(t *testing.T) {
	const about = "-- about --\nlogger: x\ngroup: Go\nsource: page https://example.com\narrived: 2026-11-20T10:00:00Z\n"
	for _, test := range []struct{ text, want string }{
		{about + "-- bytes --\na\n-- records --\n{\"time\":null,\"level\":null}\n", ""},
		{about + "-- bytes --\na\nb\n-- records --\n{\"time\":null,\"level\":null}\n", "no record has the line"},
		{about + "-- bytes --\na\n-- records --\n{\"level\":null}\n", "it has no time"},
		{about + "-- bytes --\na\n-- records --\n{\"time\":null,\"levl\":null}\n", "levl is no member"},
		{about + "-- bytes --\na\n-- records --\n{\"time\":null,\"lines\":2}\n", "only 1 are left"},
		{about + "x: y\n", "means nothing"},
		{"-- about --\nlogger: x\n", "lacks"},
	} {
		_, err := parse("x", []byte(test.text))
		if text := fmt.Sprint(cmp.Or(err, fmt.Errorf(""))); !strings.Contains(text, test.want) || test.want == "" && err != nil {
			t.Errorf("%q: %v", test.text, err)
		}
	}
}
