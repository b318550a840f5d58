package api_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"blobtail/reading/form"
	"blobtail/reading/readingtest"
	"blobtail/storage/storagetest"
)

// The lists of days and blobs have stored records, and those in no blob yet.
func TestLists(t *testing.T) {
	h := readingtest.New(t, 1)
	fill(h, 0, "web", then, 100)
	fill(h, 0, "web", then.Add(2*time.Hour), 10)
	fill(h, 0, "web", then.AddDate(0, 0, 1), 5)
	h.Flush()
	fill(h, 0, "web", then.Add(3*time.Hour), 7)
	s := serve(t, h)
	days := object[form.Days](s, "days?service=web")
	if len(days.Days) != 2 || days.Days[0].Day != "2026-11-20" || days.Days[0].Records != 110 || days.Days[0].Unflushed != 7 || days.Days[1].Records != 5 {
		t.Errorf("days: %+v", days)
	}
	for _, query := range []string{"day=2026-11-20", "from=2026-11-20&to=2026-11-21", "to=2026-11-21"} {
		blobs := object[form.Blobs](s, "blobs?service=web&"+query)
		if len(blobs.Blobs) != 2 || blobs.Blobs[0].Records != 100 || blobs.Blobs[1].Records != 10 || blobs.Unflushed != 7 || !blobs.Complete {
			t.Errorf("%s: blobs: %+v", query, blobs)
		}
	}
	all := object[form.Blobs](s, "blobs?service=*")
	for i, key := range h.Blobs("web") {
		if all.Blobs[i].Name != key || all.Blobs[i].Stored == 0 || all.Blobs[i].Bytes == 0 {
			t.Errorf("blob %d: %+v", i, all.Blobs[i])
		}
	}
	if few := object[form.Blobs](s, "blobs?service=web&from=2026-11-20T14:00&to=2026-11-20T15:00"); len(few.Blobs) != 1 {
		t.Errorf("blobs of an hour: %+v", few)
	}
}

// Lists of blobs alone answer as counts do: a service with records in no blob yet exists, and one
// without records is absent.
func TestListsOfBlobsAlone(t *testing.T) {
	h := readingtest.New(t, 1)
	fill(h, 0, "fresh", then, 3)
	s := serve(t, h)
	for _, path := range []string{"count", "days", "blobs", "facets", "histogram?split=service"} {
		path += map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")] + "service=nosuch,fresh&live=off"
		a := s.get(path)
		if a.status != http.StatusOK {
			t.Errorf("%s: %d %s", path, a.status, a.body)
			continue
		}
		if o := outcomeOf(t, a); !o.Complete || len(o.Absent) != 1 || !strings.Contains(strings.Join(o.Warnings, " "), "fresh has no blob yet") {
			t.Errorf("%s: %s", path, a.body)
		}
	}
}

// A blob comes as it is stored or decoded, whole or in part.
func TestBlob(t *testing.T) {
	h := readingtest.New(t, 1)
	fill(h, 0, "web", then, 1000)
	h.Flush()
	s := serve(t, h)
	key := h.Blobs("web")[0]
	lines := s.get("records?service=web&limit=0").body
	stored := storagetest.Body(t, h.Store, key)
	decode := func(body string) string {
		d, err := zstd.NewReader(strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		text, err := io.ReadAll(d)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	if a := s.get("blobs/" + key); a.body != lines || a.header.Get("Content-Encoding") != "" || a.header.Get("Content-Type") != form.Lines {
		t.Errorf("decoded: %v", a.header)
	}
	a := s.get("blobs/"+key, "Accept-Encoding", "gzip, zstd")
	if a.header.Get("Content-Encoding") != "zstd" || a.body != string(stored) || decode(a.body) != lines {
		t.Errorf("encoded: %v", a.header)
	}
	if a := s.get("blobs/"+key, "Accept-Encoding", "zstd;q=0"); a.header.Get("Content-Encoding") != "" || a.body != lines {
		t.Errorf("zstd is refused: %v", a.header)
	}
	if a := s.get("blobs/" + key + "?stored=1"); a.header.Get("Content-Encoding") != "" || a.body != string(stored) || a.header.Get("Content-Type") != form.Stored {
		t.Errorf("stored: %v", a.header)
	}
	a = s.get("blobs/"+key, "Range", "bytes=10-19")
	if a.status != http.StatusPartialContent || !bytes.Equal([]byte(a.body), stored[10:20]) || a.header.Get("Content-Encoding") != "zstd" {
		t.Errorf("a part: %d %v", a.status, a.header)
	}
	for _, part := range []string{"bytes=10-19", "bytes="} { // the second one is answered as a whole
		if a := s.get("blobs/"+key, "Range", part); a.header.Get(form.TrailerComplete) != "" {
			t.Errorf("%s was not checked, and claims to be complete: %v", part, a.header)
		}
	}
	if a := s.do(http.MethodHead, "blobs/"+key+"?stored=1"); a.status != http.StatusOK || a.header.Get("Content-Length") == "" || a.body != "" {
		t.Errorf("head: %d %v", a.status, a.header)
	}
	if a := s.get("blobs/web/2026/11/20/1200/000777.log"); a.status != http.StatusNotFound {
		t.Errorf("missing: %d %s", a.status, a.body)
	}
	for _, name := range []string{"_store", "web", "../web", key + "/x"} {
		if a := s.get("blobs/" + name); a.status != http.StatusNotFound && a.status != http.StatusMovedPermanently && a.status != http.StatusTemporaryRedirect {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}

// The list of ingesters has them all, with their state.
func TestIngesters(t *testing.T) {
	h := readingtest.New(t, 2)
	fill(h, 0, "web", then, 10)
	fill(h, 1, "web", then, 10)
	s := serve(t, h)
	all := object[form.Ingesters](s, "ingesters")
	if len(all.Ingesters) != 2 || !all.Complete || all.Ingesters[0].State != "live" || all.Ingesters[0].ID != "00000001" || all.Ingesters[0].Holds != "holding" {
		t.Errorf("%+v", all)
	}
	first := all.Ingesters[0]
	if first.Host == "" || first.Address == "" {
		t.Errorf("%+v", first)
	}
	// A token for some services gets nothing that tells of others, or of the network.
	for _, read := range [][]string{{"web"}, {"web", "_*"}} {
		if some := object[form.Ingesters](serve(t, h, read...), "ingesters"); len(some.Ingesters) != 2 || !some.Complete || some.Ingesters[0].ID != first.ID ||
			some.Ingesters[0].Holds != first.Holds || some.Ingesters[0].Host+some.Ingesters[0].Address+some.Ingesters[0].Oldest+some.Ingesters[0].Floor != "" || some.Ingesters[0].Unflushed != 0 {
			t.Errorf("%q: %+v", read, some)
		}
	}
	if whole := object[form.Ingesters](serve(t, h, "*"), "ingesters"); whole.Ingesters[0].Address == "" {
		t.Errorf("%+v", whole)
	}
}
