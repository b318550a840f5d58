package rig

import (
	"bytes"
	"cmp"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// InstallVictoria builds VictoriaLogs into a directory, of the version that
// internal/dev/tools/victorialogs requires, from the sources of the Go module. Nothing of it is
// linked into the product. root is the root of this repository. version also says whether the build
// has cgo, because zstd is the one in C then, as in the binaries of its releases.
func InstallVictoria(ctx context.Context, root, into string) (path, version string, err error) {
	const program = "github.com/VictoriaMetrics/VictoriaLogs/app/victoria-logs"
	if path, err = filepath.Abs(filepath.Join(into, "victoria-logs")); err != nil {
		return "", "", err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", path, program)
	build.Dir = filepath.Join(root, "internal", "dev", "tools", "victorialogs")
	if out, err := build.CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("build %s in %s: %w\n%s", program, build.Dir, err, out)
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return "", "", err
	}
	zstd := "pure Go"
	for _, s := range info.Settings {
		if s.Key == "CGO_ENABLED" && s.Value == "1" {
			zstd = "cgo"
		}
	}
	return path, fmt.Sprintf("%s (%s)", info.Main.Version, zstd), nil
}

// Victoria is a running VictoriaLogs.
type Victoria struct{ *Server }

// StartVictoria runs the program on a free port with its files in dir, and waits until it answers.
// All settings but the retention are its defaults: it has to keep records of any day.
func StartVictoria(ctx context.Context, path, dir string) (*Victoria, error) {
	at, err := addresses(1)
	if err != nil {
		return nil, err
	}
	base := "http://" + at[0]
	s, err := start(ctx, base, base+"/health", nil, path,
		"-httpListenAddr="+at[0], "-storageDataPath="+dir, "-retentionPeriod=100y", "-futureRetention=100y")
	return &Victoria{s}, err
}

// Flush returns when all acknowledged records can be queried and are in files. The server's
// force_flush does the first. It writes records to files some seconds later, and at once if it is
// asked for a snapshot, which is deleted again.
func (v *Victoria) Flush(ctx context.Context) error {
	if _, err := v.get(ctx, "/internal/force_flush"); err != nil {
		return err
	}
	body, err := v.get(ctx, "/internal/partition/snapshot/create")
	if err != nil {
		return err
	}
	var snapshots []string
	if err := json.Unmarshal(body, &snapshots); err != nil {
		return fmt.Errorf("the snapshots of VictoriaLogs: %w: %.300s", err, body)
	}
	for _, path := range snapshots {
		if _, err := v.get(ctx, "/internal/partition/snapshot/delete?path="+url.QueryEscape(path)); err != nil {
			return err
		}
	}
	if err := v.none(ctx, "vl_pending_rows", "storage", "indexdb"); err != nil {
		return err
	}
	return v.none(ctx, "vl_storage_rows", "storage/inmemory")
}

// Rest returns when no merge is running. Merges begin by themselves after a load or a start, and they
// would cost CPU beside a read, and files of records that others have too.
func (v *Victoria) Rest(ctx context.Context) error {
	return v.none(ctx, "vl_active_merges", "storage/inmemory", "storage/small", "storage/big", "indexdb/inmemory", "indexdb/file")
}

// Merge flushes and merges all files of each day. VictoriaLogs does so for no day by itself: it merges
// some files while records of the day arrive.
func (v *Victoria) Merge(ctx context.Context) error {
	if err := v.Flush(ctx); err != nil {
		return err
	}
	const done = "has been successfully finished"
	before := v.log.count(done)
	if _, err := v.get(ctx, "/internal/force_merge"); err != nil { // it answers at once
		return err
	}
	return v.until(ctx, func() (bool, error) { return v.log.count(done) > before, nil })
}

// VictoriaInsert returns the path and the header to send records by a protocol of [Protocols]. Lines
// have their time in ts, their text in msg, and the fields of their streams are given, with commas
// between. Without any, it is service alone: VictoriaLogs' documentation recommends fields that are
// constant for an instance of an application. With the level as a second one, its reads of words that
// few levels have take about a tenth of the CPU. Streams of Loki are those of its labels, and streams
// of OTLP those of its resource, which are the defaults that VictoriaLogs recommends.
func VictoriaInsert(protocol, streams string) (path string, header http.Header) {
	lines := "?_stream_fields=" + cmp.Or(streams, "service") + "&_time_field=ts&_msg_field=msg"
	at := map[string][2]string{
		"ndjson": {"/insert/jsonline" + lines, "application/stream+json"},
		"bulk":   {"/insert/elasticsearch/_bulk" + lines, "application/json"},
		"loki":   {"/insert/loki/api/v1/push", "application/x-protobuf"},
		"otlp":   {"/insert/opentelemetry/v1/logs", "application/x-protobuf"},
	}[protocol]
	return at[0], http.Header{"Content-Type": {at[1]}}
}

func (v *Victoria) get(ctx context.Context, path string) ([]byte, error) {
	return Fetch(ctx, http.MethodGet, v.url+path)
}

// none returns when a metric is 0 for all of some types. It has to be there for each.
func (v *Victoria) none(ctx context.Context, metric string, types ...string) error {
	return v.until(ctx, func() (bool, error) {
		page, err := v.get(ctx, "/metrics")
		if err != nil {
			return false, err
		}
		for _, of := range types {
			name := metric + "{type=" + strconv.Quote(of) + "} "
			_, rest, found := bytes.Cut(page, []byte("\n"+name))
			value, _, _ := strings.Cut(string(rest), "\n")
			if n, err := strconv.ParseFloat(value, 64); !found || err != nil {
				return false, fmt.Errorf("VictoriaLogs has no metric %s", name)
			} else if n != 0 {
				return false, nil
			}
		}
		return true, nil
	})
}
