package main

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"blobtail/internal/bill"
	"blobtail/internal/cli"
	"blobtail/internal/units"
	"blobtail/retention/closing"
	"blobtail/storage"
)

type closeCmd struct {
	Services []string `arg:"" optional:"" name:"service" help:"Services or globs; all if none."`
	Bytes    bool     `help:"Read the blobs of earlier versions, which stored no SHA-256, and put it into the accounts."`
}

func (c *closeCmd) run(ctx context.Context, a *app) (int, error) {
	if err := fold(&c.Services); err != nil {
		return 0, err
	}
	o, err := a.open(ctx, nil, "", false)
	if err != nil {
		return 0, err
	}
	o.Closing.Services, o.Closing.Bytes, o.Closing.Log, o.Closing.Progress = c.Services, c.Bytes, a.log, &a.progress
	if err := a.closingCost(ctx, *o.Closing); err != nil {
		return 0, err
	}
	r, err := closing.Run(ctx, a.store.Blobs, *o.Closing)
	if err == nil && r.Services == 0 && len(c.Services) > 0 {
		err = cli.Usagef("no service is called %s; logquery ls has those that there are", strings.Join(c.Services, " or "))
	}
	if err != nil {
		return 0, err
	}
	_, err = fmt.Fprintf(os.Stdout, "closed %s with %s and %s; looked at %s of %s\n", units.Count(r.Parts, "day"),
		units.Count(r.Blobs, "blob"), units.Count(r.Records, "record"), units.Count(r.Days, "day"), units.Count(r.Services, "service"))
	return a.verdict(r.Problems, r.Parts > 0), err
}

// closingCost says what it costs at most to close all days of a distant store, with the prices of
// logquery bill.
func (a *app) closingCost(ctx context.Context, o closing.Options) error {
	if !a.config.Store.Remote() {
		return nil
	}
	prices, err := bill.Load("")
	if err != nil {
		return err
	}
	services, days, err := closing.Count(ctx, a.store.Blobs, o)
	if err != nil || days == 0 {
		return err
	}
	lists := services + 2*days // the horizons are listed before each part
	a.Complain("%s of %s at most: %s, %s, and one more for each 5,000 blobs; these take %.4f %s at the prices of %s",
		units.Count(days, "day"), units.Count(services, "service"), units.Count(days, "PUT"), units.Count(lists, "LIST"),
		prices.Requests(days, lists), prices.Currency, prices.Dates())
	return nil
}

type acceptLossCmd struct {
	Service string `arg:"" help:"Name of the service, such as web."`
	Day     string `arg:"" help:"The day (UTC), such as 2026-11-20."`
}

func (c *acceptLossCmd) run(ctx context.Context, a *app) (int, error) {
	day, err := parseDay(c.Day, time.Now())
	if err != nil {
		return 0, cli.Usagef("%w", err)
	}
	o, err := a.open(ctx, nil, "", false)
	if err != nil {
		return 0, err
	}
	now, err := storage.Now(ctx, a.store.Blobs, time.Now())
	if err != nil {
		return 0, err
	}
	closer := closing.NewCloser(a.store.Blobs, now)
	lost, err := closer.Accept(ctx, c.Service, day)
	if errors.Is(err, storage.ErrNotExist) {
		return 0, cli.Usagef("%w. If logquery verify says that the day's part is missing: retention drop %s --day %s", err, c.Service, day)
	}
	if err == nil && len(lost) > 0 {
		_, err = closer.Root(ctx, o.Closing.Key, 0)
	}
	if err != nil {
		return 0, err
	}
	for _, l := range lost {
		fmt.Fprintf(os.Stdout, "%s with %s\n", l.Key, units.Count(l.Records, "record"))
	}
	if len(lost) == 0 {
		a.Complain("%s lacks no blob of %s that its account has", c.Service, day)
		return cli.OK, nil
	}
	a.Complain("reads of %s of %s say that these are lost, and are complete without them", c.Service, day)
	return cli.OK, nil
}

type keyCmd struct {
	File string `arg:"" help:"New file for the private key. The public key goes to stdout: retention key close.key >close.pub" type:"path"`
}

func (*keyCmd) guides() {}

func (c *keyCmd) run(context.Context, *app) (int, error) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return 0, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return 0, err
	}
	shown, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return 0, err
	}
	f, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, cli.Usagef("%w", err)
	}
	err = errors.Join(pem.Encode(f, &pem.Block{Type: "PRIVATE KEY", Bytes: secret}), f.Close())
	return cli.OK, errors.Join(err, pem.Encode(os.Stdout, &pem.Block{Type: "PUBLIC KEY", Bytes: shown}))
}
