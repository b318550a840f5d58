package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/loopback"
	"blobtail/internal/openstore"
	"blobtail/internal/progress"
	"blobtail/internal/sendfiles"
	"blobtail/internal/units"
)

// sendCmd sends the lines of files, each once.
type sendCmd struct {
	Files   []string    `arg:"" name:"file" type:"path" help:"Files of lines, also packed by gzip or zstd; - is stdin."`
	To      string      `help:"An ingester, as http://127.0.0.1:8514 (default: into the store)." placeholder:"URL"`
	Service string      `help:"Service of the lines (default: their own, or a file's name up to its first dot)." placeholder:"NAME"`
	Follow  bool        `short:"f" help:"Go on with what is appended, also after a rotation."`
	Rate    config.Size `help:"At most so many bytes of text a second, such as 10MiB." placeholder:"SIZE"`
	Places  string      `help:"Where the places in files are kept (default: ~/.local/state/blobtail, or beside the log)." placeholder:"DIR"`
}

// run sends the files to the ingester of --to, or to one that works for them and the store.
func (s *sendCmd) run(ctx context.Context, c config.Config, h handling, log zerolog.Logger, stdout, stderr io.Writer) (err error) {
	terminal := stderr
	if !cli.IsTerminal(stderr) {
		terminal = nil
	}
	o := sendfiles.Options{Service: s.Service, Places: s.Places, Follow: s.Follow, Rate: int64(s.Rate), Progress: new(progress.Counter)}
	line := cli.ShowProgress(terminal, o.Progress, "file")
	defer line.End()
	o.Note = (&cli.Console{Name: "ingest", Stderr: line.Over(stderr)}).Note
	var sent sendfiles.Sent
	begun := time.Now()
	send := func(ctx context.Context) (err error) {
		if sent, err = sendfiles.Run(ctx, o, s.Files); s.Follow && ctx.Err() != nil {
			return nil // it ends in this way
		}
		return err
	}
	if s.Follow && slices.Contains(s.Files, "-") {
		return cli.Usagef("-f is for files: stdin is read to its end without it")
	}
	if s.To == "" {
		err = s.withOwn(ctx, c, h, log, &o, send)
	} else if err = s.remote(c, &o); err != nil {
		return err
	} else {
		err = send(ctx)
	}
	line.End()
	took := time.Since(begun).Round(time.Millisecond)
	fmt.Fprintf(stdout, "sent %s: %.1f MB in %s; %d of dropped days left out, %d unreadable (logquery _rejected)\n",
		units.Count(sent.Accepted, "record"), float64(sent.Bytes)/1e6, took, sent.Expired, sent.Rejected)
	return err
}

// remote prepares to send to the ingester of --to.
func (s *sendCmd) remote(c config.Config, o *sendfiles.Options) (err error) {
	if o.To, err = url.Parse(s.To); err != nil || o.To.Hostname() == "" || o.To.Scheme != "http" && o.To.Scheme != "https" {
		return cli.Usagef("--to %s: want the URL of an ingester, such as http://127.0.0.1:8514", s.To)
	}
	if o.Token, err = config.Token(os.Getenv, "BLOBTAIL_TOKEN", c.Access.TokenFile); err == nil {
		o.Trust, err = believed(c.TLS)
	}
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	if o.Token != "" && o.To.Scheme == "http" && !loopback.Host(o.To.Hostname()) {
		return cli.Usagef("the token is not sent to %s without TLS, where others could read it; use https", o.To.Host)
	}
	if home, err := os.UserHomeDir(); o.Places == "" {
		o.Places = filepath.Join(home, ".local/state/blobtail", url.PathEscape(o.To.Host))
		return err
	}
	return nil
}

// withOwn runs an ingester on this host alone, with a log of its own, while send sends to it. It ends
// when all is in blobs.
func (s *sendCmd) withOwn(ctx context.Context, c config.Config, h handling, log zerolog.Logger, o *sendfiles.Options,
	send func(context.Context) error) error {
	c.Ingest.WAL = c.WALDir() + "-send"
	c.Ingest.Advertise, c.Ingest.Grace = "", config.Duration(1<<62)
	c.NATS, c.Syslog, c.TLS, c.Access = config.NATS{}, config.Syslog{}, config.TLS{}, config.Access{}
	o.Places = cmp.Or(o.Places, c.Ingest.WAL+"-places") // whoever loses the log has to lose them too
	records, err := listenAs("--listen", "127.0.0.1:0", c)
	if err != nil {
		return err
	}
	o.To = &url.URL{Scheme: "http", Host: records.Addr().String()}
	listen := func(flag, _ string, c config.Config) (net.Listener, error) {
		if flag == "--listen" {
			return records, nil
		}
		return listenAs(flag, "127.0.0.1:0", c)
	}
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	group, failed := errgroup.WithContext(ctx)
	group.Go(func() error {
		return runIn(running, surroundings{openstore.Open, listen}, c, h, log.Level(zerolog.WarnLevel))
	})
	group.Go(func() error {
		defer end()
		return send(failed) // it waits until the ingester is ready
	})
	return group.Wait()
}
