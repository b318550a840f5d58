package integration_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"blobtail/internal/storeid"
	"blobtail/internal/units"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/dir"
	"blobtail/storage/storagetest"
)

// stored is a blob as a reader without our code sees it.
type stored struct {
	name, contentType, contentEncoding string
	metadata                           map[string]string
	body                               []byte // a file has a trailer behind it
	size                               int64
}

// Names, metadata and lines of blobs follow the documented format. The test reads the
// lines with zstd and a JSON parser.
func TestBlobs(t *testing.T) {
	t.Parallel()
	zstd, err := exec.LookPath("zstd")
	if err != nil {
		missing(t, "the program zstd is missing")
	}
	beside(t, map[string]func(t *testing.T){
		"dir": func(t *testing.T) {
			at, root := dirStore(t)
			checkBlobs(t, zstd, at, func() []stored { return dirBlobs(t, root) })
		},
		"azure": func(t *testing.T) {
			at, client := azureStore(t)
			checkBlobs(t, zstd, at, func() []stored { return azureBlobs(t, client) })
		},
	})
}

func checkBlobs(t *testing.T, zstd string, at place, list func() []stored) {
	bodies := loghubBodies(t)
	p := start(t, at, t.TempDir(), "--period", "30m")
	for i, b := range bodies {
		p.mustPost(b.path, b.data)
		if i%16 == 15 {
			p.mustFlush()
		}
	}
	p.mustFlush()
	all := list()
	records := 0
	for i, b := range all {
		lines := unzstd(t, zstd, b.body)
		records += checkBlob(t, b, lines)
		if i%5 == 0 { // a process each
			if cat := query(t, at, "cat", b.name, "-o", "json"); !bytes.Equal(cat, lines) {
				t.Errorf("%s: logquery cat and zstd -dc differ", b.name)
			}
		}
	}
	if records != loghubRecords {
		t.Errorf("the blobs hold %d records, want %d", records, loghubRecords)
	}
	if n := p.metric("blobtail_blob_written_total"); int(n) != len(all) {
		t.Errorf("%d blobs are there, the ingester wrote %v", len(all), n)
	}
	_, errs, code := answered(t, at, "verify", "*")
	if code != 0 || !strings.Contains(errs, units.Count(len(all), "blob")+" with "+units.Count(records, "record")) || !strings.Contains(errs, " 0 findings, 0 notes") {
		t.Errorf("verify exits %d: %s", code, errs)
	}
}

// unzstd decompresses with the zstd program.
func unzstd(t testing.TB, zstd string, body []byte) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "blob.zst")
	if err := os.WriteFile(file, body, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(zstd, "-dcq", file).Output()
	if err != nil {
		t.Fatalf("zstd -dc: %v", err)
	}
	return out
}

// checkBlob compares a blob's name and metadata with its lines, and counts the lines.
func checkBlob(t testing.TB, b stored, lines []byte) (records int) {
	t.Helper()
	name := regexp.MustCompile(`^([a-z0-9][a-z0-9._-]{0,62})/(\d{4})/(\d\d)/(\d\d)/(\d\d)(00|30)/(\d{6})\.log$`).FindStringSubmatch(b.name)
	if name == nil || name[7] == "000000" || name[7] > "009999" {
		t.Fatalf("blob name %s", b.name)
	}
	half := map[string]byte{"00": '0', "30": '3'}[name[6]]
	var times []string
	var levels [record.NumLevels]int
	for line := range bytes.Lines(lines) {
		var r struct{ TS, Level, Service string }
		if !json.Valid(line) || json.Unmarshal(line, &r) != nil || len(r.TS) != 30 {
			t.Fatalf("%s: not a JSON object with a time: %s", b.name, line)
		}
		in := strings.HasPrefix(r.TS, name[2]+"-"+name[3]+"-"+name[4]+"T"+name[5]+":") && (r.TS[14] >= '3') == (half == '3')
		if r.Service != name[1] || !in {
			t.Fatalf("%s: a line of %s at %s", b.name, r.Service, r.TS)
		}
		times = append(times, r.TS)
		levels[record.LevelOf([]byte(r.Level))]++
	}
	if !slices.IsSorted(times) || len(times) == 0 {
		t.Fatalf("%s: %d lines, not in order of time", b.name, len(times))
	}
	counts := strings.ReplaceAll(strings.Trim(fmt.Sprint(levels), "[]"), " ", ".")
	want := map[string]string{
		"format": "1", "batch": b.metadata["batch"],
		"firsttimestamp": times[0], "lasttimestamp": times[len(times)-1],
		"records": fmt.Sprint(len(times)), "rawbytes": fmt.Sprint(len(lines)), "levels": counts,
		"crc":   fmt.Sprintf("%08x", crc32.Checksum(lines, crc32.MakeTable(crc32.Castagnoli))),
		"sha":   fmt.Sprintf("%x", sha256.Sum256(b.body[:b.size])),
		"place": fmt.Sprintf("%x", sha256.Sum256([]byte(path.Dir(b.name)+"/")))[:16],
	}
	// The place of the ids depends on the bytes of the blob; verify compares it with them.
	if ids, ok := b.metadata["filters"]; ok {
		want["filters"] = ids
	}
	if !maps.Equal(b.metadata, want) || !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(want["batch"]) {
		t.Errorf("%s: metadata\n%v, want\n%v", b.name, b.metadata, want)
	}
	if b.contentType != "application/x-ndjson" || b.contentEncoding != "zstd" {
		t.Errorf("%s: Content-Type %s, Content-Encoding %s", b.name, b.contentType, b.contentEncoding)
	}
	return len(times)
}

// dirBlobs reads the files of a dir store whole: zstd must skip the bytes behind the
// lines. The attributes come from the driver, because no other code can read them.
func dirBlobs(t testing.TB, root string) []stored {
	t.Helper()
	s, err := dir.Open(root, dir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]storage.Blob{}
	for _, b := range storagetest.Objects(t, s, "") {
		if b.Key != storeid.Key {
			listed[b.Key] = b
		}
	}
	var out []stored
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == ".tables" {
			return fs.SkipDir // the heartbeats of ingesters, which are not blobs
		}
		if err != nil || d.IsDir() || d.Name() == storeid.Key {
			return err
		}
		key, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		b, ok := listed[key]
		if !ok {
			return fmt.Errorf("%s is not listed", key)
		}
		body, err := os.ReadFile(path)
		out = append(out, stored{key, b.ContentType, b.ContentEncoding, b.Metadata, body, b.Size})
		return err
	})
	if err != nil || len(out) != len(listed) {
		t.Fatalf("%d files, %d listed: %v", len(out), len(listed), err)
	}
	return out
}

func azureBlobs(t testing.TB, client *container.Client) []stored {
	t.Helper()
	var out []stored
	for pages := client.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Include: container.ListBlobsInclude{Metadata: true}}); pages.More(); {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Segment.BlobItems {
			if *item.Name == storeid.Key {
				continue
			}
			b := stored{name: *item.Name, contentType: *item.Properties.ContentType, metadata: map[string]string{}}
			if encoding := item.Properties.ContentEncoding; encoding != nil {
				b.contentEncoding = *encoding
			}
			for k, v := range item.Metadata {
				b.metadata[strings.ToLower(k)] = *v // Azure changes the case
			}
			if len(item.Properties.ContentMD5) != 16 {
				t.Errorf("%s has no Content-MD5", b.name)
			}
			resp, err := client.NewBlobClient(b.name).DownloadStream(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var body bytes.Buffer
			if _, err := body.ReadFrom(resp.Body); err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			b.body, b.size = body.Bytes(), int64(body.Len())
			out = append(out, b)
		}
	}
	return out
}
