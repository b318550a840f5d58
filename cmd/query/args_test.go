package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

func TestArrange(t *testing.T) {
	var c grammar
	parser, err := kong.New(&c, kong.Name("logquery"))
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{
		"web":                            "read web",
		"read web":                       "read web",
		"web --from -2h":                 "read web --from=-2h",
		"--from -2h web":                 "read --from=-2h web",
		"--from -2h read web":            "read --from=-2h web",
		"--store dir:x ls web":           "ls --store=dir:x web",
		"ls":                             "ls",
		"read ls":                        "read ls",
		"web ls":                         "read web ls",
		"web -F -x":                      "read web --fixed=-x",
		"web -F=x -F x=y":                "read web --fixed=x --fixed=x=y",
		"web -F =x":                      "read web --fixed==x",
		"web -n5 -n 5 -n=5":              "read web --number=5 --number=5 --number=5",
		"web -vi -g a -rn5":              "read web --invert --ignore-case --regexp=a --reverse --number=5",
		"web -vF -x -u":                  "read web --invert --fixed=-x --utc",
		"web --level=warn+ -o json":      "read web --level=warn+ --output=json",
		"web --count --since 1d12h":      "read web --count --since=1d12h",
		"-- -web --from":                 "read -- -web --from",
		"web --unknown x":                "read web --unknown x",
		"web -Z":                         "read web -Z",
		"web -vZ":                        "read web --invert -Z",
		"web --from":                     "read web --from",
		"web -n":                         "read web --number",
		"--help":                         "--help",
		"-h":                             "--help",
		"read --help":                    "read --help",
		"--help read":                    "read --help",
		"--version":                      "read --version",
		"version":                        "version",
		"":                               "read",
		"-q":                             "read --quiet",
		"verify --from yesterday web":    "verify --from=yesterday web",
		"-":                              "read -",
		"web --from --to":                "read web --from=--to", // a value is a value
		"cat --store x web/a/b -o json":  "cat --store=x web/a/b --output=json",
		"--utc --timezone UTC web -qF é": "read --utc --timezone=UTC web --quiet --fixed=é",
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
	var c grammar
	parser, err := kong.New(&c, kong.Name("logquery"))
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
