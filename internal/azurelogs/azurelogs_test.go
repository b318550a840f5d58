package azurelogs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/internal/azurelogs"
	"blobtail/storage"
	"blobtail/storage/mem"
)

func hour(text string) time.Time {
	t, err := time.Parse("2006-01-02T15", text)
	if err != nil {
		panic(err)
	}
	return t
}

// write makes a file below a directory.
func write(t testing.TB, dir, key, text string) {
	t.Helper()
	name := filepath.Join(dir, filepath.FromSlash(key))
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// classic is a line of Storage Analytics.
func classic(at, account, id string) string {
	f := make([]string, 30)
	f[0], f[1], f[2], f[3], f[4], f[9], f[13], f[14] = "1.0", at, "GetBlob", "Success", "200", account, id, "0"
	return strings.Join(f, ";") + "\n"
}

func resource(at, category, more string) string {
	return fmt.Sprintf(`{"time":%q,"category":%q%s}`+"\n", at, category, more)
}

func dirSource(dir string) *azurelogs.Source {
	return azurelogs.New(azurelogs.Options{Find: func(context.Context) ([]azurelogs.Container, error) { return azurelogs.Dir(dir) }})
}

// services joins the services of a source.
func services(t *testing.T, s *azurelogs.Source) string {
	t.Helper()
	names, err := s.Services(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

// keys are the hours and keys of the blobs of a service.
func keys(t *testing.T, s *azurelogs.Source, service string, span azurelogs.Span) (out []string) {
	t.Helper()
	blobs, err := s.Blobs(t.Context(), service, span)
	if err != nil {
		t.Fatal(err)
	}
	for i := range blobs {
		out = append(out, blobs[i].Hour.Format("02T15 ")+blobs[i].Key)
	}
	return out
}

const flow = "resourceId=/SUBSCRIPTIONS/s/RESOURCEGROUPS/g/PROVIDERS/M.S/A/acct/"

// The directory of an account, or of one container, has services by names and by lines.
func TestServices(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "$logs/blob/2026/11/22/0300/000000.log", "broken\n"+classic("2026-11-22T03:00:01Z", "acct", "a"))
	write(t, dir, "$logs/table/2026/11/22/0300/000000.log", classic("2026-11-22T03:00:01Z", "acct", "a"))
	write(t, dir, "insights-logs-storageread/"+flow+"y=2026/m=11/d=22/h=03/m=00/PT1H.json", resource("2026-11-22T03:00:01Z", "StorageRead", ""))
	write(t, dir, "insights-activity-logs/resourceId=/SUBSCRIPTIONS/s/y=2026/m=11/d=22/h=03/m=00/PT1H.json", resource("2026-11-22T03:00:01Z", "Administrative", ""))
	write(t, dir, "copied/flowLogResourceID=/s/y=2026/m=11/d=22/h=03/m=00/macAddress=00/PT1H.json", `{"records":[{"time":"2026-11-22T03:00:01Z","category":"FlowLogFlowEvent"}]}`)
	write(t, dir, "other/readme.txt", "nothing")
	write(t, dir, "readme.txt", "nothing")
	for path, want := range map[string]string{
		"": "acct.blob acct.table activity-logs flowlogflowevent storageread", "$logs": "acct.blob acct.table", "insights-logs-storageread": "storageread",
		"copied": "flowlogflowevent", "other": "",
	} {
		if got := services(t, dirSource(filepath.Join(dir, path))); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	for _, path := range []string{"missing", "readme.txt"} {
		if _, err := dirSource(filepath.Join(dir, path)).Services(t.Context()); err == nil {
			t.Errorf("%s is a source", path)
		}
	}
	_, err := dirSource(dir).Blobs(t.Context(), "nosuch", azurelogs.Span{})
	if none := (*azurelogs.NoServiceError)(nil); !errors.As(err, &none) || none.Service != "nosuch" {
		t.Errorf("%v", err)
	}
}

// A known account names the services. Those of the lines' owner are the same.
func TestAlias(t *testing.T) {
	store := mem.New(mem.Options{})
	err := store.Create(t.Context(), "blob/2026/11/22/0300/000000.log", []byte(classic("2026-11-22T03:00:01Z", "other", "a")), storage.Attrs{
		Metadata: map[string]string{"starttime": "2026-11-22T03:00:01Z", "endtime": "2026-11-22T03:00:05Z"}})
	if err != nil {
		t.Fatal(err)
	}
	s := azurelogs.New(azurelogs.Options{Account: "acct", Find: func(context.Context) ([]azurelogs.Container, error) {
		return []azurelogs.Container{{Name: "classic", Objects: store}}, nil
	}})
	if got := services(t, s); got != "acct.blob" {
		t.Errorf("%s", got)
	}
	for _, service := range []string{"acct.blob", "other.blob"} {
		blobs, err := s.Blobs(t.Context(), service, azurelogs.Span{})
		if err != nil || len(blobs) != 1 || blobs[0].Service != service || blobs[0].Last.Sub(blobs[0].First) != 4*time.Second {
			t.Errorf("%s: %+v, %v", service, blobs, err)
		}
	}
	if _, err := s.Blobs(t.Context(), "third.blob", azurelogs.Span{}); err == nil {
		t.Error("a service of nobody is found")
	}
}

// A span has the blobs of its hours, in order, and nothing else that lies about.
func TestSpans(t *testing.T) {
	dir := t.TempDir()
	for _, at := range []string{"2025/12/31/2300", "2026/01/01/0000", "2026/01/31/1900", "2026/02/01/0900", "2026/02/01/1000", "2026/02/01/1100"} {
		write(t, dir, "$logs/blob/"+at+"/000000.log", classic("2026-02-01T00:00:00Z", "acct", "a"))
		p := strings.Split(at, "/")
		for _, r := range []string{"a", "b"} {
			key := fmt.Sprintf("resourceId=/%s/x/y=%s/m=%s/d=%s/h=%s/m=00/PT1H.json", r, p[0], p[1], p[2], p[3][:2])
			write(t, dir, "insights-logs-c/"+key, resource("2026-02-01T00:00:00Z", "C", ""))
		}
	}
	write(t, dir, "$logs/blob/2026/02/01/1000/000001.log", classic("2026-02-01T00:00:00Z", "acct", "a"))
	for _, odd := range []string{"blob/2026/02/30/1000/000000.log", "blob/2026/02/01/1000.log", "blob/latest.log", "blob/2026/02/01/1000/empty.log"} {
		text := "x"
		if strings.HasSuffix(odd, "empty.log") {
			text = ""
		}
		write(t, dir, "$logs/"+odd, text)
	}
	s := dirSource(dir)
	for _, test := range []struct {
		from, to string
		want     string
	}{
		{"", "", "31T23 01T00 31T19 01T09 01T10 01T10 01T11"}, {"2026-02-01T10", "2026-02-01T10", "01T10 01T10"}, {"2026-01-31T19", "2026-02-01T09", "31T19 01T09"},
		{"2025-12-31T23", "2026-01-01T00", "31T23 01T00"}, {"2026-02-01T11", "", "01T11"}, {"", "2026-01-01T00", "31T23 01T00"}, {"2026-03-01T00", "2026-03-02T00", ""},
		{"2026-01-15T00", "2026-01-20T00", ""},
	} {
		var span azurelogs.Span
		if test.from != "" {
			span.From = hour(test.from)
		}
		if test.to != "" {
			span.To = hour(test.to)
		}
		var hours []string
		for _, k := range keys(t, s, "acct.blob", span) {
			hours = append(hours, k[:5])
		}
		if got := strings.Join(hours, " "); got != test.want {
			t.Errorf("%s to %s: %s, want %s", test.from, test.to, got, test.want)
		}
		// Each of the two resources has the same hours, with one blob each.
		var both []string
		for _, h := range slices.Compact(strings.Fields(test.want)) {
			both = append(both, h, h)
		}
		hours = nil
		for _, k := range keys(t, s, "c", span) {
			hours = append(hours, k[:5])
		}
		if strings.Join(hours, " ") != strings.Join(both, " ") {
			t.Errorf("%s to %s: resources %v, want %v", test.from, test.to, hours, both)
		}
	}
	for _, service := range []string{"acct.blob", "c"} {
		if years, err := s.Years(t.Context(), service); err != nil || fmt.Sprint(years) != "[2025 2026]" {
			t.Errorf("%s: %v, %v", service, years, err)
		}
	}
}

// all reads the blobs of a service, and returns the lines and the errors.
func all(t *testing.T, s *azurelogs.Source, service string) (lines []string, chunks []azurelogs.Chunk, errs []error) {
	t.Helper()
	blobs, err := s.Blobs(t.Context(), service, azurelogs.Span{})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(azurelogs.Seen)
	for i := range blobs {
		for c, err := range azurelogs.Read(t.Context(), &blobs[i], seen) {
			if err != nil {
				errs = append(errs, err)
				continue
			}
			for n := range c.Lines {
				lines = append(lines, fmt.Sprintf("%s/%d %s", c.Origin, c.Index(uint32(n)), c.Line(n)))
			}
			for _, bad := range c.Malformed {
				errs = append(errs, bad)
			}
			chunks = append(chunks, azurelogs.Chunk{Copies: c.Copies, Request: c.Request})
		}
	}
	return lines, chunks, errs
}

// A blob that has grown has the same records again, and more. Their origins are in the order
// of the blob.
func TestGrowth(t *testing.T) {
	dir, text := t.TempDir(), ""
	const key = "$logs/blob/2026/11/22/0300/000000.log"
	var before []string
	for n := range 3 {
		for i := range 3000 {
			text += classic(fmt.Sprintf("2026-11-22T03:00:00.%04dZ", i), "acct", fmt.Sprint(n, i))
		}
		write(t, dir, key, text)
		lines, chunks, errs := all(t, dirSource(dir), "acct.blob")
		if len(errs) > 0 || len(lines) != 3000*(n+1) || len(chunks) != (len(lines)+4095)/4096 {
			t.Fatalf("%d lines, %d chunks, %v", len(lines), len(chunks), errs)
		}
		if !slices.Equal(lines[:len(before)], before) {
			t.Fatal("growth has changed the records before it")
		}
		for i := 1; i < len(chunks); i++ {
			if slices.Compare(chunks[i-1].Origin[:], chunks[i].Origin[:]) >= 0 {
				t.Errorf("the origins of chunks %d and %d are not in order", i-1, i)
			}
		}
		before = lines
	}
}

// Copies within an hour are left out, and leave their places. Malformed lines are named.
func TestCopies(t *testing.T) {
	dir := t.TempDir()
	const at = "2026-11-22T03:00:01Z"
	write(t, dir, "$logs/blob/2026/11/22/0300/000000.log", classic(at, "acct", "a")+classic(at, "acct", "b")+classic(at, "acct", "a")+"broken\n"+classic(at, "acct", "c"))
	write(t, dir, "$logs/blob/2026/11/22/0300/000001.log", classic(at, "acct", "b")+classic(at, "acct", "d"))
	lines, chunks, errs := all(t, dirSource(dir), "acct.blob")
	if len(lines) != 4 || len(chunks) != 2 || chunks[0].Copies != 1 || chunks[1].Copies != 1 || !slices.IsSorted(lines) {
		t.Errorf("%q, %+v", lines, chunks)
	}
	for i, place := range []string{"/0 ", "/1 ", "/4 ", "/1 "} {
		if !strings.Contains(lines[i], place) {
			t.Errorf("line %d is not at %s: %s", i, place, lines[i])
		}
	}
	bad := (*azurelogs.LineError)(nil)
	if len(errs) != 1 || !errors.As(errs[0], &bad) || bad.Line != 4 || bad.Blob != "$logs/blob/2026/11/22/0300/000000.log" {
		t.Errorf("%v", errs)
	}
}

// A resource log is read as it is. A last line that has no end is malformed when the hour is
// over; a whole object is a record. A blob that is shorter by now, or gone, is an error after
// the records that could be read.
func TestListedSize(t *testing.T) {
	dir := t.TempDir()
	const key = "insights-logs-c/resourceId=/x/y=2026/m=11/d=22/h=03/m=00/PT1H.json"
	line := resource("2026-11-22T03:00:01Z", "C", "")
	write(t, dir, key, line+line[:10])
	s := dirSource(dir)
	blobs, err := s.Blobs(t.Context(), "c", azurelogs.Span{})
	if err != nil {
		t.Fatal(err)
	}
	read := func() (n int, err error) {
		for c, err := range azurelogs.Read(t.Context(), &blobs[0], nil) {
			if err != nil {
				return n, err
			}
			n += len(c.Lines) + 100*len(c.Malformed)
		}
		return n, nil
	}
	for _, test := range []struct {
		text string
		want int
		err  string
	}{{line + line[:10], 101, ""}, {line + line[:len(line)-1], 2, ""}, {line + line + line, 3, ""}, {line, 1, "shorter by 10 bytes"}} {
		write(t, dir, key, test.text)
		if n, err := read(); n != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%d bytes: %d, %v", len(test.text), n, err)
		}
	}
	if err := os.Remove(filepath.Join(dir, key)); err != nil {
		t.Fatal(err)
	}
	if n, err := read(); n != 0 || !errors.Is(err, storage.ErrNotExist) || !strings.Contains(err.Error(), key) {
		t.Errorf("%d, %v", n, err)
	}
}

// Of very many malformed lines the first are named, and the others counted.
func TestManyProblems(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "$logs/blob/2026/11/22/0300/000000.log", classic("2026-11-22T03:00:01Z", "acct", "a1")+strings.Repeat("broken\n", 25_000))
	blobs, err := dirSource(dir).Blobs(t.Context(), "acct.blob", azurelogs.Span{})
	if err != nil || len(blobs) != 1 {
		t.Fatal(blobs, err)
	}
	var p azurelogs.Problems
	for c, err := range azurelogs.Read(t.Context(), &blobs[0], nil) {
		if err != nil {
			t.Fatal(err)
		}
		p.Add(c.Malformed)
	}
	p.Fail(errors.New("it ends early"))
	list, rest := p.All(), (*azurelogs.UnnamedError)(nil)
	if p.Len() != 25_001 || len(list) != 10_002 || !errors.As(list[10_001], &rest) || rest.Parts() != 15_000 {
		t.Errorf("%d problems, %d in a list that ends with %v", p.Len(), len(list), list[len(list)-1])
	}
	if bad := (*azurelogs.LineError)(nil); !errors.As(list[9999], &bad) || bad.Line != 10_001 {
		t.Errorf("%v", list[9999])
	}
}

// What has hours in its name is a log behind any first part. Of a part without any a blob is listed,
// if it may be of the span and nobody ignores the part; a read of it fails.
func TestFirstParts(t *testing.T) {
	dir, line := t.TempDir(), resource("2026-11-20T10:00:06Z", "C", "")
	const hours = "/y=2026/m=11/d=20/h=10/m=00/PT1H.json"
	for _, key := range []string{
		"insights-logs-signinlogs/tenantId=72f988bf" + hours, "insights-logs-plain/anything/deeper" + hours, "insights-logs-none" + hours,
		"am-heartbeat/WorkspaceResourceId=/w/y=2026/m=11/d=20/h=10/m=05/PT05M.json", "copied/one=1" + hours,
		"insights-logs-signinlogs/strange=1/2025/01/02/03/x.json", "insights-logs-odd/undated/x.json", "insights-logs-odd/ignored=1/x.json",
		"insights-logs-web/resourceId=/s" + hours, "insights-logs-web/resourceId=/s/slots/b" + hours, "photos/2026/a.jpg",
	} {
		write(t, dir, key, line)
	}
	open := func(path string) *azurelogs.Source {
		return azurelogs.New(azurelogs.Options{Ignore: []string{"ignored=*"}, Find: func(context.Context) ([]azurelogs.Container, error) {
			return azurelogs.Dir(filepath.Join(dir, path))
		}})
	}
	for path, want := range map[string]string{"": "c heartbeat none odd plain signinlogs web", "insights-logs-signinlogs": "signinlogs"} {
		if got := services(t, open(path)); got != want {
			t.Errorf("%q: %s, want %s", path, got, want)
		}
	}
	for _, test := range []struct {
		service, from, to string
		logs              int
		odd               string
	}{
		{"signinlogs", "", "", 1, "strange=1"}, {"signinlogs", "2025-01-02T05", "2025-01-02T06", 0, "strange=1"},
		{"signinlogs", "2026-11-20T00", "2026-11-20T23", 1, ""}, {"signinlogs", "", "2024-12-31T00", 0, ""},
		{"odd", "2026-11-20T00", "2026-11-20T23", 0, "undated"}, {"odd", "", "2026-11-20T23", 0, "undated"},
		{"plain", "", "", 1, ""}, {"none", "", "", 1, ""}, {"heartbeat", "", "", 1, ""}, {"web", "", "", 2, ""}, {"c", "", "", 1, ""},
	} {
		var span azurelogs.Span
		if test.from != "" {
			span.From = hour(test.from)
		}
		if test.to != "" {
			span.To = hour(test.to)
		}
		blobs, err := open("").Blobs(t.Context(), test.service, span)
		if err != nil {
			t.Fatal(err)
		}
		logs, odd := 0, ""
		for i := range blobs {
			n := 0
			for _, err := range azurelogs.Read(t.Context(), &blobs[i], nil) {
				if n++; errors.Is(err, azurelogs.ErrOdd) != blobs[i].Odd() {
					t.Errorf("%s: %v", blobs[i].Path(), err)
				}
			}
			if part, _, _ := strings.Cut(blobs[i].Key, "/"); blobs[i].Odd() {
				odd += part
			} else {
				logs += n
			}
		}
		if logs != test.logs || odd != test.odd {
			t.Errorf("%+v: %d logs, odd %q", test, logs, odd)
		}
	}
}
