package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blobtail/catalog"
	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/openstore"
)

type grantCmd struct {
	Service string          `arg:"" name:"service" help:"The service that may be read."`
	For     config.Duration `help:"How long it may be read: 24h at most." default:"1h" placeholder:"DURATION"`
	IP      string          `name:"ip" help:"Only from this address, or range such as 192.0.2.0-192.0.2.255 (IPv4)." placeholder:"ADDRESS"`
}

// adviser is an error with another way to the same end, in several lines.
type adviser interface {
	error
	Advice() string
}

// run prints the SAS and nothing else on stdout, for a pipe into a store of secrets.
func (c *grantCmd) run(ctx context.Context, a *app) (int, error) {
	g := openstore.Grant{Dir: c.Service, For: time.Duration(c.For), From: c.IP}
	if !catalog.IsService(c.Service) {
		return 0, cli.Usagef("grant is for one service, and %q is no name of one", c.Service)
	}
	if err := g.Check(); err != nil {
		return 0, &cli.UsageError{Err: err}
	}
	if _, err := a.openStore(ctx, false); err != nil {
		return 0, err
	}
	if a.store.Grant == nil {
		return 0, cli.Usagef("grant is for a store azure:[ACCOUNT/]CONTAINER, and not for %s", a.config.Store)
	}
	granted, err := a.store.Grant(ctx, g)
	if flat := adviser(nil); errors.As(err, &flat) {
		a.Complain("%v. A condition of a role limits readers there; a SAS of the container would show every service", flat)
		fmt.Fprintln(a.Stderr, flat.Advice())
		return cli.Usage, nil
	}
	if err != nil {
		return 0, err
	}
	if _, err := fmt.Fprintln(a.out, granted.SAS); err != nil {
		return 0, err
	}
	a.Note("its holder can read the blobs of %s until %s; only az storage account revoke-delegation-keys ends it earlier, with all others", c.Service, a.showTime(granted.Until.UnixNano()))
	a.Note("to use it: AZURE_STORAGE_SAS_TOKEN=SAS logquery %s --store azure:%s --live off", c.Service, granted.Store)
	return cli.OK, nil
}
