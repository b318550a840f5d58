package api_test

import (
	"bufio"
	"encoding/gob"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/reading/form"
	"blobtail/reading/readingtest"
)

// routes are a request for each route, with the record and the blob of a house.
func routes(h *readingtest.House, id string) []string {
	blob := "blobs/web/2026/11/20/1200/000001.log"
	if keys := h.Blobs("web"); len(keys) > 0 {
		blob = "blobs/" + keys[0]
	}
	return []string{
		"services", "services?from=2026-11-20", "records?service=*", "records?service=*&limit=0", "records?service=web&limit=0&form=events", "records?service=*&limit=0&form=csv&fields=ts,msg",
		"records?service=*&first=1000000", "records?service=*&limit=0&text=web", "records?service=*&limit=0&order=desc",
		"records/web/" + id, "context?service=web&id=" + id + "&services=all", "context?service=web&before=1000&after=1000&id=" + id,
		"histogram?service=*&by=1s", "histogram?service=*&by=1s&split=service", "histogram?service=*&text=web", "count?service=*&text=web", "count?service=*&from=2026-11-20T12:00:10Z",
		"histogram?service=*&split=status", "histogram?service=*&split=level,service&top=3&by=1s", "records?service=*&order=desc&form=events&before=" + id, "records?service=*&first=1000&after=" + id,
		"facets?service=*", "facets?service=*&sample=0", "patterns?service=*", "patterns?service=*&sample=0&top=1&from=2026-11-20T12:10:00Z&since2=1h", "days?service=*", "blobs?service=*", blob, blob + "?stored=1", "tail?service=*&once=1&n=10000", "tail?service=*&once=1&from=2026-11-20",
		"ingesters", "whoami",
		joint(`{"Slices":{"By":60000000000,"Split":["status"]}}`), joint(`{"Survey":{}}`), joint(`{"Window":0}`),
		joint(`{"Numbers":{"Text":"sum_over_time({service=~\".+\"} | unwrap status [24h])",` +
			`"Grid":{"Start":1795219200000000000,"End":1795219200000000000}}}`),
	}
}

// joint is a request for a part.
func joint(text string) string { return form.Parts + "?service=*&joint=" + url.QueryEscape(text) }

// looksComplete reports whether a client may believe that an answer has everything. An answer
// of one record has.
func looksComplete(t *testing.T, path string, a answer) bool {
	t.Helper()
	kind := a.header.Get("Content-Type")
	switch {
	case a.status != http.StatusOK || a.err != nil:
		return false
	case path == "whoami":
		return true
	case kind == form.JSON:
		var o form.Outcome
		if err := json.Unmarshal([]byte(a.body), &o); err != nil {
			t.Error(err)
		}
		if !o.Complete && len(o.Problems) == 0 {
			t.Errorf("%s gives no reason: %s", path, a.body)
		}
		return o.Complete
	case kind == form.Portable:
		var p form.Part
		if err := gob.NewDecoder(strings.NewReader(a.body)).Decode(&p); err != nil {
			t.Error(err)
		}
		return p.Complete
	case strings.Contains(path, "form=events") || strings.HasPrefix(path, "context") || kind == form.SSE:
		end := strings.LastIndex(a.body, `{"end":`)
		return end >= 0 && strings.Contains(a.body[end:], `"complete":true`)
	}
	return true
}

// idIn is the id of a record of a service.
func idIn(s *server, service string, at int) string {
	ids, _ := idsOf(s.events("records?service=" + service + "&limit=0&form=events"))
	return ids[at]
}

// If a blob is damaged or cannot be read, or an ingester is away that holds records, no answer
// that lacks records looks complete.
func TestNothingLooksComplete(t *testing.T) {
	for _, trouble := range []struct {
		name  string
		make  func(h *readingtest.House)
		whole func(path string) bool // lists know the facts of indexes and names, all the same
	}{
		{"nothing", func(*readingtest.House) {}, func(string) bool { return true }},
		{"damaged", func(h *readingtest.House) { h.Damage(h.Blobs("web")[0]) }, func(path string) bool {
			return path == "services" || strings.HasPrefix(path, "services?") || strings.HasPrefix(path, "days") || strings.HasPrefix(path, "blobs?") ||
				path == "ingesters" || path == "whoami" || strings.HasPrefix(path, "records/") || strings.Contains(path, "&after=") || strings.HasPrefix(path, "context?service=web&id=")
		}},
		{"away", func(h *readingtest.House) { h.Kill(1) }, func(path string) bool {
			return path == "ingesters" || path == "whoami" || strings.HasPrefix(path, "blobs/")
		}},
	} {
		t.Run(trouble.name, func(t *testing.T) {
			h := readingtest.New(t, 2)
			fill(h, 0, "web", then, 500)
			fill(h, 0, "orders", then.Add(time.Minute), 50)
			h.Flush()
			fill(h, 1, "web", then.Add(time.Hour), 50)
			s := serve(t, h)
			id := idIn(s, "web", 520)
			trouble.make(h)
			for _, path := range routes(h, id) {
				a := s.get(path)
				complete := looksComplete(t, path, a)
				if complete && !trouble.whole(path) {
					t.Errorf("%s looks complete: %d %v %.300s", path, a.status, a.trailer, a.body)
				}
				if trouble.name == "nothing" && !complete {
					t.Errorf("%s looks incomplete: %d %v %.300s", path, a.status, a.err, a.body)
				}
				if !complete && strings.HasPrefix(path, "records?") && !strings.Contains(path, "events") {
					if !errors.Is(a.err, io.ErrUnexpectedEOF) {
						t.Errorf("%s ends with %v", path, a.err)
					}
					part := s.get(path + "&partial=1")
					if part.err != nil || part.trailer.Get(form.TrailerComplete) != "0" || part.trailer.Get(form.TrailerProblems) == "" {
						t.Errorf("%s in part: %v %v", path, part.err, part.trailer)
					}
				}
			}
		})
	}
}

// curl fails if an answer lacks records, over HTTP/1.1 and HTTP/2.
func TestCurlFails(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("there is no curl")
	}
	h := readingtest.New(t, 1)
	fill(h, 0, "web", then, 500)
	h.Flush()
	s := serve(t, h)
	run := func(args ...string) (string, int) {
		cmd := exec.Command(curl, append([]string{"-sS", "--max-time", "20"}, args...)...)
		out, err := cmd.CombinedOutput()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	url := s.url + "records?service=web&limit=0"
	if out, code := run(url); code != 0 || strings.Count(out, "\n") != 500 {
		t.Errorf("%d %.300s", code, out)
	}
	h.Damage(h.Blobs("web")[0])
	if out, code := run(url); code != 18 {
		t.Errorf("curl ends with %d: %.300s", code, out)
	}
	if out, code := run("--compressed", url); code == 0 {
		t.Errorf("curl ends with %d: %.300s", code, out)
	}
	if out, code := run(url + "&partial=1"); code != 0 {
		t.Errorf("curl ends with %d: %.300s", code, out)
	}
	if out, code := run("--http1.0", url); code != 0 || !strings.Contains(out, "HTTP/1.0") {
		t.Errorf("curl ends with %d: %.300s", code, out)
	}
}

// In HTTP/2 the stream of an answer that lacks records is reset.
func TestHTTP2(t *testing.T) {
	h := readingtest.New(t, 1)
	fill(h, 0, "web", then, 500)
	h.Flush()
	s := serve(t, h)
	s.http.Close()
	s.http = secure(s)
	s.url = s.http.URL + "/api/v1/"
	if a := s.get("records?service=web&limit=0"); a.err != nil || strings.Count(a.body, "\n") != 500 || a.trailer.Get(form.TrailerComplete) != "1" {
		t.Errorf("%v %v", a.err, a.trailer)
	}
	h.Damage(h.Blobs("web")[0])
	a := s.get("records?service=web&limit=0")
	if a.err == nil || a.trailer.Get(form.TrailerComplete) == "1" {
		t.Errorf("%v %v %d lines", a.err, a.trailer, strings.Count(a.body, "\n"))
	}
	resp, err := s.http.Client().Transport.RoundTrip(s.request(http.MethodGet, "whoami"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.ProtoMajor != 2 {
		t.Errorf("the protocol is %s", resp.Proto)
	}
}

// A token sees nothing of services that it may not read, in any byte of any answer.
func TestNarrowedToken(t *testing.T) {
	testkit.FullOnly(t, "hundreds of questions, one after another")
	h := readingtest.New(t, 2)
	secrets := []string{"hidden", "webhook", "web-x"}
	for in := range 2 {
		fill(h, in, "web", then.Add(time.Duration(in)*time.Hour), 50)
		for _, name := range secrets {
			fill(h, in, name, then.Add(time.Duration(in)*time.Hour), 20)
		}
		if in == 0 {
			h.Flush()
		}
	}
	everything := serve(t, h)
	id, other := idIn(everything, "web", 5), idIn(everything, "hidden", 5)
	blob := h.Blobs("hidden")[0]
	s := serve(t, h, "web")
	paths := routes(h, id)
	for _, name := range append([]string{"*", "web*", "?*", "[a-z]*", "hid*", "_*", "wbe", "hiden", "hidden2"}, secrets...) {
		paths = append(paths, "records?limit=0&service="+name, "count?service="+name, "count?service=web&service="+name, "facets?service="+name, "blobs?service="+name, "days?service="+name, "tail?once=1&service="+name, "histogram?split=service&service="+name,
			"records/"+name+"/"+id, "context?services=all&service="+name+"&id="+other)
	}
	paths = append(paths, "records/web/"+other, "context?service=web&services=all&id="+other, "blobs/"+blob, "blobs/"+blob+"?stored=1", "openapi.json", "nonsense", "count?logql=%7Bservice%3D~%22.%2B%22%7D", "count?logql=%7Bservice%3D%22hidden%22%7D")
	look := func() {
		t.Helper()
		for _, path := range paths {
			a := s.get(path)
			text := a.body
			for _, list := range []http.Header{a.header, a.trailer} {
				for name, values := range list {
					text += name + strings.Join(values, " ")
				}
			}
			for _, name := range secrets {
				text := strings.ReplaceAll(text, `"service":"`+name+`"}`, "") // the name that was asked for
				if asked := strings.Contains(path, name); !asked && strings.Contains(text, name) {
					t.Errorf("%s shows %s: %.500s", path, name, text)
				} else if asked && a.status == http.StatusOK && strings.Contains(path, name+"&id") {
					t.Errorf("%s is answered: %.300s", path, text)
				}
			}
			if strings.Contains(text, "hidden 1") || strings.Contains(text, `"service":"hidden",`) {
				t.Errorf("%s shows records: %.500s", path, text)
			}
		}
	}
	look()
	if count := object[form.Count](s, "count?service=*"); count.Records != 100 {
		t.Errorf("it counts %d records", count.Records)
	}
	for _, name := range []string{"hidden", "nowhere"} { // a service that it may not read is like one that does not exist
		a := s.get("count?service=" + name)
		if want := strings.ReplaceAll(s.get("count?service=other00").body, "other00", name); a.body != want || a.status != http.StatusNotFound {
			t.Errorf("%s: %d %s, want %s", name, a.status, a.body, want)
		}
	}
	h.Damage(blob)
	look()
	h.Damage(h.Blobs("web")[0])
	look()
	h.Kill(1)
	look()
}

// The first bytes of a long answer come at once, and a client that has read enough can go.
func TestFirstBytes(t *testing.T) {
	testkit.FullOnly(t, "60,000 records")
	h := readingtest.New(t, 1)
	for i := range 20 {
		fill(h, 0, "web", then.Add(time.Duration(i)*time.Hour), 3000)
	}
	h.Flush()
	s := serve(t, h)
	for _, form := range []string{"lines", "events"} {
		begun := time.Now()
		resp, err := s.http.Client().Transport.RoundTrip(s.request(http.MethodGet, "records?service=web&limit=0&form="+form))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
			t.Error(err)
		}
		t.Logf("the first line of %s came after %s", form, time.Since(begun))
		resp.Body.Close()
	}
}

// An answer does not look complete if the condition could not judge a record: in a blob, or in
// the log of an ingester.
func TestUnjudged(t *testing.T) {
	h := readingtest.New(t, 1)
	fill(h, 0, "web", then, 10)
	h.Flush()
	fill(h, 0, "web", then.Add(time.Hour), 3)
	s := serve(t, h)
	for _, condition := range []string{
		"service=web&where=" + url.QueryEscape(`len(repeat(msg, 2000000)) > 0 and status == 200`),
		"logql=" + url.QueryEscape("{service=\"web\"} | line_format `{{repeat 2000000 .msg}}` |= \"web web\""),
		"logql=" + url.QueryEscape("{service=\"web\"} | line_format `{{repeat 2000000 .msg}}` != \"web web\""),
	} {
		for _, route := range []string{"records?", "records?limit=0&", "records?form=events&", "records?first=5&", "records?order=desc&", "count?", "histogram?", "histogram?split=service&", "facets?", "tail?once=1&", "tail?once=1&from=2026-11-20T12:30:00Z&"} {
			for _, live := range []string{"auto", "off"} {
				if strings.HasPrefix(route, "tail") && live == "off" {
					continue
				}
				path := route + condition + "&live=" + live
				if a := s.get(path); looksComplete(t, path, a) || a.status != http.StatusOK || a.err == nil && !strings.Contains(a.body, "not known of some records whether they match") {
					t.Errorf("%s: %d %v %.500s", path, a.status, a.err, a.body)
				}
			}
		}
	}
	for _, route := range []string{"records?", "count?", "tail?once=1&"} {
		path := route + "service=web&where=" + url.QueryEscape(`len(repeat(msg, 2000000)) > 0 and status == 100`)
		if a := s.get(path); !looksComplete(t, path, a) {
			t.Errorf("%s: %d %v %.500s", path, a.status, a.err, a.body)
		}
	}
}
