package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"

	"github.com/alecthomas/kong"

	"blobtail/internal/config"
	"blobtail/internal/openstore"
)

// ErrDone is the error of [Parser.Parse] after --help or --version.
var ErrDone = errors.New("done")

// Parser parses the command line of one run.
type Parser struct {
	*kong.Kong
	printed bytes.Buffer
	done    bool
}

// NewParser makes a parser that fills grammar, a pointer to a struct with kong's
// tags. A flag of type [kong.VersionFlag] prints the version.
func NewParser(grammar any, name, description string, options ...kong.Option) (*Parser, error) {
	p := &Parser{}
	var err error
	p.Kong, err = kong.New(grammar, append(options, kong.Name(name), kong.Description(description),
		kong.Vars{"version": Build(name)}, kong.Writers(&p.printed, &p.printed), kong.Exit(func(int) { p.done = true }))...)
	if err == nil {
		p.unset()
	}
	return p, err
}

// unset removes environment variables with empty values. Compose files have them for
// optional values.
func (p *Parser) unset() {
	for _, f := range p.Model.Flags {
		for _, name := range f.Envs {
			if os.Getenv(name) == "" {
				os.Unsetenv(name)
			}
		}
	}
}

// Preset makes the present value of each setting its default. A setting is a flag
// that the environment can set too.
func (p *Parser) Preset() {
	for _, f := range p.Model.Flags {
		if len(f.Envs) > 0 {
			f.HasDefault, f.Default = true, fmt.Sprint(f.Target.Interface())
		}
	}
}

// Parse parses args. Help and version go to stdout, and the error is
// [ErrDone] then. Other errors are mistakes of the user, or of writing to stdout.
func (p *Parser) Parse(args []string, stdout io.Writer) (*kong.Context, error) {
	parsed, err := p.Kong.Parse(args)
	if p.done { // kong goes on after the help and finds arguments missing
		if _, err := io.Copy(stdout, &p.printed); err != nil {
			return nil, err
		}
		return nil, ErrDone
	}
	return parsed, err
}

// Words returns the flags of a verb or of the whole command as words of a command line:
// those of the names that have another value than their default.
func Words(n *kong.Node, names ...string) (out []string) {
	for _, f := range n.Flags {
		value := reflect.Indirect(f.Target)
		if !slices.Contains(names, f.Name) || !value.IsValid() || value.IsZero() || fmt.Sprint(value) == f.Default {
			continue
		}
		flag := "--" + f.Name
		if f.Short != 0 {
			flag = "-" + string(f.Short)
		}
		switch {
		case f.IsBool():
			out = append(out, flag)
		case f.IsSlice():
			for i := range value.Len() {
				out = append(out, flag, fmt.Sprint(value.Index(i)))
			}
		default:
			out = append(out, flag, fmt.Sprint(value))
		}
	}
	return out
}

// Settings are the flags of a command that works on a store and reads the
// configuration.
type Settings struct {
	Config string         `help:"Configuration file (YAML)." env:"BLOBTAIL_CONFIG" placeholder:"FILE"`
	Store  openstore.Spec `help:"dir:PATH or azure:[ACCOUNT/]CONTAINER (dir:./data)." env:"BLOBTAIL_STORE" placeholder:"STORE"`
}

// Load reads the file, and lays the flags over it. The error is a [*UsageError].
func (s *Settings) Load() (config.Config, error) {
	c, err := config.Load(s.Config)
	if err != nil {
		return c, &UsageError{err}
	}
	c.Store = cmp.Or(s.Store, c.Store, openstore.Default())
	return c, nil
}
