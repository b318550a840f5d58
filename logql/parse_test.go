package logql_test

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"blobtail/logql"
)

// same ensures that a query, its line and its pretty form have the same tree.
func same(t *testing.T, query string, tree logql.Expr) {
	t.Helper()
	for _, text := range []string{tree.String(), logql.Format(tree)} {
		again, err := logql.Parse(text)
		if err != nil {
			t.Fatalf("%s\nwas printed as\n%s\n%v", query, text, err)
		}
		if !reflect.DeepEqual(tree, again) {
			t.Fatalf("%s\nwas printed as\n%s\nwhich is another tree", query, text)
		}
	}
}

// TestGrafana ensures that queries which Grafana writes by itself are understood.
func TestGrafana(t *testing.T) {
	data, err := os.ReadFile("testdata/grafana.txt")
	if err != nil {
		t.Fatal(err)
	}
	for query := range strings.Lines(string(data)) {
		query = strings.TrimSuffix(query, "\n")
		tree, err := logql.Parse(query)
		if err != nil {
			t.Errorf("%s\n%v", query, err)
			continue
		}
		same(t, query, tree)
	}
}

// TestErrors ensures that each error says what and where, in Loki's words.
func TestErrors(t *testing.T) {
	for _, c := range []struct{ query, want string }{
		{``, `parse error at line 1, col 1: syntax error: unexpected $end`},
		{`{a=x}`, `parse error at line 1, col 4: syntax error: unexpected IDENTIFIER, expecting STRING`},
		{`{a="x"} |~`, `parse error at line 1, col 11: syntax error: unexpected $end, expecting STRING`},
	} {
		_, err := logql.Parse(c.query)
		var e *logql.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", c.query, err)
		} else if e.Error() != c.want {
			t.Errorf("%s\n got %v\nwant %s", c.query, e, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	data, err := os.ReadFile("testdata/grafana.txt")
	if err != nil {
		f.Fatal(err)
	}
	for query := range strings.Lines(string(data)) {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		tree, err := logql.Parse(query)
		if err == nil {
			same(t, query, tree)
			return
		}
		var e *logql.Error
		if !errors.As(err, &e) || e.Msg == "" {
			t.Fatalf("%q: %v", query, err)
		}
	})
}
