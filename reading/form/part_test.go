package form_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/internal/portable"
	"blobtail/reading"
	"blobtail/reading/form"
	"blobtail/reading/patterns"
	"blobtail/reading/readingtest"
	"blobtail/record"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// joints are one of each kind.
func joints() []reading.Joint {
	a := reading.Ask{Services: []string{"*"}, Range: reading.Always()}
	table := reading.Table{
		LogQL: `sum by (path) (sum_over_time({service=~".+"} | unwrap v | __error__="" [1h])) / count_over_time({service=~".+"}[1h])`,
		Range: reading.Range{From: noon.UnixNano(), To: noon.Add(2 * time.Hour).UnixNano()}, Step: 10 * time.Minute,
	}
	return []reading.Joint{
		{Ask: a, Split: &reading.Slices{By: time.Minute, Split: []string{"path", "level"}}},
		{Ask: a, Survey: &reading.SurveyOptions{}},
		{Ask: a, Patterns: &reading.PatternOptions{}},
		{Ask: a, Table: &table},
	}
}

// parts are the answers to them.
func parts(t testing.TB) (all [][]byte) {
	h := readingtest.New(t, 1)
	for i := range 60 {
		h.Send(0, readingtest.Line{
			Time: noon.Add(time.Duration(i) * 79 * time.Second), Service: []string{"web", "api"}[i%2],
			Level:  []string{"info", "warn"}[i%3/2],
			Msg:    fmt.Sprintf("GET /p%d took %d ms by %s", i%7, i, strings.Repeat("x", i%9)),
			Fields: fmt.Sprintf(`"v":%v,"path":"/p%d"`, float64(i)/7, i%7),
		})
		if i%20 == 19 {
			h.Flush()
		}
	}
	for _, j := range joints() {
		p, out, err := h.Reader().For(nil).Part(t.Context(), j)
		if err != nil || !out.Complete() {
			t.Fatal(err, out)
		}
		all = append(all, p.Encode())
	}
	return all
}

// The bytes of parts are those of the version that their route has. If they change, other processes may
// join them wrongly: raise the number in form.Parts, then change this.
func TestVersion(t *testing.T) {
	all, mined := parts(t), patterns.New(patterns.Options{}) // the identities of records of a house are not fixed
	for i := range 60 {
		msg := fmt.Sprintf("GET /p%d took %d ms, %s", i%7, i, strings.Repeat("x", i%9))
		line := fmt.Sprintf(`{"ts":"2026-11-20T12:00:00.000000000Z","level":"info","service":"s%d","msg":%q}`+"\n", i%3, msg)
		e := record.Entry{Time: noon.UnixNano() + int64(i)*1e9, ID: record.ID{Index: uint32(i)}, Line: []byte(line)}
		if err := mined.Add(i%2, &e); err != nil {
			t.Fatal(err)
		}
	}
	all[2] = portable.Encode(mined)
	var got []string
	for _, data := range all {
		got = append(got, fmt.Sprintf("%.6x", sha256.Sum256(data)))
	}
	want := []string{"45a6001c12ff", "7b75bdc7591f", "b7e63aa0ddcc", "a46f227e08c9"}
	if form.Parts != "parts/1" || !slices.Equal(got, want) {
		t.Errorf("%s: %q", form.Parts, got)
	}
}

// finish joins a part to one without records, and makes its answer.
func finish(t testing.TB, j *reading.Joint, p *reading.Part) error {
	whole, err := j.Part(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err = whole.Join(t.Context(), p); err == nil {
		switch {
		case j.Split != nil:
			_, err = whole.Histogram(t.Context(), &reading.Outcome{})
		case j.Survey != nil:
			whole.Survey(&reading.Outcome{})
		case j.Patterns != nil:
			_, err = whole.Patterns(j.Ask.Range, &reading.Outcome{}, nil)
		default:
			_, err = whole.Rows(t.Context())
		}
	}
	return err
}

// A part is read again as it was written, and a damaged or cut one is an error.
func TestDamage(t *testing.T) {
	for i, data := range parts(t) {
		j := joints()[i]
		p, err := j.Decode(data)
		if err == nil && string(p.Encode()) != string(data) {
			t.Errorf("part %d has other bytes", i)
		}
		if err == nil {
			err = finish(t, &j, p)
		}
		if err != nil {
			t.Errorf("part %d: %v", i, err)
		}
		for at := 0; at < len(data); at += 1 + len(data)/200 {
			bad := slices.Clone(data)
			bad[at] ^= 0x10
			if _, err := j.Decode(bad); err == nil {
				t.Fatalf("part %d is damaged at %d, and read", i, at)
			}
			if _, err := j.Decode(data[:at]); err == nil {
				t.Fatalf("part %d is cut at %d, and read", i, at)
			}
		}
		if other := joints()[(i+1)%4]; i < 3 { // the bytes of another kind
			if _, err := other.Decode(data); err == nil {
				t.Errorf("part %d is one of %+v too", i, other)
			}
		}
	}
	for _, text := range []string{"", "{}", "{}\n", "no\n1234"} {
		if err := new(form.Part).Decode([]byte(text), &joints()[0]); err == nil {
			t.Errorf("%q is a part", text)
		}
	}
}

// Bytes of a stranger, with a right checksum, are an error or a part; nothing panics.
func FuzzPart(f *testing.F) {
	for i, data := range parts(f) {
		f.Add(uint8(i), data[:len(data)-4])
	}
	all := joints()
	f.Fuzz(func(t *testing.T, kind uint8, state []byte) {
		j := all[int(kind)%len(all)]
		data := binary.LittleEndian.AppendUint32(slices.Clone(state), crc32.Checksum(state, crc32.MakeTable(crc32.Castagnoli)))
		if p, err := j.Decode(data); err == nil {
			_ = finish(t, &j, p) // an error is as good
		}
	})
}
