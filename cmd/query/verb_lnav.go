package main

import (
	"context"
	_ "embed" // for the format
	"fmt"
	"os"
	"path/filepath"

	"blobtail/internal/cli"
)

// lnavFormat is the format by which lnav reads the output of -o json.
//
//go:embed lnav.json
var lnavFormat string

type lnavCmd struct {
	Install bool `help:"Write it to lnav's directory of formats, in place of an earlier one."`
}

func (c *lnavCmd) run(_ context.Context, a *app) (int, error) {
	if !c.Install {
		_, err := a.out.Write([]byte(lnavFormat))
		return cli.OK, err
	}
	home := a.lnavHome()
	if home == "" {
		return 0, cli.Usagef("--install: HOME is not set, so lnav's directory is not known; lnav -i FILE installs the format that logquery lnav prints")
	}
	// lnav -i gives the file the same name, so there is never a second one of the format.
	path := filepath.Join(home, "formats", "installed", "blobtail.json")
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(lnavFormat), 0o644)
	}
	if err != nil {
		return 0, cli.Usagef("--install: %w; lnav -i FILE installs the format that logquery lnav prints", err)
	}
	fmt.Fprintln(a.out, path)
	a.Note("now lnav reads records: logquery SERVICE -o json | lnav")
	return cli.OK, nil
}

// lnavHome is the directory of lnav's configuration, found as lnav does; "" without a home.
func (a *app) lnavHome() string {
	home, xdg := a.env.getenv("HOME"), a.env.getenv("XDG_CONFIG_HOME")
	is := func(dir string) bool {
		info, err := os.Stat(dir)
		return err == nil && info.IsDir()
	}
	own, config := filepath.Join(home, ".lnav"), filepath.Join(home, ".config")
	switch {
	case home == "":
		return ""
	case is(own):
		return own
	case xdg != "":
		return filepath.Join(xdg, "lnav")
	case is(config):
		return filepath.Join(config, "lnav")
	}
	return own
}

// Help has the examples of the verb.
func (lnavCmd) Help() string {
	return `Examples:
  logquery lnav --install
  logquery lnav > blobtail.json
  logquery lnav -q --install

Then logquery web --since 1h -o json | lnav shows times, levels, services, messages and all other fields. In lnav, ;SELECT asks for fields: json_extract(log_raw_text, '$.status') of the table blobtail.`
}
