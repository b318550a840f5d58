package closing_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/reading/blobs"
	"blobtail/storage/storagetest"
	"blobtail/storage/together"
)

// A read of the newest records lists hours from the newest back. It finds also what is missing before the
// last hour that is there, and between the hours that it lists.
func TestNewestRobbed(t *testing.T) {
	blobsOf := func(day string) []string {
		return []string{"web/2026/11/" + day + "/0", "web/2026/11/" + day + "/1", "web/2026/11/" + day + "/2"}
	}
	for name, c := range map[string]struct {
		robbed []string // prefixes of what is removed
		limit  int
		says   string // "": nothing
	}{
		"nothing":                    {nil, 1000, ""},
		"an hour before all":         {[]string{"web/2026/11/19/03"}, 1000, "web/2026/11/19/0300/000001.log: it is missing"},
		"the oldest day":             {blobsOf("19"), 1000, "web/2026/11/19/0300/000001.log: it is missing"},
		"a day between":              {blobsOf("20"), 35, "web/2026/11/20/2300/000001.log: it is missing"},
		"a day with its account":     {[]string{"web/2026/11/20/"}, 35, "web/2026/11/20/_closed.*: the part"},
		"such a day of one of two":   {[]string{"web/2026/11/20/"}, 65, "web/2026/11/20/_closed.*: the part"},
		"an hour that is not needed": {[]string{"web/2026/11/19/03"}, 5, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.now = day.Add(98 * time.Hour)
			for d := range 3 {
				for _, service := range []string{"web", "beside"} {
					for _, h := range []int{3, 15, 23} {
						w.blob(service, day.Add(time.Duration(24*(d-1)+h)*time.Hour), 1, 10)
					}
				}
			}
			w.close()
			for _, prefix := range c.robbed {
				w.remove(storagetest.KeysOf(t, w.store, prefix)...)
			}
			for _, distant := range []bool{false, true} {
				for _, services := range []string{"web", "*"} {
					if services == "*" && c.limit < 50 {
						continue
					}
					r := blobs.New(w.store, blobs.Options{Distant: distant, Now: func() time.Time { return w.now }})
					q := blobs.Query{Services: []string{services}, Range: blobs.Always(), Limit: c.limit}
					sum, err := r.Newest(context.Background(), q, func([]byte) error { return nil })
					told := slices.ContainsFunc(sum.Problems, func(err error) bool { return strings.HasPrefix(err.Error(), c.says) })
					if err != nil || told != (c.says != "") || c.says == "" && len(sum.Problems) > 0 {
						t.Errorf("distant %v, %s: %d records, %v, %q", distant, services, sum.Records, err, sum.Problems)
					}
				}
			}
		})
	}
}

// A read whose time is over before it has judged a day is not complete.
func TestNewestEndsInDoubt(t *testing.T) {
	w := newWorld(t)
	w.remove(w.hours("web")[:3]...)
	w.blob("web", day.Add(2*time.Hour), 1, 10)
	w.close()
	w.remove(storagetest.KeysOf(t, w.store, "web/"+day.Format("2006/01/02")+"/02")...)
	ctx, cancel := context.WithCancel(context.Background())
	store := storagetest.Faulty(w.store, func(op storagetest.Op, key string) storagetest.Fault {
		if op == storagetest.Get && strings.Contains(key, "/_closed.") {
			cancel()
		}
		return storagetest.Fault{Before: ctx.Err()}
	})
	r := blobs.New(store, blobs.Options{Now: func() time.Time { return w.now }})
	sum, err := r.Newest(ctx, blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Limit: 1000}, func([]byte) error { return nil })
	if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%d records, %v, %q", sum.Records, err, sum.Problems)
	}
}

// The account of a day is found from each of its hours, and where a root cannot be read nobody says that
// no day is missing.
func TestLastHours(t *testing.T) {
	w := newWorld(t)
	keys := w.hours("web")
	w.close()
	w.remove(keys[9]) // of 23 o'clock
	for from := range 24 {
		if _, problems, _ := w.read("web", time.Duration(from)*time.Hour, 24*time.Hour); len(problems) != 1 {
			t.Errorf("from %d o'clock: %q", from, problems)
		}
	}
	w.remove(storagetest.KeysOf(t, w.store, "web/")...)
	w.blob("web", day.Add(-24*time.Hour), 1, 10)
	away := errors.New("it is away")
	store := storagetest.Faulty(w.store, storagetest.Times(9, storagetest.Get, "_closed/", storagetest.Fault{Before: away}))
	q := blobs.Query{Services: []string{"web"}, Range: blobs.Range{From: day.UnixNano(), To: day.Add(24 * time.Hour).UnixNano()}}
	p, err := blobs.New(store, blobs.Options{Now: func() time.Time { return w.now }}).Plan(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := p.Read(context.Background(), func([]byte) error { return nil })
	if err != nil || len(sum.Problems) != 1 || !errors.Is(sum.Problems[0], away) {
		t.Errorf("%v, %q", err, sum.Problems)
	}
}

// An account that is gone with blobs stays a finding, also if the day was closed anew since.
func TestClosedAnew(t *testing.T) {
	w := newWorld(t)
	keys := w.hours("web")
	w.close()
	w.remove(keys[0], "web/2026/11/20/_closed.000001")
	w.close()
	found := w.verify()
	if !slices.ContainsFunc(found, func(f string) bool { return strings.HasPrefix(f, "web/2026/11/20/_closed.*: the part") }) {
		t.Errorf("verify finds %q", found)
	}
}

// A day in doubt is listed anew, also if a read that began together has listed it before it had a part.
func TestSharedListing(t *testing.T) {
	w := newWorld(t)
	w.hours("web")
	party := together.New(2)
	one, other := party.Reader(), party.Reader()
	one.Ready()
	other.Ready()
	if n := len(storagetest.KeysOf(t, one.Store(w.store), "web/2026/11/20/")); n != 12 {
		t.Fatalf("%d blobs", n)
	}
	w.close()
	w.blob("web", day.Add(15*time.Hour), 4, 1) // which the account lacks
	r := blobs.New(other.Store(w.store), blobs.Options{Now: func() time.Time { return w.now }, Distant: true})
	p, err := r.Plan(t.Context(), blobs.Query{Services: []string{"web"},
		Range: blobs.Range{From: day.Add(15 * time.Hour).UnixNano(), To: day.Add(16 * time.Hour).UnixNano()}})
	if err != nil {
		t.Fatal(err)
	}
	sum, err := p.Read(t.Context(), func([]byte) error { return nil })
	if err != nil || sum.Records != 31 || len(sum.Problems) > 0 {
		t.Errorf("%d records, %v, %v", sum.Records, sum.Problems, err)
	}
	one.Leave()
	other.Leave()
}
