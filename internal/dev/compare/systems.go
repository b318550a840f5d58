package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"blobtail/internal/dev/bench/rig"
	"blobtail/internal/dev/compare/canon"
	"blobtail/internal/dev/compare/victoria"
)

// A system is a running server of a side, with a store of its own.
type system interface {
	// target returns where records are sent by a protocol.
	target(rig.Protocol) (url string, header http.Header, err error)
	pid() int
	// flush returns when all acknowledged records are in files.
	flush(context.Context) error
	// records reads all records. It may end the server.
	records(ctx context.Context, h *holding, protocol string, from time.Time) error
	stop(context.Context) error
}

// blobtail is an ingester over a dir store.
type blobtail struct {
	c     *comparison
	g     *rig.Ingester
	store string
	ended bool
}

func (c *comparison) startOurs(ctx context.Context) (*blobtail, error) {
	store, err := os.MkdirTemp(c.work, "ours-")
	if err != nil {
		return nil, err
	}
	g, err := rig.StartIngester(ctx, c.ours("ingest"), c.env, "--store", "dir:"+store)
	return &blobtail{c: c, g: g, store: store}, err
}

func (b *blobtail) target(p rig.Protocol) (string, http.Header, error) {
	return "http://" + b.g.Listen + p.Path, p.Header(), nil
}
func (b *blobtail) pid() int                    { return b.g.PID() }
func (b *blobtail) flush(context.Context) error { return b.g.Flush() }

func (b *blobtail) records(ctx context.Context, h *holding, protocol string, _ time.Time) error {
	if err := b.stop(ctx); err != nil {
		return err
	}
	form := b.c.canon
	if protocol == "otlp" {
		form.As = map[string]string{"otel.scope.name": ""} // of the request, and not of the record
	}
	return b.c.stored(ctx, h, form, b.store)
}

// stored reads all records of a store of ours.
func (c *comparison) stored(ctx context.Context, h *holding, form canon.Form, store string) error {
	cmd := exec.CommandContext(ctx, c.ours("logquery"), "--store", "dir:"+store, "--quiet", "*")
	var errs bytes.Buffer
	cmd.Env, cmd.Stderr = c.env, &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	read := h.read(form, out)
	if read != nil {
		_ = cmd.Process.Kill()
	}
	if err := errors.Join(read, cmd.Wait()); err != nil {
		return fmt.Errorf("%q: %w: %s", cmd.Args, err, errs.String())
	}
	return nil
}

func (b *blobtail) stop(context.Context) error {
	if b.ended {
		return nil
	}
	b.ended = true
	return b.g.Stop()
}

// other is VictoriaLogs.
type other struct {
	c     *comparison
	v     *victoria.Server
	dir   string
	ended bool
}

func (c *comparison) startTheirs(ctx context.Context, dir string) (*other, error) {
	v, err := victoria.Start(ctx, c.victoria, dir)
	if err != nil {
		return nil, err
	}
	v.Streams = c.o.streams
	return &other{c: c, v: v, dir: dir}, nil
}

func (o *other) target(p rig.Protocol) (string, http.Header, error) {
	path, header, err := o.v.Insert(p.ID)
	return o.v.URL() + path, header, err
}
func (o *other) pid() int                        { return o.v.PID() }
func (o *other) flush(ctx context.Context) error { return o.v.Flush(ctx) }

func (o *other) stop(ctx context.Context) error {
	if o.ended {
		return nil
	}
	o.ended = true
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return o.v.Stop(ctx)
}

// stored returns the bytes of its files once no merge is running and they stay the same for a while.
func (o *other) stored(ctx context.Context) (size int64, err error) {
	last := int64(-1)
	for range 50 {
		if err := o.v.Rest(ctx); err != nil {
			return 0, err
		}
		if size, err = o.v.Stored(); err != nil || size == last {
			return size, err
		}
		last = size
		time.Sleep(300 * time.Millisecond)
	}
	return 0, fmt.Errorf("its files still change after %d looks", 50)
}

// theirCanon has the names of members as VictoriaLogs stores them.
func (c *comparison) theirCanon(protocol string) canon.Form {
	f := canon.Victoria(c.canon.Seed)
	f.Rounded = &c.rounded
	switch protocol {
	case "loki":
		f.As["service_name"] = "service"
	case "otlp":
		f.As["service.name"], f.As["severity_text"] = "service", "level"
		// They are of the request, or of any record.
		f.As["scope.name"], f.As["scope.version"], f.As["severity_number"] = "", "", ""
	}
	return f
}

// records asks for each half hour, because a query has 30 seconds, and for the number of all.
func (o *other) records(ctx context.Context, h *holding, protocol string, from time.Time) error {
	const part = 30 * time.Minute
	for at := from; at.Before(from.Add(hours * time.Hour)); at = at.Add(part) {
		query := fmt.Sprintf("_time:[%s, %s)", at.Format(time.RFC3339Nano), at.Add(part).Format(time.RFC3339Nano))
		err := o.query(ctx, query, func(r io.Reader) error { return h.read(o.c.theirCanon(protocol), r) })
		if err != nil {
			return err
		}
	}
	return o.query(ctx, "* | count() as n", func(r io.Reader) error {
		text, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		want := `{"n":"` + strconv.Itoa(len(h.want)) + `"}`
		if got := strings.TrimSpace(string(text)); got != want {
			return fmt.Errorf("the store has %s records, and not %s", got, want)
		}
		return nil
	})
}

func (o *other) query(ctx context.Context, query string, read func(io.Reader) error) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, o.v.URL()+"/select/logsql/query?"+url.Values{"query": {query}}.Encode(), nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(res.Body)
		return fmt.Errorf("%s: %s: %.500s", query, res.Status, text)
	}
	if err := read(res.Body); err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	return nil
}

// bytesUnder returns the bytes of all files of a directory; without one, 0.
func bytesUnder(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return size, err
}
