package body

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/record/text"
	"blobtail/record/times"
)

// A time is the same as a line of text, in a message, as a field of an object and by the reader
// alone. A number is one of this century.
func FuzzTimes(f *testing.F) {
	for _, s := range []string{"2026-11-20T10:00:06.257+0100", "Nov 20 10:00:06", "I1120 10:00:06.257", "1795168806.257", "Fri, 20 Nov 2026 10:00:06 GMT", "ts=1795168806", "20/Nov/2026:10:00:06 +0000", "1.7e18"} {
		f.Add(s)
	}
	at, _ := times.Parse([]byte("2026-11-20T12:00:00Z"))
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) || strings.ContainsAny(s, "\r\n") {
			return
		}
		object, err := json.Marshal(map[string]string{"time": s})
		if err != nil {
			t.Fatal(err)
		}
		r := times.Reader{Now: at}
		alone, part := r.Read([]byte(s))
		p := meaning.NewReader()
		if _, err := p.Scan(object); err != nil {
			t.Fatal(err)
		}
		_, field := p.AppendLine(nil, &meaning.Defaults{Service: "a", Time: at, Arrived: at})
		inTime := (part == times.Full || part == times.Date) && alone <= at+record.MaxAhead.Nanoseconds()
		if field.OwnTime != inTime || inTime && field.Time != alone {
			t.Fatalf("%q is %d, part %d, and in a field %d, %v", s, alone, part, field.Time, field.OwnTime)
		}
		if ns, ok := meaning.ReadTime(object[len(`{"time":`):len(object)-1], at); ok && ns != alone {
			t.Fatalf("%q is %d, and as a value %d", s, alone, ns)
		}
		var line text.Stamp
		if line.Read(&r, []byte(s)) && part == times.Full && line.NS != alone {
			t.Fatalf("%q is %d, and as a line %d", s, alone, line.NS)
		}
		if msg := strings.TrimSpace(s); msg != "" && msg[0] != '{' && msg[len(msg)-1] != '}' {
			want := int64(0)
			if line.ReadPast(&r, []byte(msg)) {
				want = line.NS
			}
			if ns, _ := p.Seek([]byte(s), &meaning.Defaults{Arrived: at}, false); ns != want {
				t.Fatalf("%q is %d as a line, and in a message %d", s, want, ns)
			}
		}
	})
}
