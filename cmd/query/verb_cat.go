package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"blobtail/blobfmt"
	"blobtail/internal/cli"
	"blobtail/reading"
	"blobtail/storage"
)

type catCmd struct {
	Name        string `arg:"" help:"Key of a blob in the store, or a file."`
	outputFlags `group:"Output"`
}

func (c *catCmd) run(ctx context.Context, a *app) (int, error) {
	out, err := a.printer(c.outputFlags, &reading.Ask{})
	if err != nil {
		return 0, err
	}
	code, printed := cli.Nothing, false
	bad := func(err error) {
		a.Complain("%v", err)
		code = cli.Incomplete
	}
	body, err := c.body(ctx, a)
	if problem := (*reading.Problem)(nil); errors.As(err, &problem) {
		bad(problem)
	} else if err != nil {
		return 0, err
	}
	for frame, err := range blobfmt.NewDecoder(1).Walk(c.Name, body) {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if err != nil {
			bad(err)
			continue
		}
		if err := out.print(frame.Lines); err != nil {
			return 0, err
		}
		printed = true
		if code == cli.Nothing {
			code = cli.OK
		}
	}
	if err := out.end(); err != nil {
		return 0, err
	}
	if err := out.problem(); err != nil {
		bad(err)
	}
	if code == cli.Incomplete {
		rest := "the rest of the blob was printed"
		if !printed {
			rest = "nothing could be printed"
		}
		a.Complain("INCOMPLETE: %s", rest)
	}
	return code, nil
}

// body reads the blob: from the store if the name is a key, or from a file. With a
// *reading.Problem it returns the rest of the blob.
func (c *catCmd) body(ctx context.Context, a *app) ([]byte, error) {
	if _, err := blobfmt.ParseName(c.Name); err != nil {
		body, err := os.ReadFile(c.Name)
		switch {
		case errors.Is(err, fs.ErrPermission):
			return nil, fmt.Errorf("%w: %w", storage.ErrUnauthorized, err)
		case err != nil:
			return nil, cli.Usagef("%w; a blob of the store looks like web/2026/11/20/1500/000001.log", err)
		case !bytes.Contains(body, []byte("\x28\xb5\x2f\xfd")): // a frame of zstd begins so (RFC 8878)
			return nil, cli.Usagef("%s is no blob: nothing in it is compressed by zstd; a blob of the store looks like web/2026/11/20/1500/000001.log", c.Name)
		}
		return body, nil
	}
	from, err := a.open(ctx, false)
	if err != nil {
		return nil, err
	}
	if a.config.Store.Logs() {
		return nil, cli.Usagef("cat is for the blobs of blobtail's own stores; logquery SERVICE prints Azure's own logs")
	}
	body, warning, err := from.Body(ctx, c.Name)
	if warning != nil && err == nil {
		a.Note("%v", warning)
	}
	return body, err
}
