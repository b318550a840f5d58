package syslog_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/source/syslog"
)

// A record is the part of a stored line that the fuzz targets look at.
type stamped struct {
	Ts, Level, Service, Msg string
}

// FuzzConnection sends any bytes over one connection, in one part and in two. Each line that
// is stored is a canonical record, both ways store the same, and nothing is stored of
// nothing.
func FuzzConnection(f *testing.F) {
	for _, seed := range []string{
		"<13>1 2026-11-20T15:04:05Z h a 1 - [x y=\"z\\\"\"][q] m\n", "17 <13>Nov 20 15:04:05 h", "<13>a\x00<13>b\nc\x00",
		"<189>45: rtr1: *Nov 20 2026 15:04:05.1 CET: %A-5-B: x\n", "\n\n5 <1>a7 <1>abcd9", "<13>Nov 20 15:04:05 +0100 h a[1]: b",
		"<13>1 2026-11-20T15:04:05Z h a - - - m<13>1 2026-11-20T15:04:05Z h - - - - {\"name\":\"a\"}",
		"<13>Nov  2 15:04:05 h a: b<13>Nov  2 15:04:05 h a: b",
		"<log>\n<record>\n</record>\n", "\x00\x00\x01\xfe}q\x00(X\x04\x00\x00\x00nameq\x01",
	} {
		f.Add([]byte(seed), len(seed)/2)
	}
	f.Fuzz(func(t *testing.T, data []byte, at int) {
		at = min(max(at, 0), len(data))
		o := syslog.Options{}
		whole := stored(t, o, string(data))
		parts := stored(t, o, string(data[:at]), string(data[at:]))
		rejected := func(a, b string) int { // they are stored behind the other messages of a buffer
			return strings.Count(a, `"service":"_rejected"`) - strings.Count(b, `"service":"_rejected"`)
		}
		slices.SortStableFunc(whole, rejected)
		slices.SortStableFunc(parts, rejected)
		if joined(whole) != joined(parts) {
			t.Errorf("at once  %q\nin parts %q", whole, parts)
		}
		if len(bytes.Trim(data, "\r\n\x00")) > 0 && len(whole) == 0 && !bytes.ContainsAny(data, "\r") {
			t.Errorf("nothing is stored of %q", data)
		}
		for _, line := range whole {
			var r stamped
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatalf("%v: %q", err, line)
			}
			if _, err := time.Parse(time.RFC3339Nano, r.Ts); err != nil || r.Service == "" || !strings.HasPrefix(line, `{"ts":"`+r.Ts+`","level":"`) {
				t.Errorf("%v: %q", err, line)
			}
		}
	})
}

// FuzzMessage sends one message with a length. It becomes one record with all of
// its text.
func FuzzMessage(f *testing.F) {
	for _, seed := range []string{
		`1 2026-11-20T15:04:05.003Z host su - ID47 - text`, `1 - - - - - [a b="c" b="d"][e] x`, `Nov 20 15:04:05 web1 sshd[812]: text`,
		`45: rtr1: *Nov 20 15:04:05.123 UTC: %SYS-5-CONFIG_I: text`, `: 2026 Nov 20 15:04:05 UTC: %SYS-5-X: text`, `2026-11-20 15:04:05,5 h a: b`,
		`date=2026-11-20 time=15:04:05`, `Nov 20 15:04:05.999999999999 2026 +05:30 h : x`, `12345: xr1 RP/0/RSP0/CPU0:Nov 20 15:04:05.123 : ifmgr[215]: %P-3-U : I`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 64<<10 {
			return
		}
		got := stored(t, syslog.Options{}, counted("<13>"+string(data)+"#END"))
		if len(got) != 1 || !strings.Contains(got[0], "#END") {
			t.Fatalf("%q", got)
		}
		var r stamped
		if err := json.Unmarshal([]byte(got[0]), &r); err != nil || r.Service == "" {
			t.Fatalf("%v: %q", err, got)
		}
	})
}
