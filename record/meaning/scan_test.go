package meaning_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/record"
	"blobtail/record/meaning"
)

func TestScanTakes(t *testing.T) {
	p := meaning.NewReader()
	for _, src := range []string{
		`{}`,
		"{ \t\r\n}",
		`{"a":1}`,
		` {"a":1}`[1:],
		`{"":""}`,
		`{"a":-0,"b":0.5,"c":1e5,"d":1E+5,"e":-1.25e-10}`,
		`{"a":true,"b":false,"c":null}`,
		`{"a":{},"b":[],"c":[{}],"d":{"e":[1,"x",null,true,{"f":[]}]}}`,
		"{ \"a\" : [ 1 , { \"b\" : 2 } , [ ] , { } ] , \"c\" : \"d\" }",
		`{"a":"\"\\\/\b\f\n\r\t\u0041\ud83d\ude00\ud800"}`,
		"{\"a\":\"é\u2028\x7f\",\"\xff\":\"\xc3\"}",
		`{"a":1,"A":2,"a ":3}`,
		nested(64),
	} {
		for _, tail := range []string{"", "\n", "{", "garbage", ` {"a":1,"a":2}`} {
			n, err := p.Scan([]byte(src + tail))
			if err != nil || n != len(src) {
				t.Errorf("Scan(%.80q) = %d, %v; want %d", src+tail, n, err, len(src))
			}
		}
	}
}

// nested is a record of that depth, with objects and arrays in turn.
func nested(depth int) string {
	open, end := `{"a":`, "}"
	for i := range depth - 1 {
		if i%2 == 0 {
			open, end = open+"[", "]"+end
		} else {
			open, end = open+`{"b":`, "}"+end
		}
	}
	return open + "1" + end
}

func TestScanRejects(t *testing.T) {
	p := meaning.NewReader()
	for _, row := range []struct {
		src    string
		offset int
		reason string
	}{
		{``, 0, "not valid JSON: it ends too early"},
		{`[]`, 0, "not valid JSON: character '[' at the beginning of an object"},
		{`{`, 1, "not valid JSON: it ends too early"},
		{`{"a"`, 4, "not valid JSON: it ends too early"},
		{`{"a":`, 5, "not valid JSON: it ends too early"},
		{`{"a":1`, 6, "not valid JSON: it ends too early"},
		{`{"a":1,`, 7, "not valid JSON: it ends too early"},
		{`{"abcdefghijkl`, 14, "not valid JSON: it ends too early"},
		{`{"a":"abcdefghijkl`, 18, "not valid JSON: it ends too early"},
		{`{"a":"\`, 7, "not valid JSON: it ends too early"},
		{`{"a":"\u00`, 10, "not valid JSON: it ends too early"},
		{`{"a":tru`, 8, "not valid JSON: it ends too early"},
		{`{"a":-`, 6, "not valid JSON: it ends too early"},
		{`{"a":[1,`, 8, "not valid JSON: it ends too early"},
		{`{"a":{"b":`, 10, "not valid JSON: it ends too early"},
		{`{"a":1,}`, 7, "not valid JSON: character '}' where a key should begin"},
		{`{,}`, 1, "not valid JSON: character ',' where a key should begin"},
		{`{a:1}`, 1, "not valid JSON: character 'a' where a key should begin"},
		{`{'a':1}`, 1, "not valid JSON: character ''' where a key should begin"},
		{`{"a" 1}`, 5, "not valid JSON: character '1' after a key"},
		{`{"a":1 "b":2}`, 7, `not valid JSON: character '"' after a value`},
		{`{"a":1]`, 6, "not valid JSON: character ']' after a value"},
		{`{"a":}`, 5, "not valid JSON: character '}' where a value should begin"},
		{`{"a":nul}`, 8, "not valid JSON: character '}' in a value"},
		{`{"a":truee}`, 9, "not valid JSON: character 'e' after a value"},
		{`{"a":Na}`, 5, "not valid JSON: character 'N' where a value should begin"},
		{`{"a":+1}`, 5, "not valid JSON: character '+' where a value should begin"},
		{`{"a":.5}`, 5, "not valid JSON: character '.' where a value should begin"},
		{`{"a":01}`, 6, "not valid JSON: character '1' in a number"},
		{`{"a":-a}`, 6, "not valid JSON: character 'a' in a number"},
		{`{"a":1.}`, 7, "not valid JSON: character '}' in a number"},
		{`{"a":1e}`, 7, "not valid JSON: character '}' in a number"},
		{`{"a":1e+}`, 8, "not valid JSON: character '}' in a number"},
		{`{"a":0x1}`, 6, "not valid JSON: character 'x' after a value"},
		{"{\"a\":\"b\nc\"}", 7, "not valid JSON: byte 0x0a in a string"},
		{"{\"a\":\"0123456789\r\"}", 16, "not valid JSON: byte 0x0d in a string"},
		{"{\"a\nb\":1}", 3, "not valid JSON: byte 0x0a in a string"},
		{`{"a":"\x41"}`, 7, "not valid JSON: character 'x' in an escape"},
		{`{"a":"\u004g"}`, 11, "not valid JSON: character 'g' in an escape"},
		{"{\"a\":1\x00}", 6, "not valid JSON: byte 0x00 after a value"},
		{"{\"a\":1\u00a0}", 6, "not valid JSON: byte 0xc2 after a value"},
		{"{\v}", 1, "not valid JSON: byte 0x0b where a key should begin"},
		{`{"a":[1}`, 7, "not valid JSON: character '}' after a value"},
		{`{"a":{"b":1]}`, 11, "not valid JSON: character ']' after a value"},
		{`{"a":[,]}`, 6, "not valid JSON: character ',' where a value should begin"},
		{`{"a":[1,]}`, 8, "not valid JSON: character ']' where a value should begin"},
		{`{"a":{"b":1,}}`, 12, "not valid JSON: character '}' where a key should begin"},
		{`{"a":{"b"}}`, 9, "not valid JSON: character '}' after a key"},
		{`{"a":{1:2}}`, 6, "not valid JSON: character '1' where a key should begin"},
		{`{"a":["\q"]}`, 8, "not valid JSON: character 'q' in an escape"},
		// A syntax error further on takes precedence over earlier errors.
		{`{"a":1,"a":2`, 12, "not valid JSON: it ends too early"},
	} {
		n, err := p.Scan([]byte(row.src))
		var re *record.RejectError
		if !errors.As(err, &re) || n != 0 || !re.Syntax || re.Offset != row.offset || re.Reason != row.reason {
			t.Errorf("Scan(%q) = %d, %v; want %q at %d", row.src, n, err, row.reason, row.offset)
		}
	}
}

// A well-formed record that is rejected still reports its end, so that the next
// record can be read.
func TestScanRejectsWhatIsWellFormed(t *testing.T) {
	p := meaning.NewReader()
	for _, row := range []struct {
		src    string
		offset int
		reason string
	}{
		{nested(65), len(`{"a":`) + 32 + 31*len(`{"b":`), "nested deeper than 64"},
		{nested(5000), len(`{"a":`) + 32 + 31*len(`{"b":`), "nested deeper than 64"},
	} {
		n, err := p.Scan([]byte(row.src + "tail"))
		var re *record.RejectError
		if !errors.As(err, &re) || n != len(row.src) || re.Syntax || re.Reason != row.reason || re.Offset != row.offset {
			t.Errorf("Scan(%.80q) = %d, %v; want %d, %q at %d", row.src, n, err, len(row.src), row.reason, row.offset)
		}
	}
}

func TestScanLength(t *testing.T) {
	p := meaning.NewReader()
	whole := `{"a":"` + strings.Repeat("x", record.MaxRecord-8) + `"}`
	if n, err := p.Scan([]byte(whole + "\n" + whole)); n != record.MaxRecord || err != nil {
		t.Errorf("a record of 1 MiB: %d, %v", n, err)
	}
	for _, long := range []string{
		`{"a":"x` + whole[6:],
		`{"a":"` + strings.Repeat("x", 3*record.MaxRecord),
		`{"a":1` + strings.Repeat(" ", record.MaxRecord) + "}",
	} {
		n, err := p.Scan([]byte(long))
		var re *record.RejectError
		if !errors.As(err, &re) || n != 0 || re.Syntax || re.Reason != "longer than 1 MiB" || re.Offset != record.MaxRecord {
			t.Errorf("%.20q...: %d, %v", long, n, err)
		}
	}
	// A scan gives up early on brackets alone: they are an attack.
	var deep *record.RejectError
	if n, err := p.Scan([]byte(`{"a":` + strings.Repeat("[", 2*record.MaxRecord))); !errors.As(err, &deep) || n != 0 || !deep.Syntax || deep.Offset > 20_000 {
		t.Errorf("deep: %d, %v", n, err)
	}
	// An error within the first MiB is reported unchanged.
	_, err := p.Scan([]byte(`{"a":x` + strings.Repeat(" ", record.MaxRecord)))
	if re := (*record.RejectError)(nil); !errors.As(err, &re) || !re.Syntax {
		t.Errorf("a long record with a mistake: %v", err)
	}
}

// No choice of keys makes a record expensive.
func TestScanManyKeys(t *testing.T) {
	p := meaning.NewReader()
	shapes := map[string]string{
		"counted":      `"%d":0`,
		"long":         `"abcdefgh%05dabcdefgh":0`, // with the same first and last bytes
		"numbered":     `"service.original.%d":0`,
		"escaped keys": `"\u0061%d":0`,
		"repeated":     `"k%.0d":0`,
		"nested":       `"n%d":{"a":1,"a":2}`,
	}
	for name, shape := range shapes {
		b := []byte(`{"service":"X","service.name":1,"service.original":2`)
		for i := 0; len(b) < record.MaxRecord-64; i++ {
			b = fmt.Appendf(append(b, ','), shape, i)
		}
		b = append(b, '}')
		start := testkit.CPU()
		if _, err := p.Scan(b); err != nil {
			t.Fatal(name, err)
		}
		line, _ := p.AppendLine(nil, &meaning.Defaults{})
		if d := testkit.CPU() - start; d > 5*time.Second {
			t.Errorf("%s: took %v", name, d)
		}
		if n, err := p.Scan(line[:len(line)-1]); len(line) <= record.MaxRecord && (err != nil || n != len(line)-1) {
			t.Errorf("%s: its line is not taken: %v", name, err)
		}
	}
}

// A parser expects the keys of previous records; other records must not suffer.
func TestScanAfterOtherRecords(t *testing.T) {
	for _, before := range []string{
		`{"ts":1,"level":"info","a_long_key_of_many_bytes":2,"b":3}`,
		"{ \"ts\": 1, \"level\": \"info\", \"a_long_key_of_many_bytes\": 2, \"b\": 3 }",
	} {
		for _, row := range [][2]string{
			{`{"ts":1,"level":"info","a_long_key_of_many_bytes":2,"b":3}`, `,"a_long_key_of_many_bytes":2,"b":3}`},
			{`{"ts":1,"level":"info","a_long_key_of_many_bytes":2}`, `,"a_long_key_of_many_bytes":2}`},
			{`{"ts":1,"level":"info","a_long_key_of_many_bytes":2,"b":3,"c":4}`, `,"a_long_key_of_many_bytes":2,"b":3,"c":4}`},
			{`{"ts":1,"level":"info","a_long_key_of_many_bytez":2,"b":3}`, `,"a_long_key_of_many_bytez":2,"b":3}`},
			{`{"ts" :1,"level" : "info","b":3}`, `,"b":3}`},
			{`{"ts":1,"lev\u0065l":"info"}`, `}`},
			{`{"b":3,"level":"info"}`, `,"b":3}`},
			{`{"ts":1,"ts":2}`, `,"ts.2":2}`},
			{`{"ts":1,"level":"info","level":2}`, `,"level.2":2}`},
			{`{"ts":1,"level":"info","a_long_key_of_many_bytes":2,"b":3,"ts":4}`, `,"b":3,"ts.2":4}`},
			{`{"ts":1,"level":"info","x":1,"a_long_key_of_many_bytes":2,"b":3,"x":4}`, `,"b":3,"x.2":4}`},
			{`{"ts":1,"level":"info","a_long_key_of_many_bytes`, `it ends too early`},
			{`{"ts":1,"level":"info","a_long_key_of_many_bytes"`, `it ends too early`},
			{`{"ts":1,"level":`, `it ends too early`},
			{`{"ts`, `it ends too early`},
		} {
			p := meaning.NewReader()
			for range 9 {
				if _, err := p.Scan([]byte(before)); err != nil {
					t.Fatal(err)
				}
				n, err := p.Scan([]byte(row[0]))
				line, _ := p.AppendLine(nil, &meaning.Defaults{})
				got := strings.TrimSuffix(string(line), "\n")
				if err != nil {
					got = err.Error()
				}
				if !strings.HasSuffix(got, row[1]) || err == nil && n != len(row[0]) {
					t.Fatalf("%s after %s: %d, %s", row[0], before, n, got)
				}
			}
		}
	}
}
