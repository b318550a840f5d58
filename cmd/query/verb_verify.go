package main

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math"
	"os"

	"blobtail/internal/cli"
	"blobtail/internal/storeid"
	"blobtail/internal/units"
	"blobtail/reading"
	"blobtail/reading/blobs"
)

type verifyCmd struct {
	Services   []string `arg:"" optional:"" name:"service" help:"Services or globs; all if none."`
	rangeFlags `group:"Time"`
	Output     string `short:"o" help:"pretty, or json: a line for each finding, and one for the sum." placeholder:"FORM"`
	Bytes      bool   `default:"true" negatable:"" help:"Read all blobs and check their bytes; --no-bytes: their names and metadata alone."`
	PublicKey  string `help:"File of the public key, as retention key prints it, that has signed the closed days." placeholder:"FILE"`
}

func (c *verifyCmd) run(ctx context.Context, a *app) (int, error) {
	if c.Output == "" {
		c.Output = "pretty" // into a pipe too: it is for people first
	}
	form, err := a.form(c.Output, "pretty", "json")
	if err != nil {
		return 0, err
	}
	rng, err := a.times(c.rangeFlags)
	if err != nil {
		return 0, err
	}
	services, err := servicesOf(c.Services)
	if err != nil {
		return 0, err
	}
	o := blobs.VerifyOptions{Quick: !c.Bytes}
	if c.PublicKey != "" {
		if len(services) > 0 {
			return 0, cli.Usagef("--public-key checks the roots, which are of all services: leave the names out")
		}
		if o.PublicKey, err = publicKey(c.PublicKey); err != nil {
			return 0, &cli.UsageError{Err: err}
		}
	}
	store, err := a.openStore(ctx, true)
	if err != nil {
		return 0, err
	}
	verify := store.Verify
	if a.store.Logs != nil {
		verify = a.verifyLogs
	}
	v, err := verify(ctx, reading.Ask{Services: services, Range: rng}, o, func(f reading.Finding) { a.found(ctx, form, f) })
	if err != nil {
		return 0, err
	}
	_, err = storeid.Read(ctx, a.store.Blobs)
	if is, ok := errors.AsType[*storeid.CopyError](err); ok {
		a.Note("this store is a copy of the store %s, %s", is.Source, is.Whole())
		if err := is.Lacks(rng.From, math.MinInt64); err != nil {
			a.found(ctx, form, reading.Finding{Err: err})
			v.Bad++
		}
	}
	return c.verdict(a, form, &v, o.PublicKey), nil
}

// verdict prints the sum.
func (c *verifyCmd) verdict(a *app, form string, v *reading.Verified, key ed25519.PublicKey) int {
	root, hash := "", ""
	if v.Root != nil {
		root, hash = v.Root.Name, fmt.Sprintf("%x", v.Root.Sum)
	}
	if form == "json" {
		a.json(struct {
			Blobs    int64  `json:"blobs"`
			Records  int64  `json:"records"`
			Bytes    int64  `json:"bytes"`
			Findings int64  `json:"findings"`
			Notes    int64  `json:"notes"`
			Root     string `json:"root,omitempty"` // and its hash
			SHA256   string `json:"sha256,omitempty"`
		}{v.Blobs, v.Records, v.Bytes, v.Bad, v.Notes, root, hash})
	}
	a.Note("%s with %s in %s verified, %s, %s", units.Count(v.Blobs, "blob"), units.Count(v.Records, "record"),
		bytesText(v.Bytes), units.Count(v.Bad, "finding"), units.Count(v.Notes, "note"))
	if root != "" { // for an auditor to keep
		signed := "whose signature was not checked"
		switch {
		case key == nil:
		case v.Root.Verify(key) != nil:
			signed = "not signed by " + c.PublicKey
		default:
			signed = "signed by " + c.PublicKey
		}
		a.Note("closed through %s: %s, SHA-256 %s, %s", v.Root.Through, root, hash, signed)
	}
	switch {
	case v.Bad > 0:
		return cli.Incomplete
	case v.Blobs == 0:
		return cli.Nothing
	}
	return cli.OK
}

// publicKey reads a public key in PEM.
func publicKey(file string) (ed25519.PublicKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if block, _ := pem.Decode(text); block != nil {
		if key, err := x509.ParsePKIXPublicKey(block.Bytes); err == nil {
			if key, ok := key.(ed25519.PublicKey); ok {
				return key, nil
			}
		}
	}
	return nil, fmt.Errorf("%s is no Ed25519 public key in PEM; retention key prints one", file)
}

// found prints a finding. In JSON the name of an absent service is one too.
func (a *app) found(ctx context.Context, form string, f reading.Finding) {
	none, absent := errors.AsType[*reading.NoServiceError](f.Err)
	if absent {
		a.absent(ctx, []*reading.NoServiceError{none})
	}
	if form == "json" {
		a.json(struct {
			Blob    string `json:"blob,omitempty"`
			Note    bool   `json:"note"`
			Finding string `json:"finding"`
		}{f.Key, f.Note, f.Err.Error()})
		return
	}
	if absent {
		return
	}
	print := a.Complain
	if f.Note {
		print = a.Note
	}
	if f.Key != "" {
		f.Err = fmt.Errorf("%s: %w", f.Key, f.Err)
	}
	print("%v", f.Err)
}
