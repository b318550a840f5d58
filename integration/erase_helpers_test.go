package integration_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"blobtail/internal/dev/testkit"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/azure"
	"blobtail/storage/dir/tables"
	"blobtail/storage/storagetest"
	"blobtail/tailindex"
)

// people are the records of an estate. Some are of persons, who are to be erased.
type people struct {
	*estate
	mu      sync.Mutex
	lines   map[string]int // as they are stored; those of persons are not among them
	stays   []counted
	persons []string // their ids
	events  int
}

// counted is what an oracle counts of a record.
type counted struct {
	service, level, kind string
	hour                 int64
}

// person is the id of a person. It has no digits, so that a row of the tail has it as text.
func person(n int) string {
	return "person" + strings.Map(func(r rune) rune { return r - '0' + 'a' }, fmt.Sprintf("%05d", n))
}

// post sends n records of a service that begin at a time. Each nth is of a person; in the last one, which
// no program can read, there is one too. 0: none is.
func (c *people) post(p *ingester, service string, at time.Time, n, nth int) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var body []byte
	lines, torn := map[string]int{}, 0
	for i := range n {
		c.events++
		level, kind := []string{"info", "warn", "error"}[c.events%3], strconv.Itoa(c.events%7)
		who, text := "somebody", ""
		if nth > 0 && i%nth == nth-1 {
			who = person(len(c.persons))
			c.persons = append(c.persons, who)
			text = " of " + who
		}
		line := fmt.Sprintf(`{"ts":%q,"level":%q,"service":%q,"msg":"request %d%s","user":%q,"kind":%q}`+"\n",
			record.AppendTime(nil, at.Add(time.Duration(i)*time.Millisecond).UnixNano()), level, service, c.events, text, who, kind)
		body = append(body, line...)
		if text == "" {
			lines[line]++
			c.stays = append(c.stays, counted{service, level, kind, at.Truncate(time.Hour).Unix()})
		}
	}
	if nth > 0 {
		torn = 1
		c.persons = append(c.persons, person(len(c.persons)))
		body = fmt.Appendf(body, `{"msg":"torn","user":%q`+"\n", c.persons[len(c.persons)-1])
	}
	if code, a, _, err := p.post("/ingest/"+service, body); err != nil || code != http.StatusOK || a.Accepted != n || a.Rejected != torn {
		c.t.Fatalf("POST: %d %+v, %v", code, a, err)
	}
	maps.Copy(c.lines, lines)
}

// rows opens the tables of a place.
func rowsOfPlace(t testing.TB, at place) (storage.TableStore, string) {
	t.Helper()
	if root, ok := strings.CutPrefix(at.store, "dir:"); ok {
		s, err := tables.Open(root)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s, ""
	}
	name := strings.TrimPrefix(at.store, "azure:")
	s, err := azure.Open(name, azure.Options{Getenv: shared.Azurite(t).Getenv})
	if err != nil {
		t.Fatal(err)
	}
	return s, name
}

// left are the places of a store that have a text which begins as those of persons do: objects, rows of
// the tail, and files of a directory as they are. It returns all lines of blobs too.
func (c *people) left() (found []string, lines map[string]int) {
	c.t.Helper()
	z, err := zstd.NewReader(nil)
	if err != nil {
		c.t.Fatal(err)
	}
	defer z.Close()
	lines = map[string]int{}
	blobs := blobsOfPlace(c.t, c.at)
	for _, key := range storagetest.KeysOf(c.t, blobs, "") {
		body := storagetest.Body(c.t, blobs, key)
		if strings.HasSuffix(key, ".log") {
			text, err := z.DecodeAll(body, nil)
			if err != nil {
				c.t.Fatalf("%s: %v", key, err)
			}
			for line := range bytes.Lines(text) {
				lines[string(line)]++
			}
			body = append(body, text...)
		}
		if bytes.Contains(body, []byte("person")) {
			found = append(found, key)
		}
	}
	rows, name := rowsOfPlace(c.t, c.at)
	n, err := tailindex.Erase(context.Background(), rows, tailindex.Options{Prefix: c.prefix, Store: name},
		[]string{"web", "orders", record.RejectedService}, true,
		func(_ string, line []byte) bool { return bytes.Contains(line, []byte("person")) })
	if err != nil {
		c.t.Fatal(err)
	}
	if n > 0 {
		found = append(found, "tail")
	}
	if root, ok := strings.CutPrefix(c.at.store, "dir:"); ok {
		found = append(found, within(c.t, root, "person")...)
	}
	return found, lines
}

// bodies are those of the rows of the tail, as they are stored.
func (c *people) bodies() (all []string) {
	c.t.Helper()
	rows, _ := rowsOfPlace(c.t, c.at)
	for _, service := range []string{"web", "orders", record.RejectedService} {
		table, partition := tailindex.Table(c.prefix, time.Now()), tailindex.Partition(service, 0)
		for row, err := range rows.Scan(context.Background(), table, partition, "", "", 0) {
			if err != nil {
				c.t.Fatal(err)
			}
			all = append(all, string(row.Props["d"].([]byte)))
		}
	}
	return all
}

// within are the files below a directory that have one of some texts.
func within(t testing.TB, root string, texts ...string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if strings.HasPrefix(e.Name(), ".tmp-") && !strings.Contains(path, "/_erase/") {
			found = append(found, path)
		}
		body, err := os.ReadFile(path)
		if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(string(body), text) }) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// erase runs retention erase with the hash that it asks for.
func (c *people) erase(where string, flags ...string) (stdout string) {
	c.t.Helper()
	args := append([]string{"erase", "--where", where}, flags...)
	out, errs := c.must(2, args...)
	if !strings.Contains(errs, "--confirm") {
		c.t.Fatal(errs)
	}
	out, errs = c.must(0, append(args, "--confirm", planHash(c.t, out))...)
	c.t.Logf("%s%s", out, errs)
	return out
}

// agrees compares the store, and what readers say of it, with the records that stay.
func (c *people) agrees(when string, s *server) {
	c.t.Helper()
	found, lines := c.left()
	if len(found) > 0 {
		c.t.Errorf("%s: persons are in %v", when, found)
	}
	for line := range lines { // a blob that was replaced may be there still
		if lines[line] = 1; strings.Contains(line, `"service":"_rejected"`) {
			delete(lines, line)
		}
	}
	if !maps.Equal(lines, c.lines) {
		c.t.Errorf("%s: %d lines are stored, and not the %d that stay", when, len(lines), len(c.lines))
	}
	shown := map[string]int{}
	for line := range bytes.Lines(query(c.t, c.at, "*", "-o", "json")) {
		shown[string(line)]++
	}
	if !maps.Equal(shown, c.lines) {
		c.t.Errorf("%s: logquery shows %d lines, and not the %d that stay", when, len(shown), len(c.lines))
	}
	of := func(label func(r *counted) string, of func(r *counted) bool) map[string]int {
		all := map[string]int{}
		for i := range c.stays {
			if r := &c.stays[i]; of(r) {
				all[label(r)]++
			}
		}
		return all
	}
	all := func(*counted) bool { return true }
	web := func(r *counted) bool { return r.service == "web" && r.kind == "3" }
	if n := count(c.t, c.at, "*,_rejected"); n != len(c.stays) {
		c.t.Errorf("%s: logquery counts %d, want %d", when, n, len(c.stays))
	}
	same := func(what string, got, want map[string]int) {
		c.t.Helper()
		if !maps.Equal(got, want) {
			c.t.Errorf("%s: %s: %v, want %v", when, what, got, want)
		}
	}
	total := of(func(r *counted) string { return time.Unix(r.hour, 0).UTC().Format("2006-01-02T15") }, all)
	hist := query(c.t, c.at, "hist", "*", "--by", "1h", "-o", "csv")
	same("hist", csvOf(hist, func(f []string) (string, string) { return f[0][:13], f[1] }), total)
	top := query(c.t, c.at, "top", "level,kind", "*", "-n", "0", "-o", "csv")
	same("top", csvOf(top, func(f []string) (string, string) { return f[0] + f[1], f[2] }),
		of(func(r *counted) string { return r.level + r.kind }, all))

	first, last := c.stays[0].hour, c.stays[0].hour
	for _, r := range c.stays {
		first, last = min(first, r.hour), max(last, r.hour)
	}
	const (
		levels = `sum by (level) (count_over_time({service_name=~"web|orders"}[1h]))`
		third  = `sum by (service_name) (count_over_time({service_name="web"} | kind="3" [1h]))`
	)
	same("LogQL", s.points("query_range", levels, first, last+3600),
		of(func(r *counted) string { return fmt.Sprint(r.level, r.hour+3600) }, all))
	same("LogQL with a filter", s.points("query_range", third, first, last+3600),
		of(func(r *counted) string { return fmt.Sprint(r.service, r.hour+3600) }, web))
	span := fmt.Sprintf("%dh", (last-first)/3600+1)
	lasting := `sum by (level) (count_over_time({service_name=~"web|orders"} |= "request" [` + span + `]))`
	same("a LogQL instant", s.points("query", lasting, 0, last+3600),
		of(func(r *counted) string { return fmt.Sprint(r.level, last+3600) }, all))
	if got := s.points("query", `count_over_time({service_name=~".+"} |= "person" [`+span+`])`, 0, last+3600); len(got) > 0 {
		c.t.Errorf("%s: LogQL counts %v records of persons", when, got)
	}
	query(c.t, c.at, "verify")
}

// csvOf reads numbers of a table without zeros.
func csvOf(out []byte, of func(fields []string) (label, n string)) map[string]int {
	all := map[string]int{}
	for i, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		if i == 0 {
			continue
		}
		label, text := of(strings.Split(line, ","))
		if n, _ := strconv.Atoi(text); n != 0 {
			all[label] += n
		}
	}
	return all
}

// points asks Loki's API, and returns the numbers by the only label and the time.
func (s *server) points(route, text string, from, to int64) map[string]int {
	s.t.Helper()
	v := url.Values{"query": {text}, "start": {fmt.Sprint(from)}, "end": {fmt.Sprint(to)}, "step": {"3600"}, "time": {fmt.Sprint(to)}}
	body := s.mustGet("/loki/api/v1/" + route + "?" + v.Encode())
	var a struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  []any
				Values [][]any
			}
		}
	}
	if err := json.Unmarshal(body, &a); err != nil {
		s.t.Fatalf("%v: %.300s", err, body)
	}
	all := map[string]int{}
	for _, r := range a.Data.Result {
		if r.Value != nil {
			r.Values = append(r.Values, r.Value)
		}
		for _, v := range r.Values {
			n, err := strconv.Atoi(v[1].(string))
			if err != nil {
				s.t.Fatal(err)
			}
			if n > 0 {
				all[fmt.Sprint(strings.Join(slices.Collect(maps.Values(r.Metric)), ","), int64(v[0].(float64)))] += n
			}
		}
	}
	return all
}

// forgets waits until a server has dropped what it has found for a question, as it does within two
// minutes. It does nothing in the daily run, where a test of package reading/blobs has virtual time.
func (s *server) forgets(question string) {
	s.t.Helper()
	if _, long := torture(s.t); !long {
		return
	}
	blocks := func() int {
		var a struct {
			Cost struct {
				Read int `json:"blocks_read"`
			}
		}
		if body := s.mustGet(question); json.Unmarshal(body, &a) != nil {
			s.t.Fatalf("%.300s", body)
		}
		return a.Cost.Read
	}
	blocks()
	begun := time.Now()
	if first := blocks(); first > 0 && blocks() > 0 {
		s.t.Error("the server keeps nothing")
	}
	testkit.Until(s.t, "the server drops what it has found", func() bool { return blocks() > 0 })
	if took := time.Since(begun); took > 2*time.Minute {
		s.t.Errorf("the server dropped it after %v", took)
	}
}
