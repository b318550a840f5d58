package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The generator's form of three records, and the stored one.
const (
	asSent = `{"ts":"2026-11-10T12:00:00.08Z","level":"debug","service":"auth","host":"auth-1","request_id":"8a3c","user_id":"u1","msg":"took \"3\" ms"}
{"ts":"2026-11-10T12:00:00Z","level":"error","service":"web","host":"web-1","request_id":"77","user_id":"u2","msg":"timeout after 1ms"}
{"ts":"2026-11-10T12:00:01.123456789Z","level":"info","service":"web","host":"web-1","request_id":"78","user_id":"u3","msg":"ends with \\"}
`
	asStored = `{"ts":"2026-11-10T12:00:00.000000000Z","level":"error","service":"web","msg":"timeout after 1ms","host":"web-1","request_id":"77","user_id":"u2"}
{"ts":"2026-11-10T12:00:00.080000000Z","level":"debug","service":"auth","msg":"took \"3\" ms","host":"auth-1","request_id":"8a3c","user_id":"u1"}
{"ts":"2026-11-10T12:00:01.123456789Z","level":"info","service":"web","msg":"ends with \\","host":"web-1","request_id":"78","user_id":"u3"}
`
)

// answer scans the sent records for a question.
func answer(t *testing.T, p parser, q question) digest {
	t.Helper()
	name := filepath.Join(t.TempDir(), "corpus")
	if err := os.WriteFile(name, []byte(asSent), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.scan(name, []*question{&q}); err != nil {
		t.Fatal(err)
	}
	return q.answer
}

// The stored records are the right answer for the sent ones, and no others are.
func TestCheck(t *testing.T) {
	p := newParser()
	all := answer(t, p, question{match: func(*rec) bool { return true }})
	if all.n != 3 {
		t.Fatalf("%d records", all.n)
	}
	if err := p.check([]byte(asStored), all); err != nil {
		t.Error(err)
	}
	lines := strings.SplitAfter(asStored, "\n")
	for name, out := range map[string]string{
		"one less":        lines[0] + lines[1],
		"one twice":       asStored + lines[2],
		"one for another": lines[0] + lines[0] + lines[2],
		"out of order":    lines[1] + lines[0] + lines[2],
		"another level":   strings.Replace(asStored, `"debug"`, `"info"`, 1),
		"another time":    strings.Replace(asStored, "080000000", "080000001", 1),
		"another message": strings.Replace(asStored, "after 1ms", "after 2ms", 1),
		"another field":   strings.Replace(asStored, "u3", "u4", 1),
		"no record":       asStored + "note\n",
	} {
		if p.check([]byte(out), all) == nil {
			t.Errorf("%s passes for right", name)
		}
	}
}

func TestNewest(t *testing.T) {
	p := newParser()
	lines := strings.SplitAfter(asStored, "\n")
	web := func(r *rec) bool { return string(r.service) == "web" }
	if err := p.check([]byte(lines[2]), answer(t, p, question{match: web, newest: 1})); err != nil {
		t.Error(err)
	}
	if err := p.check([]byte(lines[1]+lines[2]), answer(t, p, question{match: func(*rec) bool { return true }, newest: 2})); err != nil {
		t.Error(err)
	}
	if err := p.check([]byte(lines[0]+lines[2]), answer(t, p, question{match: web, newest: 100})); err != nil {
		t.Error(err)
	}
}

func TestMinutes(t *testing.T) {
	want := map[string][5]int{"2026-11-10T12:00:00Z": {3, 0, 0, 1, 0}}
	const right = `{"ts":"2026-11-10T12:00:00.000000000Z","total":4,"levels":{"debug":3,"error":1}}` + "\n"
	const empty = `{"ts":"2026-11-10T12:01:00.000000000Z","total":0,"levels":{}}` + "\n"
	if err := checkMinutes([]byte(right+empty), want); err != nil {
		t.Error(err)
	}
	for _, out := range []string{"", empty, strings.ReplaceAll(right, "3", "2"), right + strings.Replace(right, "12:00", "12:01", 1), strings.Replace(right, `"error":1`, `"trace":1`, 1)} {
		if checkMinutes([]byte(out), want) == nil {
			t.Errorf("passes for right: %s", out)
		}
	}
}
