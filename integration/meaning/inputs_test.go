package meaning_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"blobtail/internal/azurelogs/formats"
	"blobtail/source/body/loggers"
	"blobtail/source/carry"
)

// A source has inputs of one origin. Its chunks are hashed apart.
type source struct {
	name    string
	arrived time.Time
	ways    []way
	texts   []text
	joint   bool // one hash for all ways, for sources of few inputs
}

// inputs is a hash of the inputs, to tell a change of these from one of their meaning.
func (s *source) inputs() string {
	h := sha256.New()
	for i := range s.texts {
		fmt.Fprintf(h, "%d\n", len(s.texts[i].bytes))
		h.Write(s.texts[i].bytes)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func newSource(name string, ways []way, all []string) source {
	s := source{name: name, arrived: arrived(), ways: ways}
	for i, one := range all {
		s.texts = append(s.texts, newText(i, []byte(one)))
	}
	return s
}

// frozen reads a file of quoted texts.
func frozen(t *testing.T, name string) (all []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(*from, "integration/meaning/testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		s, err := strconv.Unquote(strings.TrimSpace(line))
		if err != nil {
			t.Fatalf("%s: %v: %.80s", name, err, line)
		}
		all = append(all, s)
	}
	return all
}

// rawWays send a text as the whole body of each protocol.
func rawWays() (all []way) {
	for _, d := range carry.Doors() {
		for i, service := range []string{"", "shop"} {
			if (i == 0) == d.Named {
				continue
			}
			all = append(all, way{"raw-" + d.Name + "-" + service, func(texts []text) (parcels []parcel) {
				for _, x := range texts {
					if p, err := d.Raw(service, x.bytes); err == nil {
						parcels = append(parcels, parcel{Parcel: p})
					}
				}
				return parcels
			}})
		}
	}
	for _, p := range []carry.Parcel{
		{Path: "/v1/logs", ContentType: "application/x-protobuf"}, {Path: "/loki/api/v1/push", ContentType: "application/x-protobuf"},
		{Path: "/ingest/shop", ContentType: "application/x-www-form-urlencoded"}, {Path: "/ingest"}, {Path: "/ingest/shop",
			ContentType: jsonType},
		{Path: "/v1/input", ContentType: plainText}, {Path: "/services/collector", ContentType: jsonType},
	} {
		all = append(all, way{"raw" + strings.ReplaceAll(p.Path, "/", "-") + "-" + p.ContentType, func(texts []text) (parcels []parcel) {
			for _, x := range texts {
				one := p
				one.Body = x.bytes
				parcels = append(parcels, parcel{Parcel: one})
			}
			return parcels
		}})
	}
	return append(all, azureWays()...)
}

// azureWays read texts as blobs of Azure's own logs.
func azureWays() []way {
	each := func(kind formats.Kind, before, after string) func([]text) []parcel {
		return func(texts []text) (all []parcel) {
			for _, x := range texts {
				all = append(all, parcel{blob: kind + 1, Parcel: carry.Parcel{Body: []byte(before + string(x.bytes) + after)}})
			}
			return all
		}
	}
	return []way{
		{"azure-resource", each(formats.Resource, "", "\n")},
		{"azure-records", each(formats.Resource, `{"records":[`, "]}")},
		{"azure-classic", each(formats.Classic, "", "\n")},
	}
}

// sources are all inputs.
func sources(t *testing.T) (all []source) {
	literals, names := frozen(t, "literals.txt"), frozen(t, "names.txt")
	everyWay := append(ways(), azureWays()[0])
	all = append(all, newSource("literals/raw", rawWays(), literals), newSource("literals/texts", everyWay, literals))
	all = append(all, newSource("each/name", everyWay, each(names)), newSource("each/word", everyWay, eachWord(names)))
	all = append(all, newSource("each/phrase", everyWay, eachPhrase(frozen(t, "phrases.txt"))))
	rare := append(frozen(t, "extra.txt"), extra()...)
	all = append(all, newSource("extra/raw", rawWays(), rare), newSource("extra/texts", everyWay, rare))
	all = append(all, mutants(literals, names, everyWay)...)
	all = append(all, rows(t, everyWay)...)
	all = append(all, fuzzed(t)...)
	return append(all, loghub(t, literals, everyWay)...)
}

// mutants are made by seeds.
func mutants(literals, names []string, everyWay []way) (all []source) {
	m := &mutator{names: names}
	for _, s := range literals {
		if lines := strings.Split(strings.TrimRight(s, "\n"), "\n"); len(lines) > 1 {
			m.block = append(m.block, s)
		} else if len(s) < 400 {
			m.lines = append(m.lines, s)
		}
	}
	for i, kind := range []struct {
		name string
		n    int
		ways []way
		one  func() string
	}{
		{"objects", 9600, everyWay, func() string { return string(m.object(0)) }},
		{"lines", 9600, everyWay, m.line},
		{"bent", 6400, everyWay, func() string { return m.bent(pick(m, literals)) }},
		{"blocks", 3200, everyWay, m.blocks},
		{"bodies", 6400, rawWays(), func() string { return m.bent(pick(m, literals)) }},
	} {
		m.Rand = rand.New(rand.NewPCG(63, uint64(i)))
		texts := make([]string, kind.n)
		for j := range texts {
			texts[j] = kind.one()
		}
		all = append(all, newSource("mutants/"+kind.name, kind.ways, texts))
	}
	return all
}

// rows are those of the table of loggers.
func rows(t *testing.T, everyWay []way) (all []source) {
	table, err := loggers.Read(filepath.Join(*from, "source/body/loggers/testdata"))
	if err != nil {
		t.Fatal(err)
	}
	whole := rawWays()
	for _, row := range table {
		s := source{name: "rows/" + row.Name, arrived: row.Arrived, joint: true, ways: everyWay}
		for i, r := range row.Records {
			s.texts = append(s.texts, newText(i, r.Text))
		}
		if row.Raw != "" {
			s.ways, s.texts = whole, nil
		}
		s.texts = append(s.texts, newText(len(s.texts), row.Bytes))
		all = append(all, s)
	}
	return all
}

// fuzzed are the corpora of the fuzz targets of readers, each file as a body.
func fuzzed(t *testing.T) (all []source) {
	for _, dir := range []string{"record", "record/*", "source/*", "internal/azurelogs/formats"} {
		for _, file := range glob(t, dir, "testdata/fuzz/*/*") {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var texts []string
			scanner := bufio.NewScanner(bytes.NewReader(data))
			scanner.Buffer(nil, 16<<20)
			for scanner.Scan() {
				for _, kind := range []string{"[]byte(", "string("} {
					if quoted, ok := strings.CutPrefix(scanner.Text(), kind); ok {
						if s, err := strconv.Unquote(strings.TrimSuffix(quoted, ")")); err == nil {
							texts = append(texts, s)
						}
					}
				}
			}
			name, _ := filepath.Rel(*from, file)
			s := newSource("fuzz/"+strings.ReplaceAll(name, "/testdata/fuzz/", "/"), append(rawWays(), ways()...), texts)
			s.joint = true
			all = append(all, s)
		}
	}
	return all
}

// frames are lines of loggers around a message: @ is a time, % a level, # a component.
func frames() []string {
	return []string{
		"2006-01-02 15:04:05,000 % [main] # - ", "2006-01-02T15:04:05.000Z % #: ", "[2006-01-02 15:04:05.000] [%] # ",
		"2006/01/02 15:04:05 [%] # ", "I0102 15:04:05.000000 7 #.go:12] ",
		"Jan _2 15:04:05 web1 #[7]: % ", "[Mon Jan _2 15:04:05 2006] [%] ", "02/Jan/2006:15:04:05 +0000 % # ",
		"01-02 15:04:05.000  1702  2395 % #: ", "2006-01-02 15:04:05, % # ",
		"060102 150405 148 % #: ", "06/01/02 15:04:05 % #: ", "%:#:", "% # ", "\x1b[32m%\x1b[0m[0007] ", "<%> # ",
		"time=2006-01-02T15:04:05Z level=% msg=", "@ % ", "15:04:05.000 [%] # - ",
		"1|2006-01-02 15:04:05|%|#|", "{#} ", "", "[#] ", "2006-01-02 15:04:05.000 UTC [7] %:  ",
	}
}

// loghub are real logs of eight systems: as objects, as messages, and in the lines of loggers, with
// a trace behind some.
func loghub(t *testing.T, literals []string, everyWay []way) (all []source) {
	files, err := filepath.Glob(filepath.Join(loghubDir(), "*.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	var traces []string
	for _, s := range literals {
		if strings.Contains(s, "\n") && (strings.Contains(s, "\tat ") || strings.Contains(s, "Traceback") || strings.Contains(s,
			"goroutine ") || strings.Contains(s, "    at ")) {
			traces = append(traces, s)
		}
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var objects, messages, lines []string
		for object := range strings.Lines(string(data)) {
			var r struct {
				Time                      time.Time
				Level, Message, Component string
			}
			if err := json.Unmarshal([]byte(object), &r); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			n := len(objects)
			frame := strings.NewReplacer("%", r.Level, "#", r.Component, "@",
				fmt.Sprint(r.Time.UnixMilli())).Replace(r.Time.Format(frames()[n/5%len(frames())]))
			line := frame + r.Message
			if n%9 == 8 && len(traces) > 0 {
				line += "\n" + traces[n%len(traces)]
			}
			objects, messages, lines = append(objects, strings.TrimSuffix(object, "\n")), append(messages, r.Message), append(lines, line)
		}
		name := "loghub/" + strings.TrimSuffix(filepath.Base(file), ".ndjson")
		all = append(all, newSource(name+"/objects", everyWay, objects), newSource(name+"/messages", everyWay, messages),
			newSource(name+"/lines", everyWay, lines))
	}
	return all
}

// loghubDir is the folder of the real logs, which are no part of the repository.
func loghubDir() string {
	if dir := os.Getenv("LOGHUB"); dir != "" {
		return dir
	}
	return filepath.Join(root, "../shared/data/loghub")
}

// draw decides by a name whether it is among one of so many.
func draw(name string, of uint32) bool {
	h := fnv.New32a()
	h.Write([]byte(name))
	return h.Sum32()%of == 0
}
