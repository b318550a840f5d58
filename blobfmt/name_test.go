package blobfmt_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"blobtail/blobfmt"
	"blobtail/record"
)

func TestNames(t *testing.T) {
	at := func(y, mo, d, h, mi int) time.Time { return time.Date(y, time.Month(mo), d, h, mi, 0, 0, time.UTC) }
	for key, want := range map[string]blobfmt.Name{
		"web/2026/11/20/1500/000001.log":       {Service: "web", Period: at(2026, 11, 20, 15, 0), Number: 1},
		"a.b-c_d/1677/09/21/0012/990001.log":   {Service: "a.b-c_d", Period: at(1677, 9, 21, 0, 12), Number: 990001},
		"_rejected/2262/04/11/2345/999999.log": {Service: "_rejected", Period: at(2262, 4, 11, 23, 45), Number: 999999},
		"web/2024/02/29/0000/010001.log":       {Service: "web", Period: at(2024, 2, 29, 0, 0), Number: 10001},
	} {
		n, err := blobfmt.ParseName(key)
		if err != nil || n != want || want.String() != key {
			t.Errorf("%s parses as %+v, %v; %+v prints as %s", key, n, err, want, want)
		}
	}
}

func TestNamesRefused(t *testing.T) {
	for _, key := range []string{
		"", "/", "web", "web/", "web/2026/11/20/1500/", "web/2026/11/20/1500/000000.log",
		"web/2026/11/20/1500/1.log", "web/2026/11/20/1500/0000001.log", "web/2026/11/20/1500/00000x.log",
		"web/2026/11/20/1500/+00001.log", "web/2026/11/20/1500/000001.LOG", "web/2026/11/20/1500/000001.log/",
		"web/2026/11/20/1500/000001.log.gz", "web/2026/11/20/2400/000001.log", "web/2026/11/20/1560/000001.log",
		"web/2026/13/20/1500/000001.log", "web/2026/02/29/1500/000001.log", "web/2026/1/20/15000/000001.log",
		"web/1676/11/20/1500/000001.log", "web/2263/11/20/1500/000001.log", "web/2026-11-20/1500/000001.log",
		"Web/2026/11/20/1500/000001.log", "web./2026/11/20/1500/000001.log", "../2026/11/20/1500/000001.log",
		"a/b/2026/11/20/1500/000001.log", "__x/2026/11/20/1500/000001.log", "_horizon/web/20261120",
		strings.Repeat("x", 64) + "/2026/11/20/1500/000001.log",
	} {
		if n, err := blobfmt.ParseName(key); err == nil {
			t.Errorf("%q parses as %+v", key, n)
		}
	}
}

// Prefixes are in UTC, for any time zone of the caller.
func TestPrefixes(t *testing.T) {
	at := time.Date(2026, 11, 20, 1, 30, 0, 0, time.FixedZone("", 7200))
	if got := blobfmt.PeriodPrefix("web", at); got != "web/2026/11/19/2330/" {
		t.Error(got)
	}
}

func TestPlace(t *testing.T) {
	name := blobfmt.Name{Service: "web", Period: time.Date(2026, 11, 19, 23, 30, 0, 0, time.UTC), Number: 7}
	m := blobfmt.Meta{Place: name.Place()}
	sum := sha256.Sum256([]byte("web/2026/11/19/2330/"))
	if !bytes.Equal(m.Place[:], sum[:8]) || name.Check(m) != nil || name.Check(blobfmt.Meta{}) != nil {
		t.Errorf("place %x, %v, %v", m.Place, name.Check(m), name.Check(blobfmt.Meta{}))
	}
	other, later, renumbered := name, name, name
	other.Service, later.Period, renumbered.Number = "webs", name.Period.Add(-time.Hour), 8
	if other.Check(m) == nil || later.Check(m) == nil || renumbered.Check(m) != nil {
		t.Errorf("%v, %v, %v", other.Check(m), later.Check(m), renumbered.Check(m))
	}
}

func TestMeta(t *testing.T) {
	m := blobfmt.Meta{Batch: testBatch, First: -1, Last: 1e18, Records: 6, RawBytes: 600, CRC: 0xab,
		SHA256: [32]byte{0: 0xfe, 31: 1}, Place: [8]byte{7: 0xab}, Compacted: 12}
	m.Levels = [record.NumLevels]int64{1, 0, 3, 0, 0, 0, 2}
	good := m.Map()
	for key, want := range map[string]string{
		"format": "1", "batch": "b100000000000000000000000000000b", "firsttimestamp": "1969-12-31T23:59:59.999999999Z",
		"lasttimestamp": "2001-09-09T01:46:40.000000000Z", "records": "6", "rawbytes": "600", "crc": "000000ab",
		"place": "00000000000000ab", "sha": "fe" + strings.Repeat("00", 30) + "01", "levels": "1.0.3.0.0.0.2", "compacted": "12",
	} {
		if good[key] != want {
			t.Errorf("%s is %q, want %q", key, good[key], want)
		}
	}
	size := 0
	for k, v := range good {
		size += len(k) + len(v)
	}
	if size > 1<<10 {
		t.Errorf("%d bytes of metadata", size)
	}
	// Azure returns keys in another case, and other programs may add keys.
	recased := map[string]string{"Owner": "me"}
	for k, v := range good {
		recased[strings.ToUpper(k[:1])+k[1:]] = v
	}
	if got, err := blobfmt.ParseMeta(recased); err != nil || got != m {
		t.Errorf("%v parses as %+v, %v", recased, got, err)
	}
}

func TestMetaRefused(t *testing.T) {
	m := blobfmt.Meta{Batch: testBatch, Last: 5, Records: 6, RawBytes: 600}
	m.Levels[record.Info] = 6
	for _, tt := range []struct {
		key, value string
		want       error // nil: any
	}{
		{"batch", "", blobfmt.ErrForeign}, // "" here: the key is missing
		{"format", "", blobfmt.ErrForeign},
		{"format", "3", blobfmt.ErrNewer},
		{"format", "2", nil}, // only erased blobs have it
		{"format", "01", nil},
		{"format", "parquet", nil},
		{"batch", "xyz", nil},
		{"firsttimestamp", "", nil},
		{"firsttimestamp", "1970-01-01T00:00:00Z", nil},
		{"firsttimestamp", "1970-01-01T00:00:00.000000009Z", nil}, // behind the last
		{"records", "06", nil},
		{"records", "+6", nil},
		{"records", "7", nil}, // not the sum of the levels
		{"records", "0", nil},
		{"rawbytes", "-600", nil},
		{"crc", "0", nil},
		{"crc", "0000000A", nil},
		{"sha", strings.Repeat("A", 64), nil},
		{"sha", strings.Repeat("a", 63), nil},
		{"sha", "none", nil},
		{"place", "00000000000000AB", nil},
		{"place", "0000000000000000", nil},
		{"place", "ab", nil},
		{"place", "none", nil},
		{"levels", "0.0.6.0.0.0", nil},
		{"levels", "0.0.6.0.0.0.0.0", nil},
		{"levels", "0.0.7.0.0.0.-1", nil},
		{"compacted", "0", nil},
		{"erased", "0", nil},
		{"compacted", "99999999999", nil},
	} {
		stored := maps.Clone(m.Map())
		stored[tt.key] = tt.value
		if tt.value == "" {
			delete(stored, tt.key)
		}
		_, err := blobfmt.ParseMeta(stored)
		if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%s %q: %v", tt.key, tt.value, err)
		}
	}
	if _, err := blobfmt.ParseMeta(nil); !errors.Is(err, blobfmt.ErrForeign) {
		t.Errorf("no metadata: %v", err)
	}
}
