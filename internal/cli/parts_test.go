package cli_test

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"blobtail/internal/cli"
)

type plain struct {
	Since   string
	NotHere bool `negatable:""`
}

type lettered struct {
	inner
	Named string `name:"by-another" aliases:"until,up-to"`
}

type inner struct {
	Level string `short:"l"`
}

type fromEnvironment struct {
	Store string `env:"PARTS_TEST_STORE,PARTS_TEST_OLD"`
}

type defaulted struct {
	Color string `default:"auto"`
}

// A group is left out only if neither the command line nor the environment sets a flag of it, and no
// flag has a default.
func TestPartsOf(t *testing.T) {
	for _, c := range []struct {
		args, env string
		want      string // by the first letters of the groups
	}{
		{"web", "", "d"},
		{"web --since 2h", "", "pd"},
		{"web --since=2h", "", "pd"},
		{"web --not-here", "", "pd"},
		{"web --no-not-here", "", "pd"},
		{"web -l error", "", "ld"},
		{"web -xlerror", "", "ld"},
		{"web --level error", "", "ld"},
		{"web --by-another x", "", "ld"},
		{"web --until x", "", "ld"},
		{"web --up-to x", "", "ld"},
		{"web --named x", "", "d"}, // it is the field's name, not the flag's
		{"web", "PARTS_TEST_STORE", "fd"},
		{"web", "PARTS_TEST_OLD", "fd"},
		{"web --store x -l y --since z", "", "plfd"},
	} {
		t.Run(c.args+c.env, func(t *testing.T) {
			if c.env != "" {
				t.Setenv(c.env, "dir:x")
			}
			groups := []any{&plain{}, &lettered{}, &fromEnvironment{}, &defaulted{}}
			got := ""
			for _, group := range cli.PartsOf(strings.Fields(c.args))(groups...) {
				switch group.(type) {
				case *plain:
					got += "p"
				case *lettered:
					got += "l"
				case *fromEnvironment:
					got += "f"
				case *defaulted:
					got += "d"
				}
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	if all := cli.AllParts(&plain{}, &lettered{}); len(all) != 2 {
		t.Errorf("%d groups, want 2", len(all))
	}
}

// A parser of parts fills the groups, and gives them the group of the field.
func TestPartsFill(t *testing.T) {
	var g struct {
		plain `kong:"-"`
		Parts kong.Plugins `embed:"" group:"Time"`
	}
	g.Parts = cli.AllParts(&g.plain)
	k, err := cli.NewParser(&g, "parts", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Parse([]string{"--since", "2h", "--no-not-here"}); err != nil || g.Since != "2h" {
		t.Errorf("%+v, %v", g.plain, err)
	}
	for _, f := range k.Model.Flags {
		if f.Name == "since" && (f.Group == nil || f.Group.Key != "Time") {
			t.Errorf("the flag is in group %+v", f.Group)
		}
	}
}
