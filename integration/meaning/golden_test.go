// Package meaning_test freezes what foreign records mean: the records that come of many inputs
// through every door. testdata/golden.txt has a hash of the records of each chunk of inputs, with
// their lines and the reasons for their heads in words. A change that shall not change the meaning of
// anything leaves it as it is.
//
//	go test ./integration/meaning           one chunk in seven
//	make golden                             all of them, some minutes
//	make golden AGAINST=main                prints the records that are others than at that commit, of the same inputs
//	make golden UPDATE=1                    writes the file anew; each wanted difference is told with the change
//
// The real logs of LOGHUB, by default ../shared/data/loghub, are left out where they are not.
package meaning_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"hash"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/azurelogs/formats"
	"blobtail/internal/config"
	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/source/body"
	"blobtail/source/carry"
	"blobtail/source/dryrun"
	"blobtail/source/httpsource"
	"blobtail/source/otlp"
	"blobtail/source/shippers"
	"blobtail/source/syslog"
)

const (
	root = "../.."
	file = "testdata/golden.txt"

	// chunk is how many inputs have a hash.
	chunk = 400
	// sampled is how many chunks there are for one that a plain run tries, and a short one. A plain run
	// tries all rows of the table of loggers.
	sampled, sampledShort = 7, 80
)

var (
	update = flag.Bool("update", false, "write "+file+" anew")
	all    = flag.Bool("all", false, "try all inputs")
	into   = flag.String("into", "", "write all records to files in this folder, 2 GB, and compare nothing")
	from   = flag.String("from", root, "the root of the repository that the inputs are of")
)

// TestGolden compares the meaning of all inputs with the golden file.
func TestGolden(t *testing.T) {
	// Each parcel has sources of its own, and what these pool lives through two collections. With the GOGC
	// of make it would be more each time.
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	g := &golden{want: read(t), got: map[string][]string{}, of: 1, absent: map[string]bool{}}
	switch {
	case *update, *all, *into != "":
	case testing.Short():
		g.of = sampledShort
	default:
		g.of = sampled
	}
	t.Run("inputs", func(t *testing.T) {
		for _, s := range sources(t) {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				g.try(t, &s)
			})
		}
		t.Run("loghub", func(t *testing.T) {
			if files, _ := filepath.Glob(filepath.Join(loghubDir(), "*.ndjson")); len(files) == 0 {
				g.absent["loghub/"] = true
				t.Skipf("there are no real logs in %s", loghubDir())
			}
		})
	})
	switch {
	case *update:
		g.write(t)
	case g.of == 1 && *into == "":
		g.missing(t)
	}
	t.Logf("%d records of %d parcels", g.records, g.parcels)
}

// A golden is the content of the file, by source and way.
type golden struct {
	of     uint32 // one chunk of so many is tried
	want   map[string][]string
	absent map[string]bool // beginnings of sources that are not there

	mu               sync.Mutex
	got              map[string][]string
	records, parcels int
}

// try passes a source through its ways.
func (g *golden) try(t *testing.T, s *source) {
	inputs := "inputs " + s.name
	g.put(inputs, []string{s.inputs()})
	if was := g.want[inputs]; !*update && *into == "" && len(was) > 0 && was[0] != s.inputs() {
		t.Errorf("%s: the inputs are others, so this says nothing of their meaning", s.name)
		return
	}
	if s.joint {
		if g.of <= sampled || draw(s.name, g.of) {
			g.hash(t, s, "all", 0, s.ways, s.texts)
		}
		return
	}
	for _, w := range s.ways {
		for i := 0; i*chunk < len(s.texts); i++ {
			if draw(fmt.Sprint(s.name, w.name, i), g.of) {
				g.hash(t, s, w.name, i, []way{w}, s.texts[i*chunk:min((i+1)*chunk, len(s.texts))])
			}
		}
	}
}

// hash passes a chunk, and compares its hash.
func (g *golden) hash(t *testing.T, s *source, name string, at int, ways []way, texts []text) {
	out := &sink{hash: sha256.New()}
	if *into != "" {
		out.open(t, filepath.Join(*into, s.name, fmt.Sprintf("%s-%03d.txt", strings.ReplaceAll(name, "/", "_"), at)))
		defer out.close(t)
	}
	for _, w := range ways {
		for _, p := range w.pack(texts) {
			out.pass(t, s, w.name, &p)
		}
	}
	key, sum := s.name+" "+name, hex.EncodeToString(out.hash.Sum(nil)[:5])
	g.mu.Lock()
	defer g.mu.Unlock()
	g.records, g.parcels = g.records+out.records, g.parcels+out.parcels
	for len(g.got[key]) <= at {
		g.got[key] = append(g.got[key], "")
	}
	g.got[key][at] = sum
	switch want := g.want[key]; {
	case *update, *into != "":
	case at >= len(want):
		t.Errorf("%s, chunk %d: the golden file has no such row; make golden UPDATE=1", key, at)
	case want[at] != sum:
		t.Errorf("%s, chunk %d: the records are others; make golden AGAINST=COMMIT prints them", key, at)
	}
}

func (g *golden) put(key string, sums []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.got[key] = sums
}

// isAbsent reports whether a row is of a source that is not there.
func (g *golden) isAbsent(key string) bool {
	for prefix := range g.absent {
		if strings.HasPrefix(strings.TrimPrefix(key, "inputs "), prefix) {
			return true
		}
	}
	return false
}

// missing tells of rows that nothing has given.
func (g *golden) missing(t *testing.T) {
	for key, sums := range g.want {
		if len(g.got[key]) != len(sums) && !g.isAbsent(key) {
			t.Errorf("%s: the golden file has %d chunks of it, and there are %d; make golden UPDATE=1", key, len(sums), len(g.got[key]))
		}
	}
}

// read reads the golden file.
func read(t *testing.T) map[string][]string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 2 && f[0] != "#" {
			rows[f[0]+" "+f[1]] = f[2:]
		}
	}
	return rows
}

// write writes it anew. Rows of absent sources stay.
func (g *golden) write(t *testing.T) {
	for key, sums := range g.want {
		if g.isAbsent(key) {
			g.got[key] = sums
		}
	}
	var b bytes.Buffer
	b.WriteString("# source, way, and a hash for each chunk of inputs; make golden UPDATE=1\n")
	for _, key := range slices.Sorted(maps.Keys(g.got)) {
		fmt.Fprintln(&b, key, strings.Join(g.got[key], " "))
	}
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A sink takes the records of a chunk, one a line.
type sink struct {
	hash             hash.Hash
	line             []byte
	records, parcels int
	file             *os.File
	out              *bufio.Writer
}

func (k *sink) open(t *testing.T, name string) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	k.file, k.out = f, bufio.NewWriter(f)
}

func (k *sink) close(t *testing.T) {
	if err := k.out.Flush(); err != nil {
		t.Error(err)
	}
	if err := k.file.Close(); err != nil {
		t.Error(err)
	}
}

// add takes the line in the memory of the sink.
func (k *sink) add() {
	var w io.Writer = k.hash
	if k.out != nil {
		w = io.MultiWriter(k.hash, k.out)
	}
	// The library of protobuf draws the blanks of its errors by the hash of the program.
	k.line = bytes.ReplaceAll(bytes.ReplaceAll(k.line, []byte("proto:\u00a0"), []byte("proto: ")), []byte(`proto:\u00a0`),
		[]byte("proto: "))
	_, _ = w.Write(append(k.line, '\n')) // a failure comes again with the last flush
}

// options are those of an ingester.
func (p *parcel) options(s *source) dryrun.Options {
	o := dryrun.Options{
		Arrived: s.arrived, Syslog: syslog.Options{Zone: time.UTC},
		Shippers: shippers.Options{OTLP: otlp.Options{ServiceFrom: config.Default().OTLP.ServiceFrom}},
	}
	if p.mapped {
		fields := meaning.NewMapping(config.Fields{
			{Services: []string{"shop", "c*"}, Time: []string{"when", "eventTime", "meta.ts"}, Level: []string{"prio", "status",
				"log.severity"}, Message: []string{"text", "detail"}},
			{Time: []string{"date", "data.time", "t"}, Level: []string{"level_name", "kind"}, Message: []string{"log", "event.original"},
				Service: []string{"app", "labels.app", "logger"}},
		}.Naming()).WithFar(p.far)
		o.HTTP, o.Syslog.Fields = httpsource.Options{Fields: fields}, fields
	}
	return o
}

// pass sends a parcel.
func (k *sink) pass(t *testing.T, s *source, way string, p *parcel) {
	k.parcels++
	if p.blob > 0 {
		k.blob(s, way, p)
		return
	}
	o := p.options(s)
	o.Watch = func(seen body.Seen) { k.seen(way, p.By, &seen) }
	if p.By == carry.Syslog { // it waits for messages by the clock
		synctest.Test(t, func(t *testing.T) { k.send(t, way, p, o) })
		return
	}
	if !k.send(t, way, p, o) { // its records all the same, without reasons
		o.Watch, o.Accept = nil, k
		k.send(t, way, p, o)
	}
}

// drawn is what an answer of Elasticsearch has of a clock and of chance.
var drawn = regexp.MustCompile(`("took":|"_id":")[a-z0-9]+`)

// send reports false after a panic.
func (k *sink) send(t *testing.T, way string, p *parcel, o dryrun.Options) (ok bool) {
	defer func() {
		if !ok {
			fault := recover()
			t.Logf("%s panics: %v: %.300q", way, fault, p.Body)
			k.line = fmt.Appendf(k.line[:0], "%s\tpanic", way)
			k.add()
		}
	}()
	a, err := dryrun.Send(context.WithoutCancel(t.Context()), p.Parcel, o)
	k.line = fmt.Appendf(k.line[:0], "%s\tanswer %d %q", way, a.Status, drawn.ReplaceAllString(a.Text, `$1`))
	if err != nil {
		k.line = append(k.line, "\terror"...)
	}
	k.add()
	return true
}

// Accept implements [body.Accepter]: it keeps the lines alone.
func (k *sink) Accept(_ context.Context, q *record.Request) (record.Receipt, error) {
	for _, line := range q.Lines {
		k.records++
		k.line = append(k.line[:0], bytes.TrimSuffix(q.Data[line.Off:line.Off+line.Len], []byte("\n"))...)
		k.add()
	}
	return record.Receipt{Wait: func(context.Context, bool) error { return nil }}, nil
}

// blob reads a blob of Azure's own logs.
func (k *sink) blob(s *source, way string, p *parcel) {
	split, tr := formats.NewSplitter(p.blob-1), formats.NewTranslator(p.blob-1, "shop", s.arrived)
	scanner := bufio.NewScanner(bytes.NewReader(p.Body))
	scanner.Buffer(nil, 4<<20)
	scanner.Split(split.Split)
	for n := 0; scanner.Scan(); n++ {
		line, stamp, err := tr.Append(nil, scanner.Bytes())
		seen := body.Seen{Place: n, Line: line, Stamp: stamp}
		if err != nil {
			seen.Rejected = err.Error()
		}
		k.seen(way, p.By, &seen)
	}
}

// seen adds a record: its place, its line, whether the time is its own, and the reasons.
func (k *sink) seen(way string, by carry.Transport, seen *body.Seen) {
	k.records++
	b := append(append(k.line[:0], way...), '\t')
	if by != carry.Syslog { // its batches end by the clock
		b = strconv.AppendInt(b, int64(seen.Place), 10)
	}
	b = append(b, '\t')
	if seen.Rejected != "" {
		b = append(strconv.AppendQuote(b, seen.Rejected), '\t')
		b = strconv.AppendQuote(b, string(seen.Raw[:min(len(seen.Raw), 200)]))
	} else {
		b = append(b, bytes.TrimSuffix(seen.Line, []byte("\n"))...)
		b = append(strconv.AppendInt(append(b, '\t'), seen.Stamp.Time, 10), '\t')
		for _, flag := range []bool{seen.Stamp.OwnTime, seen.Stamp.Guessed, seen.Stamp.TimeUnread, seen.Stamp.LevelUnread,
			seen.Stamp.TimeFar} {
			b = append(b, "-+"[map[bool]int{false: 0, true: 1}[flag]])
		}
		why := dryrun.ReasonsOf(*seen, by)
		for _, part := range []string{why.Time, why.Level, why.Message, why.Service} {
			b = strconv.AppendQuote(append(b, '\t'), part)
		}
	}
	k.line = b
	k.add()
}
