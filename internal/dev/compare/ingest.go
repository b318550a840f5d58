package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"blobtail/internal/dev/bench/report"
	"blobtail/internal/dev/bench/rig"
	"blobtail/internal/dev/compare/result"
	"blobtail/internal/dev/compare/victoria"
)

// cost is that of a load: CPU seconds of a million records, and MB.
type cost struct{ cpu, peak float64 }

// delivery is a number of records in requests.
type delivery struct {
	protocol    rig.Protocol
	bodies      [][]byte
	connections int
	want        expected
	corpus      *corpus
}

// load sends records to a server that has none. It counts from the start of sending until they
// are stored, and then holds each stored record against the corpus.
func (d delivery) load(ctx context.Context, s system) (at cost, err error) {
	url, header, err := s.target(d.protocol)
	if err != nil {
		return at, err
	}
	idle, _, err := rig.UsageOf(s.pid())
	if err != nil {
		return at, err
	}
	if err := rig.Send(ctx, url, header, d.connections, d.bodies); err != nil {
		return at, err
	}
	if err := s.flush(ctx); err != nil {
		return at, err
	}
	if at.cpu, at.peak, err = rig.UsageOf(s.pid()); err != nil {
		return at, err
	}
	at.cpu = (at.cpu - idle) / float64(len(d.want)) * 1e6
	h := d.want.hold()
	if err := s.records(ctx, h, d.protocol.ID, d.corpus.from); err != nil {
		return at, err
	}
	return at, h.finish()
}

// protocols measures the protocols on the first records of the reference corpus.
func (c *comparison) protocols(ctx context.Context, made *corpus) error {
	all := rig.Protocols()
	lines := all[0]
	n := c.o.size.protocols
	rows := []struct {
		row      result.Row
		protocol rig.Protocol
		records  int
		per      int
		clients  int
		rounds   int
	}{
		{result.Row{Title: "jsonline, 100 records a request"}, lines, n, 100, 8, c.o.size.rounds},
		{result.Row{Title: "jsonline, 1 record a request, 64 connections"}, lines, c.o.size.single, 1, 64, c.o.size.singles},
		{result.Row{Title: "Loki protobuf, 1,000 records a request"}, all[1], n, 1000, 8, c.o.size.rounds},
		{result.Row{Title: "Elasticsearch `_bulk`, 1,000 records a request"}, all[2], n, 1000, 8, c.o.size.rounds},
		{result.Row{Title: "OTLP protobuf, 1,000 records a request"}, all[3], n, 1000, 8, c.o.size.rounds},
	}
	var entries []rig.Entry
	for _, r := range rows {
		row := r.row
		row.ID, row.Group, row.Unit, row.Corpus = fmt.Sprintf("ingest.%s.%d", r.protocol.ID, r.per), "ingest", "CPU s a million", made.Name
		if !c.o.rows.Choose(row.ID) {
			continue
		}
		c.say("%s: %d records", row.ID, r.records)
		d := delivery{protocol: r.protocol, connections: r.clients, corpus: made}
		var err error
		if d.want, err = expect(c.canon, made.file, r.records); err != nil {
			return err
		}
		if r.protocol.ID == lines.ID {
			d.bodies, err = linesOf(made.file, r.records, r.per)
		} else if entries == nil {
			entries, err = rig.ReadEntries(made.file, n)
		}
		if err != nil {
			return err
		}
		if d.bodies == nil {
			d.bodies = r.protocol.Bodies(entries, r.per)
		}
		if row.OursCommand, row.TheirsCommand, err = c.commandsOf(r.protocol); err != nil {
			return err
		}
		row.Note = report.Thousands(r.records) + " records"
		if err := c.protocol(ctx, d, r.rounds, &row); err != nil {
			return fmt.Errorf("%s: %w", row.ID, err)
		}
		c.add(row)
	}
	return nil
}

// protocol measures a row, with a fresh store for each load.
func (c *comparison) protocol(ctx context.Context, d delivery, rounds int, row *result.Row) error {
	return inTurn(rounds, c.late, func(bool) error {
		s, err := c.startOurs(ctx)
		if err != nil {
			return err
		}
		defer os.RemoveAll(s.store)
		defer s.g.Kill()
		at, err := d.load(ctx, s)
		row.Ours = append(row.Ours, at.cpu)
		return ofSide("blobtail", ended(ctx, s, err))
	}, func(bool) error {
		dir, err := os.MkdirTemp(c.work, "theirs-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		s, err := c.startTheirs(ctx, dir)
		if err != nil {
			return err
		}
		at, err := d.load(ctx, s)
		row.Theirs = append(row.Theirs, at.cpu)
		return ofSide("VictoriaLogs", ended(ctx, s, err))
	})
}

// ended stops a system. If it crashed, its last words stand beside the error of the request that met
// the crash.
func ended(ctx context.Context, s system, err error) error { return errors.Join(err, s.stop(ctx)) }

func ofSide(name string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// commandsOf are commands that send by a protocol.
func (c *comparison) commandsOf(p rig.Protocol) (ours, theirs string, err error) {
	path, header, err := (&victoria.Server{Streams: c.o.streams}).Insert(p.ID)
	ours = fmt.Sprintf("curl --data-binary @BODY -H 'Content-Type: %s' http://INGEST%s; curl -X POST http://ADMIN/flush", p.ContentType, p.Path)
	theirs = fmt.Sprintf("curl --data-binary @BODY -H 'Content-Type: %s' 'http://VICTORIA%s'; curl http://VICTORIA/internal/force_flush", header.Get("Content-Type"), path)
	return ours, theirs, err
}

// linesOf cuts the first n lines of a file into bodies. The file is mapped, and not read, until
// this process ends.
func linesOf(file string, n, per int) (bodies [][]byte, err error) {
	f, err := os.Open(filepath.Clean(file))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	all, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", file, err)
	}
	for n > 0 && len(all) > 0 {
		end := 0
		for range min(per, n) {
			i := bytes.IndexByte(all[end:], '\n')
			if i < 0 {
				return nil, fmt.Errorf("%s has too few lines", file)
			}
			end += i + 1
		}
		bodies, all, n = append(bodies, all[:end:end]), all[end:], n-min(per, n)
	}
	return bodies, nil
}

// suffix of the IDs of rows of a corpus. The reference has none.
func (c *corpus) suffix() string {
	if c.Name == "reference" {
		return ""
	}
	return "." + strings.ToLower(c.Name)
}
