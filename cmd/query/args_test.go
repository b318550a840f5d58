package main

import (
	"slices"
	"strings"
	"testing"

	"blobtail/internal/cli"
)

func TestArrange(t *testing.T) {
	a := &app{Console: cli.Console{Name: "logquery"}}
	parser, err := a.all()
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{
		"web":                            "read web",
		"read web":                       "read web",
		"web --from -2h":                 "read --from=-2h web",
		"--from -2h web":                 "read --from=-2h web",
		"--from -2h read web":            "read --from=-2h web",
		"--store dir:x ls web":           "ls --store=dir:x web",
		"ls":                             "ls",
		"read ls":                        "read ls",
		"web ls":                         "read web ls",
		"web -n 1 orders":                "read --number=1 web orders",
		"web -u tail":                    "read --utc web tail",
		"web -F -x":                      "read --fixed=-x web",
		"web -F=x -F x=y":                "read --fixed=x --fixed=x=y web",
		"web -F =x":                      "read --fixed==x web",
		"web -n5 -n 5 -n=5":              "read --number=5 --number=5 --number=5 web",
		"web --tail 5 --limit=6":         "read --number=5 --number=6 web",
		"web -vi -g a -rn5":              "read --invert --ignore-case --regexp=a --reverse --number=5 web",
		"web -vF -x -u":                  "read --invert --fixed=-x --utc web",
		"web --level=warn+ -o json":      "read --level=warn+ --output=json web",
		"web -l warn --until now":        "read --level=warn --to=now web",
		"web --count --since 1d12h":      "read --count --since=1d12h web",
		"-- -web --from":                 "read -- -web --from",
		"web -q -- --from":               "read --quiet web -- --from",
		"web --unknown x":                "read --unknown web x",
		"web -Z":                         "read -Z web",
		"web -vZ":                        "read --invert -Z web",
		"web --from":                     "read web --from",
		"web -n":                         "read web --number",
		"--help":                         "--help",
		"-h":                             "--help",
		"help":                           "--help",
		"help tail":                      "tail --help",
		"help web":                       "read --help web",
		"read help":                      "read help",
		"read --help":                    "read --help",
		"--help read":                    "read --help",
		"--version":                      "read --version",
		"version":                        "version",
		"":                               "read",
		"-q":                             "read --quiet",
		"verify --from yesterday web":    "verify --from=yesterday web",
		"-":                              "read -",
		"web --from --to":                "read --from=--to web", // a value is a value
		"cat --store x web/a/b -o json":  "cat --store=x --output=json web/a/b",
		"--utc --timezone UTC web -qF é": "read --utc --timezone=UTC --quiet --fixed=é web",
	} {
		if got := arrange(parser.Model, strings.Fields(given)); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s\n got %s\nwant %s", given, strings.Join(got, " "), want)
		}
	}
}

// An arranged list stays unchanged.
func FuzzArrange(f *testing.F) {
	f.Add("--from\n-2h\nread\nweb\n-vF\n-x")
	f.Add("web\n--\n-n")
	a := &app{Console: cli.Console{Name: "logquery"}}
	parser, err := a.all()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, list string) {
		args := strings.Split(list, "\n")
		once := arrange(parser.Model, args)
		// A flag at the end without its value has no form to keep.
		if last := len(once) - 1; strings.HasPrefix(once[last], "-") && !strings.Contains(once[last], "=") {
			return
		}
		if twice := arrange(parser.Model, once); !slices.Equal(once, twice) {
			t.Errorf("%q, then %q", once, twice)
		}
	})
}
