package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"blobtail/internal/dev/testkit"
	"blobtail/internal/guide"
)

func parserOf(t *testing.T, all bool, args ...string) *kong.Kong {
	t.Helper()
	a := &app{env: environment{args: args, stdout: io.Discard, getenv: os.Getenv}}
	parser, err := a.named()
	if all {
		parser, err = a.all()
	}
	if err != nil {
		t.Fatal(err)
	}
	return parser
}

// The parser of a command line has each flag that the line sets, however it is written, and each
// one that the environment sets or that has a default. Help is of all of them.
func TestParserHasWhatIsGiven(t *testing.T) {
	every := parserOf(t, true)
	for _, help := range [][]string{{"web", "--help"}, {"--help=true", "top"}, {"-qh"}, {"help", "tail"}} {
		if got, want := len(guide.FlagsOf(parserOf(t, false, help...).Model)), len(guide.FlagsOf(every.Model)); got != want {
			t.Errorf("logquery %s: the help is of %d ways to write flags, want %d", strings.Join(help, " "), got, want)
		}
	}
	for _, verb := range every.Model.Children {
		if verb.Hidden || len(verb.Children) > 0 {
			continue
		}
		for _, f := range append(append([]*kong.Flag(nil), every.Model.Flags...), verb.Flags...) {
			has := func(how string, args ...string) {
				t.Helper()
				known := guide.FlagsOf(parserOf(t, false, append([]string{verb.Name}, args...)...).Model)
				if known["--"+f.Name] == nil {
					t.Errorf("logquery %s %s: the parser has no --%s (%s)", verb.Name, strings.Join(args, " "), f.Name, how)
				}
			}
			has("long", "--"+f.Name)
			has("with a value", "--"+f.Name+"=x")
			if f.Short != 0 {
				has("short", "-"+string(f.Short)+"5")
				has("in a row", "-q"+string(f.Short))
			}
			for _, alias := range f.Aliases {
				has("alias", "--"+alias, "x")
			}
			if f.HasDefault {
				has("default")
			}
			for _, variable := range f.Envs {
				t.Setenv(variable, "dir:x")
				has("environment")
				os.Unsetenv(variable)
			}
		}
	}
}

// The parser of a short read is small: most of its flags are not given.
func TestParserIsSmall(t *testing.T) {
	for _, args := range [][]string{{"web", "--since", "2m", "--level", "error"}, {"tail", "web", "-n", "100"}, {"web", "--store", "dir:x", "-F", "timeout"}} {
		few := testing.AllocsPerRun(5, func() { parserOf(t, false, args...) })
		all := testing.AllocsPerRun(5, func() { parserOf(t, true, args...) })
		if few > all/8 || few > 1800 {
			t.Errorf("logquery %s: the parser took %v allocations; one of all verbs takes %v", strings.Join(args, " "), few, all)
		}
	}
}

// initLine is a line of GODEBUG=inittrace=1.
func initLine() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^init (\S+) @.* (\d+) bytes, (\d+) allocs$`)
}

// Each program pays at its start for the variables of all packages that are linked into it. Ours make
// theirs at their first use, and no other package that makes much is linked without a reason.
func TestStartMakesLittle(t *testing.T) {
	testkit.FullOnly(t, "builds the command")
	dir := t.TempDir()
	if err := testkit.Build(filepath.Join("..", ".."), dir, "logquery"); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "logquery"), "--version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const (
		most    = 340_000 // bytes of all packages; 331,000 today
		ours    = 4_000   // of a package of this repository
		foreign = 8_000   // of another one that is not in known
	)
	// known make much, and reads need them: stores in Azure, tables in directories, expressions,
	// compression, HTTP. Joint answers need gob.
	known := []string{
		"github.com/AzureAD/microsoft-authentication-library-for-go/apps/internal/oauth/ops/authority", "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/internal/shared",
		"github.com/dustin/go-humanize", "github.com/expr-lang/expr/builtin", "github.com/klauspost/compress/flate", "github.com/klauspost/compress/internal/snapref",
		"github.com/tdewolff/minify/v2/css", "encoding/gob", "encoding/xml", "unicode",
	}
	total := 0
	found := initLine().FindAllStringSubmatch(string(out), -1)
	for _, line := range found {
		bytes, _ := strconv.Atoi(line[2])
		total += bytes
		limit := foreign
		if strings.HasPrefix(line[1], "blobtail/") {
			limit = ours
		}
		expected := false
		for _, name := range known {
			expected = expected || name == line[1]
		}
		if bytes > limit && !expected {
			t.Errorf("%s makes %d bytes at each start, in %s allocations; make them at first use, or keep the package out", line[1], bytes, line[3])
		}
	}
	if len(found) < 50 || total > most {
		t.Errorf("%d packages make %d bytes at each start, want %d at most\n%s", len(found), total, most, out)
	}
}
