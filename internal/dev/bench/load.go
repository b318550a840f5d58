package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"blobtail/internal/dev/bench/answers"
	"blobtail/internal/dev/bench/rig"
	"blobtail/internal/dev/corpus"
)

// place is a store, and the environment and arguments of an ingester for it.
type place struct {
	store     string // such as dir:DIR
	env, args []string
}

// running is a running server of a side, with a store of its own.
type running interface {
	URL() string
	Usage() (cpu, peak float64, err error)
	// Flush returns when all acknowledged records are in files.
	Flush(context.Context) error
	Stop(context.Context) error
	Kill()
}

// start starts an ingester, or VictoriaLogs.
func (d *driver) start(ctx context.Context, s *side, at place) running {
	if s.bin == "" {
		return must(rig.StartVictoria(ctx, d.victoria, strings.TrimPrefix(at.store, "dir:")))
	}
	return must(rig.StartIngester(ctx, s.command("ingest"), slices.Concat(d.env, at.env), slices.Concat([]string{"--store", at.store}, at.args)...))
}

// delivery is a number of records in requests.
type delivery struct {
	protocol    rig.Protocol
	bodies      [][]byte
	connections int
	records     int
}

// deliver cuts corpora into requests of NDJSON.
func deliver(perRequest int, parts ...*rig.Corpus) delivery {
	of := delivery{protocol: rig.Protocols()[0], connections: 8}
	for _, c := range parts {
		of.bodies, of.records = append(of.bodies, corpus.Bodies(must(rig.Map(c.File)), perRequest)...), of.records+c.Records
	}
	return of
}

// load is the cost of a load: CPU seconds of a million records, MB, and how it looked from outside.
type load struct {
	cpu, peak float64
	sent      corpus.Sent
	took      time.Duration // until all records were stored
}

// load sends records to a new server over an empty store. It counts from the start of sending until
// they are stored. Before the server stops, look may see the stored records.
func (d *driver) load(ctx context.Context, s *side, at place, of delivery, look func(running)) (l load) {
	v := d.start(ctx, s, at)
	defer v.Kill()
	path, header := of.protocol.Path, of.protocol.Header()
	if s.bin == "" {
		path, header = rig.VictoriaInsert(of.protocol.ID, d.streams)
	}
	idle, _, err := v.Usage()
	check(err)
	begun := time.Now()
	if l.sent, err = corpus.Post(ctx, v.URL()+path, header, of.connections, of.bodies); err != nil {
		check(errors.Join(err, v.Stop(ctx))) // the last words of one that crashed stand beside the error
	}
	check(v.Flush(ctx))
	l.took = time.Since(begun)
	l.cpu, l.peak, err = v.Usage()
	check(err)
	l.cpu = perMillion(l.cpu-idle, of.records)
	if look != nil {
		look(v)
	}
	check(v.Stop(ctx))
	return l
}

// form is that of records of a side which came by a protocol.
func (d *driver) form(s *side, protocol string) answers.Form {
	if s.bin != "" {
		f := d.index.Form
		if protocol == "otlp" {
			f.As = map[string]string{"otel.scope.name": ""} // of the request, and not of the record
		}
		return f
	}
	f := answers.Theirs(d.index.Seed, &d.rounded)
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

// stored holds all records of a dir store of ours against those that it must have.
func (d *driver) stored(ctx context.Context, s *side, store, protocol string, want answers.Answer) {
	cmd := exec.CommandContext(ctx, s.command("logquery"), "--store", "dir:"+store, "--quiet", "*")
	var errs bytes.Buffer
	cmd.Env, cmd.Stderr = d.env, &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out := must(cmd.StdoutPipe())
	check(cmd.Start())
	read := want.Check(answers.Format{Form: d.form(s, protocol)}, out)
	if read != nil {
		_ = cmd.Process.Kill()
	}
	if err := errors.Join(read, cmd.Wait()); err != nil {
		check(fmt.Errorf("%q: %w: %s", cmd.Args, err, errs.String()))
	}
}

// theirsStored is stored of VictoriaLogs. It asks for each half hour, because a query has 30 seconds,
// and for the number of all.
func (d *driver) theirsStored(ctx context.Context, v running, protocol string, want answers.Answer) {
	query := func(text string) ([]byte, error) {
		return rig.Fetch(ctx, http.MethodGet, v.URL()+"/select/logsql/query?"+url.Values{"query": {text}}.Encode())
	}
	read, write := io.Pipe()
	go func() {
		const part = 30 * time.Minute
		var err error
		for at := rig.Start; err == nil && at.Before(rig.Start.Add(rig.Hours*time.Hour)); at = at.Add(part) {
			var body []byte
			if body, err = query(fmt.Sprintf("_time:[%s, %s)", at.Format(time.RFC3339Nano), at.Add(part).Format(time.RFC3339Nano))); err == nil {
				_, err = write.Write(body)
			}
		}
		write.CloseWithError(err)
	}()
	err := want.Check(answers.Format{Form: d.form(&side{}, protocol)}, read)
	read.Close()
	if err != nil {
		check(fmt.Errorf("the records of VictoriaLogs: %w", err))
	}
	if text, want := string(must(query("* | count() as n"))), fmt.Sprintf(`{"n":"%d"}`, want.Len()); strings.TrimSpace(text) != want {
		check(fmt.Errorf("VictoriaLogs has %s records, and not %s", text, want))
	}
}

// theirSize returns the bytes of VictoriaLogs' files once no merge is running and they stay the same for
// a while.
func theirSize(ctx context.Context, v *rig.Victoria, dir string) int64 {
	last := int64(-1)
	for range 50 {
		check(v.Rest(ctx))
		size := sizeOf(dir)
		if size == last {
			return size
		}
		last = size
		time.Sleep(300 * time.Millisecond)
	}
	check(errors.New("VictoriaLogs' files still change after 50 looks"))
	return 0
}

// sizeOf returns the bytes of all files of a directory.
func sizeOf(dir string) int64 {
	_, size, err := rig.Files(dir, func(string) bool { return true })
	check(err)
	return size
}

// blobsOf returns the number of blobs of a dir store, and their bytes.
func blobsOf(store string) (int, int64) {
	n, size, err := rig.BlobsOf(store)
	check(err)
	return n, size
}

// compactCopy closes and compacts a copy of a dir store of ours, and returns the bytes of its blobs and
// CPU seconds. The first compaction writes, and the second one deletes the replaced blobs.
func (d *driver) compactCopy(ctx context.Context, s *side, want answers.Answer) (size int64, cpu float64) {
	store := filepath.Join(d.dir, "compacted")
	defer os.RemoveAll(store)
	check(rig.CopyStore(s.store, store))
	for _, verb := range []string{"close", "compact --grace 0s", "compact --grace 0s"} {
		args := append([]string{s.command("retention")}, strings.Fields(verb+" --store dir:"+store)...)
		out, u, errs, err := d.runner.Run(ctx, d.env, args...)
		if err == nil && u.Code != 0 {
			err = fmt.Errorf("retention %s: exit code %d: %s%s", verb, u.Code, out, errs)
		}
		check(err)
		cpu += u.CPUs
	}
	before, _ := blobsOf(s.store)
	n, size := blobsOf(store)
	if n > before {
		check(fmt.Errorf("%d blobs after compaction, %d before: the replaced ones are still there", n, before))
	}
	d.stored(ctx, s, store, "ndjson", want)
	return size, cpu
}
