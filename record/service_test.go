package record_test

import (
	"regexp"
	"strings"
	"testing"

	"blobtail/record"
)

var serviceGrammar = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

func TestFoldService(t *testing.T) {
	long := strings.Repeat("a", 70)
	for _, row := range [][2]string{
		{"web", "web"},
		{"Web-API.v2_x", "web-api.v2_x"},
		{"", "unknown"},
		{"   ", "unknown"},
		{"._-", "unknown"},
		{"_rejected", "rejected"},
		{"__system", "system"},
		{"a b", "a-b"},
		{"a \t/b", "a-b"},
		{"a-é-b", "a---b"},
		{"Ünïcode", "n-code"},
		{"a..b...c", "a.b.c"},
		{"../../etc/passwd", "etc-passwd"},
		{"a/../b", "a-.-b"},
		{"web.", "web"},
		{"-web_", "web"},
		{"{\"name\":\"web\"}", "name-web"},
		{"a\x00b\xffc", "a-b-c"},
		{long, long[:63]},
		{long[:62] + "...", long[:62]},
		{long[:62] + "/b", long[:62]},
		{strings.Repeat("é", 40) + "x", "x"},
		{strings.Repeat(".", 63) + "web", "unknown"},
		{"unknown", "unknown"},
	} {
		if got := record.FoldService(row[0]); got != row[1] {
			t.Errorf("FoldService(%q) = %q, want %q", row[0], got, row[1])
		}
	}
}

func TestValidService(t *testing.T) {
	for _, row := range []struct {
		name          string
		valid, stored bool
	}{
		{"web", true, true},
		{"0", true, true},
		{"a.b-c_d", true, true},
		{"web-", true, true},
		{strings.Repeat("a", 63), true, true},
		{strings.Repeat("a", 64), false, false},
		{"_rejected", false, true},
		{"_" + strings.Repeat("a", 63), false, true},
		{"__x", false, false},
		{"_", false, false},
		{"", false, false},
		{"a..b", false, false},
		{"a.", false, false},
		{".a", false, false},
		{"-a", false, false},
		{"Web", false, false},
		{"a/b", false, false},
		{"a b", false, false},
		{"é", false, false},
	} {
		if v, s := record.ValidService(row.name), record.ValidStored(row.name); v != row.valid || s != row.stored {
			t.Errorf("%q: valid %v, stored %v; want %v, %v", row.name, v, s, row.valid, row.stored)
		}
	}
}

func FuzzFoldService(f *testing.F) {
	for _, s := range []string{"", "web", "A..b", "_x", "é.é", strings.Repeat("a.", 40)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got := record.FoldService(name)
		if !serviceGrammar.MatchString(got) || strings.Contains(got, "..") || strings.HasSuffix(got, ".") || !record.ValidService(got) {
			t.Errorf("FoldService(%q) = %q is not valid", name, got)
		}
		if again := record.FoldService(got); again != got {
			t.Errorf("FoldService(%q) = %q, folded again %q", name, got, again)
		}
		if valid := serviceGrammar.MatchString(name) && !strings.Contains(name, "..") && !strings.HasSuffix(name, "."); valid != record.ValidService(name) {
			t.Errorf("ValidService(%q) = %v", name, !valid)
		}
	})
}

func TestMatchService(t *testing.T) {
	for _, c := range []struct {
		pattern, service string
		want             bool
	}{
		{"web", "web", true}, {"web", "web-1", false}, {"web-*", "web-1", true}, {"*", "web", true}, {"[a-w]eb", "web", true},
		{"*", "_rejected", false}, {"?rejected", "_rejected", false}, {"_*", "_rejected", true}, {"_rejected", "_rejected", true},
		{"[_]rejected", "_rejected", false}, {"", "web", false}, {"[", "web", false}, {`web\`, "web", false},
	} {
		if got := record.MatchService(c.pattern, c.service); got != c.want {
			t.Errorf("%q matches %q: %v", c.pattern, c.service, got)
		}
	}
	for pattern, want := range map[string]bool{"web": true, "*": true, "[a-c]x": true, "": false, "[": false, `a\`: false} {
		if got := record.ValidPattern(pattern); got != want {
			t.Errorf("%q is valid: %v", pattern, got)
		}
	}
}
