package blobs_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"blobtail/reading/blobs"
	"blobtail/record"
	"blobtail/storage/storagetest"
)

// volumes asks for volumes without a GET, by service.
func volumes(t *testing.T, w *watched, q blobs.Query) map[string]blobs.Volume {
	t.Helper()
	w.gets = nil
	all, sum, err := blobs.New(w, blobs.Options{}).Volume(t.Context(), q)
	if err != nil || !sum.Complete() || len(w.gets) > 0 {
		t.Fatal(err, sum.Problems, w.gets)
	}
	out := make(map[string]blobs.Volume)
	last := ""
	for _, v := range all {
		if v.Service <= last {
			t.Errorf("%s comes after %s", v.Service, last)
		}
		last, out[v.Service] = v.Service, v
	}
	return out
}

// Volumes are exact if the range cuts no blob, and else of the right size.
func TestVolume(t *testing.T) {
	b := newBuilder(t, 0)
	raw := map[string]int64{}
	start := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC).UnixNano()
	var fresh []rec
	for n, service := range []string{"api", "web", "_rejected"} {
		for h := range int64(4) {
			var recs []rec
			for i := range int64(360) {
				at := start + h*3600e9 + i*10e9
				level := []string{"info", "info", "error"}[i%3]
				r := rec{service: service, time: at, level: level, origin: origin(uint64(h)), index: uint32(i), line: line(at, level, service, "text")}
				raw[service] += int64(len(r.line))
				recs = append(recs, r)
			}
			b.add(time.Hour, recs)
		}
		if n == 1 {
			fresh = some(service, 50, 99)
		}
	}
	w := &watched{BlobStore: b.store}
	q := blobs.Query{Services: []string{"*"}, Range: blobs.Always()}
	got := volumes(t, w, q)
	if len(got) != 2 {
		t.Fatalf("%v", got)
	}
	for service, v := range got {
		if v.Blobs != 4 || v.Records != 1440 || v.Bytes != raw[service] || v.Levels[record.Info] != 960 || v.Levels[record.Error] != 480 ||
			v.First != start || v.Last != start+4*3600e9-10e9 || v.Estimated {
			t.Errorf("%+v", v)
		}
	}
	q.Filter.Levels, _ = blobs.ParseLevels("error")
	q.Range = blobs.Range{From: start + 1800e9, To: start + 2*3600e9 + 900e9} // a half, a whole and a quarter
	v := volumes(t, w, q)["web"]
	near := func(got, want int64) bool { return math.Abs(float64(got)-float64(want)) <= 0.02*float64(want) }
	if v.Blobs != 3 || !near(v.Records, 210) || v.Levels[record.Info] != 0 || v.Levels[record.Error] != v.Records || !near(v.Bytes, raw["web"]*210/1440) ||
		v.First != q.Range.From || v.Last != q.Range.To-1 || !v.Estimated {
		t.Errorf("%+v", v)
	}
	q = blobs.Query{Services: []string{"web", "_*"}, Range: blobs.Range{From: fresh[0].time, To: blobs.Newest}}
	q.Unflushed = []*blobs.Unflushed{unflushed(t, entries(fresh)...)}
	got = volumes(t, w, q)
	if v := got["web"]; v.Records != 50 || v.Blobs != 0 || len(got) != 1 || v.Levels[record.Info] != 50 {
		t.Errorf("%+v", got)
	}
	q.Filter.Texts = []string{"x"}
	if _, _, err := blobs.New(w, blobs.Options{}).Volume(t.Context(), q); !bad(err) {
		t.Errorf("a text is taken: %v", err)
	}
}

func bad(err error) bool {
	_, ok := errors.AsType[*blobs.BadQueryError](err)
	return ok
}

// A listing that fails is an error, and a blob without metadata a problem.
func TestVolumeFails(t *testing.T) {
	w := week(t)
	q := blobs.Query{Services: []string{"web"}, Range: blobs.Always()}
	fail := errors.New("no")
	if _, _, err := blobs.New(failing(w, -1, storagetest.List, "web", fail), blobs.Options{}).Volume(t.Context(), q); !errors.Is(err, fail) {
		t.Errorf("a listing that fails: %v", err)
	}
	all, sum, err := blobs.New(w, blobs.Options{}).Volume(t.Context(), blobs.Query{Services: []string{"web", "wbe"}, Range: blobs.Always()})
	if err != nil || len(all) != 1 || len(sum.Problems) != 0 || len(sum.Absent) != 1 {
		t.Errorf("%v %v %v %v", all, sum.Problems, sum.Absent, err)
	}
}
