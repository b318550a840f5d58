package integration_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"blobtail/internal/dev/testkit"
)

// logcliAgent is the name by which logcli asks.
const logcliAgent = "loki-logcli/3.7.8"

// A logcliCommand is one of testdata/logcli/requests.txt.
type logcliCommand struct {
	line     string // in the shell
	requests []logcliRequest
	printed  string // by logcli, or ""
}

// A logcliRequest is a request of logcli, and the answer that it got.
type logcliRequest struct {
	uri    string
	header http.Header
	code   int
	form   string // in testdata/logcli/forms.txt, or text
	answer string
}

// logcliCommands reads testdata/logcli/requests.txt.
func logcliCommands(t testing.TB) (all []logcliCommand) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "logcli", "requests.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var last *logcliCommand
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		kind, rest, _ := strings.Cut(line, " ")
		switch kind {
		case "$":
			all = append(all, logcliCommand{line: rest})
			last = &all[len(all)-1]
		case "GET":
			last.requests = append(last.requests, logcliRequest{uri: rest, header: http.Header{"User-Agent": {logcliAgent}}})
		case ">":
			name, value, _ := strings.Cut(rest, ": ")
			last.requests[len(last.requests)-1].header.Add(name, value)
		case "<":
			r := &last.requests[len(last.requests)-1]
			words := strings.SplitN(rest+" ", " ", 3)
			if r.code, err = strconv.Atoi(words[0]); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			r.form, r.answer = words[1], strings.TrimSuffix(words[2], " ")
		case "=":
			last.printed = rest
		case "", "#":
		default:
			t.Fatalf("requests.txt has the line %q", line)
		}
	}
	return all
}

// lines is the number of lines that logcli printed.
func (c *logcliCommand) lines() string {
	n, _, _ := strings.Cut(c.printed, " ")
	return n
}

// A logcliForm is the parts of an answer, as logcli takes them.
type logcliForm []logcliPart

// A logcliPart is a place in a form, and the kinds that logcli takes there. One is missing.
type logcliPart struct {
	path  string
	steps []string
	kinds []string
}

var logcliStep = regexp.MustCompile(`\.\*|\.\w+|\[\d*\]`)

// logcliForms reads testdata/logcli/forms.txt.
func logcliForms(t testing.TB) map[string]logcliForm {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "logcli", "forms.txt"))
	if err != nil {
		t.Fatal(err)
	}
	forms, name := map[string]logcliForm{}, ""
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0] == "#":
		case words[0] == "==":
			name = words[1]
		default:
			forms[name] = append(forms[name], logcliPart{words[0], logcliStep.FindAllString(words[0], -1), words[1:]})
		}
	}
	return forms
}

// faults are the parts of an answer that logcli does not take.
func (f logcliForm) faults(answer any) (all []string) {
	for _, part := range f {
		for _, kind := range kindsAt(answer, part.steps) {
			if !slices.Contains(part.kinds, kind) {
				all = append(all, fmt.Sprintf("%s is %s, logcli takes %s", part.path, kind, strings.Join(part.kinds, ", ")))
			}
		}
	}
	return all
}

// kindsAt are the kinds of the values at a place. A place below one that is missing, or of another
// kind, has none.
func kindsAt(v any, steps []string) (all []string) {
	if len(steps) == 0 {
		return []string{kindOf(v)}
	}
	step, rest := steps[0], steps[1:]
	var below []any
	object, isObject := v.(map[string]any)
	array, isArray := v.([]any)
	switch {
	case step == ".*":
		for _, member := range object {
			below = append(below, member)
		}
	case step == "[]":
		below = array
	case step[0] == '.' && isObject:
		member, has := object[step[1:]]
		if !has && len(rest) == 0 {
			return []string{"missing"}
		} else if has {
			below = []any{member}
		}
	case step[0] == '[' && isArray:
		i, err := strconv.Atoi(strings.Trim(step, "[]"))
		if err != nil || i >= len(array) {
			return []string{"missing"}
		}
		below = array[i : i+1]
	}
	for _, b := range below {
		all = append(all, kindsAt(b, rest)...)
	}
	return all
}

func kindOf(v any) string {
	switch v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case json.Number:
		return "number"
	case bool:
		return "bool"
	}
	return "null"
}

// decodeNumbers decodes JSON, and keeps numbers as they are written.
func decodeNumbers(text []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("more behind the value: %v", err)
	}
	return v, nil
}

// withoutLogcliStats takes away the statistics of a query, such as its time.
func withoutLogcliStats(v any) any {
	if o, ok := v.(map[string]any); ok {
		if data, ok := o["data"].(map[string]any); ok {
			delete(data, "stats")
		}
	}
	return v
}

// ask sends a recorded request as it was recorded, and returns the code and the text of the answer.
func (s *server) ask(t testing.TB, r logcliRequest) (code int, text []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", s.url+r.uri, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = r.header.Clone()
	client := http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body := io.Reader(resp.Body)
	if how := resp.Header.Get("Content-Encoding"); how == "gzip" && r.header.Get("Accept-Encoding") == "gzip" {
		if body, err = gzip.NewReader(bufio.NewReader(body)); err != nil {
			t.Fatal(err)
		}
	} else if how != "" {
		t.Errorf("GET %s: logcli cannot read the encoding %s", r.uri, how)
	}
	if text, err = io.ReadAll(body); err != nil {
		t.Fatalf("GET %s: %v", r.uri, err)
	}
	return resp.StatusCode, text
}

// logcliEntries are the lines of an answer of streams, by their times.
func logcliEntries(answer any) (lines map[string]bool, times []int64) {
	var streams []any
	switch o := answer.(map[string]any); {
	case o["streams"] != nil:
		streams, _ = o["streams"].([]any)
	default:
		data, _ := o["data"].(map[string]any)
		streams, _ = data["result"].([]any)
	}
	lines = map[string]bool{}
	for _, s := range streams {
		stream, _ := s.(map[string]any)
		values, _ := stream["values"].([]any)
		for _, v := range values {
			if entry, ok := v.([]any); ok && len(entry) >= 2 {
				at, _ := strconv.ParseInt(fmt.Sprint(entry[0]), 10, 64)
				times = append(times, at)
				lines[fmt.Sprint(entry[1])] = true
			}
		}
	}
	slices.Sort(times)
	return lines, times
}

// replay sends the requests of a command, and compares each answer with the one that logcli got, in
// the form that logcli needs. It returns the lines that the answers have.
func (s *server) replay(t testing.TB, c logcliCommand, forms map[string]logcliForm) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, r := range c.requests {
		var lines map[string]bool
		var faults []string
		if r.form == "tail" {
			lines, faults = s.replayTail(t, r, forms[r.form], c.printed)
		} else {
			lines, faults = s.replayAnswer(t, r, forms[r.form])
		}
		maps.Copy(all, lines)
		for _, fault := range faults {
			t.Errorf("%s\nGET %s\n%s", c.line, r.uri, fault)
		}
	}
	return all
}

// replayAnswer sends a request, and returns the faults of its answer.
func (s *server) replayAnswer(t testing.TB, r logcliRequest, form logcliForm) (lines map[string]bool, faults []string) {
	t.Helper()
	code, text := s.ask(t, r)
	got := fmt.Sprintf("%d %s", code, strings.TrimSpace(string(text)))
	differs := func() string { return fmt.Sprintf(" got %.600s\nwant %d %.600s", got, r.code, r.answer) }
	if code != r.code || r.form == "text" {
		if got != fmt.Sprintf("%d %s", r.code, r.answer) {
			faults = append(faults, differs())
		}
		return nil, faults
	}
	answer, err := decodeNumbers(text)
	if err != nil {
		return nil, []string{fmt.Sprintf("%v in %.600s", err, text)}
	}
	faults = form.faults(answer)
	lines, times := logcliEntries(answer)
	if !strings.HasPrefix(r.answer, "{") {
		if got = pageOf(times); got != r.answer {
			faults = append(faults, differs())
		}
		return lines, faults
	}
	want, err := decodeNumbers([]byte(r.answer))
	if err != nil {
		t.Fatalf("requests.txt has the answer %s: %v", r.answer, err)
	}
	if !reflect.DeepEqual(withoutLogcliStats(answer), withoutLogcliStats(want)) {
		faults = append(faults, differs())
	}
	return lines, faults
}

// replayTail opens a tail until it has as many lines as logcli printed, and returns the faults of
// the tail.
func (s *server) replayTail(t testing.TB, r logcliRequest, form logcliForm, printed string) (lines map[string]bool, faults []string) {
	t.Helper()
	_, list, _ := strings.Cut(printed, ": ")
	want := strings.Split(list, ", ")
	lines = map[string]bool{}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	err := s.frame(ctx, t, r.uri, form, func(some map[string]bool, _ int64) bool {
		maps.Copy(lines, some)
		return len(lines) < len(want)
	})
	if got := slices.Sorted(maps.Keys(lines)); err != nil || !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		faults = append(faults, fmt.Sprintf(" got %q, %v\nwant %q", got, err, want))
	}
	return lines, faults
}

// pageOf describes a page by the times of its lines.
func pageOf(times []int64) string {
	if len(times) == 0 {
		return "no lines"
	}
	form := func(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }
	return fmt.Sprintf("%d lines, %s to %s", len(times), form(times[0]), form(times[len(times)-1]))
}

// frame opens a tail, and calls each for every frame with its lines and its last time, until that
// returns false.
func (s *server) frame(ctx context.Context, t testing.TB, uri string, form logcliForm, each func(lines map[string]bool, last int64) bool) error {
	c, _, err := websocket.Dial(ctx, strings.Replace(s.url, "http", "ws", 1)+uri,
		&websocket.DialOptions{HTTPHeader: http.Header{"User-Agent": {logcliAgent}}})
	if err != nil {
		return err
	}
	defer c.CloseNow()
	c.SetReadLimit(64 << 20)
	for {
		_, text, err := c.Read(ctx)
		if err != nil {
			return err
		}
		answer, err := decodeNumbers(text)
		if err != nil {
			return err
		}
		for _, fault := range form.faults(answer) {
			t.Errorf("GET %s: a frame: %s", uri, fault)
		}
		lines, times := logcliEntries(answer)
		if len(times) > 0 && !each(lines, times[len(times)-1]) {
			return nil
		}
	}
}
