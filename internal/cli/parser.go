package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"blobtail/internal/config"
	"blobtail/internal/openstore"
	"blobtail/storage/fsys"
)

// VersionFlag is a flag that prints the version and ends the process. Unlike that of
// kong it reports a failed write.
type VersionFlag bool

// BeforeReset implements a hook of kong.
func (VersionFlag) BeforeReset(k *kong.Kong) error {
	if _, err := fmt.Fprintln(k.Stdout, Build(k.Model.Name)); err != nil {
		return err
	}
	k.Exit(0)
	return nil
}

// NewParser makes a parser that fills grammar, a pointer to a struct with kong's tags. It
// prints help, 80 columns wide, and ends the process then.
func NewParser(grammar any, name, description string, options ...kong.Option) (*kong.Kong, error) {
	k, err := kong.New(grammar, append(options, kong.Name(name), kong.Description(description), kong.WithAfterApply(noHomes),
		kong.Writers(struct{ io.Writer }{os.Stdout}, os.Stderr))...) // a file would tell its width
	if err != nil {
		return nil, err
	}
	// Compose files have empty variables for optional values.
	for _, f := range k.Model.Flags {
		for _, name := range f.Envs {
			if os.Getenv(name) == "" {
				os.Unsetenv(name)
			}
		}
	}
	return k, nil
}

// noHomes refuses a path that begins with ~ as the value of a flag, which a shell leaves as it is
// in --flag=~/file, and of a variable of the environment.
func noHomes(k *kong.Context) error {
	for _, f := range k.Flags() {
		path, ok := f.Target.Interface().(string)
		if !ok || !slices.Contains([]string{"FILE", "DIR"}, f.PlaceHolder) {
			continue
		}
		if err := fsys.NoHome(path); err != nil {
			return fmt.Errorf("--%s: %w", f.Name, err)
		}
	}
	return nil
}

// WithoutValue returns an error of a parser without the value of a variable of the environment,
// which may hold a secret. The error in front of it names the fault.
func WithoutValue(err error) error {
	if text, variable, ok := strings.Cut(err.Error(), " (from envar "); ok {
		name, _, _ := strings.Cut(variable, "=")
		return &valueless{text + " (from " + name + ")", err}
	}
	return err
}

type valueless struct {
	text  string
	cause error
}

func (e *valueless) Error() string { return e.text }
func (e *valueless) Unwrap() error { return e.cause }

// Preset makes the present value of each setting its default. A setting is a flag
// that the environment can set too.
func Preset(k *kong.Kong) {
	for _, f := range k.Model.Flags {
		if len(f.Envs) > 0 {
			text := fmt.Sprint(f.Target.Interface())
			if all, ok := f.Target.Interface().([]string); ok {
				text = strings.Join(all, ",")
			}
			// kong has replaced variables in defaults by now, so a dollar is a dollar.
			f.HasDefault, f.Default = true, text
		}
	}
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
	Store  openstore.Spec `help:"dir:PATH or azure:[ACCOUNT/]CONTAINER (dir:./data); logquery reads azurelogs:ACCOUNT[/CONTAINER] too." env:"BLOBTAIL_STORE" placeholder:"STORE"`
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
