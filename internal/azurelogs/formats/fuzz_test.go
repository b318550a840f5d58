package formats_test

import (
	"bufio"
	"bytes"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"blobtail/internal/azurelogs/formats"
	"blobtail/record"
	"blobtail/record/meaning"
)

// entries cuts a blob. If slowly, its parts come one after another.
func entries(t *testing.T, kind formats.Kind, blob []byte, slowly bool) (out [][]byte, lines []int) {
	t.Helper()
	s := formats.NewSplitter(kind)
	scanner := bufio.NewScanner(bytes.NewReader(blob))
	switch {
	case slowly && len(blob) < 2<<10:
		scanner = bufio.NewScanner(iotest.OneByteReader(bytes.NewReader(blob)))
	case slowly:
		scanner = bufio.NewScanner(iotest.HalfReader(bytes.NewReader(blob)))
	}
	scanner.Buffer(make([]byte, 16), formats.MaxBuffer)
	scanner.Split(s.Split)
	for scanner.Scan() {
		out, lines = append(out, bytes.Clone(scanner.Bytes())), append(lines, s.Line)
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return out, lines
}

func fuzz(f *testing.F, kind formats.Kind) {
	unmasked := regexp.MustCompile(`[?&]sig=[0-9A-Za-z%+/_~.-]`)
	f.Fuzz(func(t *testing.T, blob []byte) {
		whole, lines := entries(t, kind, blob, false)
		slow, slowLines := entries(t, kind, blob, true)
		if len(whole) != len(slow) {
			t.Fatalf("%d entries at once, %d in parts", len(whole), len(slow))
		}
		tr, rest, before := formats.NewTranslator(kind, "svc", time.Time{}), blob, 0
		for i, e := range whole {
			if !bytes.Equal(e, slow[i]) || lines[i] != slowLines[i] {
				t.Fatalf("entry %d: %q in line %d at once, %q in line %d in parts", i, e, lines[i], slow[i], slowLines[i])
			}
			at := bytes.Index(rest, e)
			if at < 0 || lines[i] < before || len(e) == 0 {
				t.Fatalf("entry %d %q in line %d is no next part of the blob", i, e, lines[i])
			}
			rest, before = rest[at+len(e):], lines[i]
			line, stamp, err := tr.Append([]byte("before"), e)
			if err != nil {
				if string(line) != "before" {
					t.Fatalf("a malformed entry left %q", line)
				}
				continue
			}
			line = line[len("before"):]
			check(t, line, stamp)
			text := strings.ReplaceAll(string(line), "sig=XXXXX", "")
			if unmasked.MatchString(text) {
				t.Fatalf("a signature is left in %q", line)
			}
			again, _, err := formats.NewTranslator(kind, "svc", time.Time{}).Append(nil, e)
			if err != nil || !bytes.Equal(again, line) {
				t.Fatalf("another translator makes %q, %v of it, not %q", again, err, line)
			}
			if _, err := meaning.NewReader().Scan(line); err != nil && len(line) < record.MaxRecord {
				t.Fatalf("%v: %q", err, line)
			}
		}
	})
}

func FuzzClassic(f *testing.F) {
	for _, seed := range []string{sample2 + "\n" + sample1 + "\n", sample1, classic(map[int]string{27: "\"a\nb;&quot;\"", 24: `""0x8D""`}), classic(map[int]string{12: `"open`}) + classic(nil),
		"\xef\xbb\xbf;;\r\n\";\"\n", classic(map[int]string{11: "https://a/?sig=a%2b&amp;x=%26sig%3Dq"})} {
		f.Add([]byte(seed))
	}
	fuzz(f, formats.Classic)
}

func FuzzResource(f *testing.F) {
	for _, seed := range []string{
		`{"time":"2022-07-05T11:47:39Z","level":"Warning","statusCode":503,"uri":"https://a/?sig=a\u0026b"}` + "\n[]\n{\"time\":1}",
		`{"records":[{"time":"2022-07-05T11:47:39Z","a":"]}"},{"x":[1,{}]}]}` + "\n", `{ "records" : [ ] , "x":1 }` + "\n{}\n",
		`{"time":"2022-07-05T11:47:39Z","operationName":{"value":"V"},"properties":{"statusCode":"404"},"level":"9","msg":"\u0000\ud800"}` + "\n",
		`{"time":"2022-07-05T11:47:39Z","properties":{'message':'it\'s "a"?sig=b','level':'Error'},"a":1}` +
			"\n" + `{"properties":"{'a':'b','c':\"?sig=x\"}"}` + "\n",
	} {
		f.Add([]byte(seed))
	}
	fuzz(f, formats.Resource)
}

// BenchmarkAppend measures the cost of a line, split and translated.
func BenchmarkAppend(b *testing.B) {
	for name, of := range map[string]struct {
		kind formats.Kind
		line string
	}{
		"Classic":  {formats.Classic, sample2 + "\n"},
		"Resource": {formats.Resource, `{"time":"2022-07-05T11:47:39.6047124Z","resourceId":"/subscriptions/x/providers/Microsoft.Storage/storageAccounts/acct/blobServices/default","category":"StorageRead","operationName":"GetBlob","operationVersion":"2021-06-08","schemaVersion":"1.0","statusCode":200,"statusText":"Success","durationMs":9,"callerIpAddress":"10.0.0.1:56029","correlationId":"170464ae-101e-004b-6365-90ca9c000000","identity":{"type":"SAS"},"location":"West Europe","properties":{"accountName":"acct","serviceType":"blob","objectKey":"/acct/c/x.txt","etag":"\"0x8DA5A9118CDE874\"","serverLatencyMs":9,"tlsVersion":"TLS 1.2"},"uri":"https://acct.blob.core.windows.net:443/c/x.txt?sig=XXXXX","protocol":"HTTPS","resourceType":"Microsoft.Storage/storageAccounts/blobServices"}` + "\n"},
	} {
		b.Run(name, func(b *testing.B) {
			blob := []byte(strings.Repeat(of.line, 1000))
			b.SetBytes(int64(len(blob)))
			tr, dst := formats.NewTranslator(of.kind, "svc", time.Time{}), []byte(nil)
			for b.Loop() {
				s := formats.NewSplitter(of.kind)
				scanner := bufio.NewScanner(bytes.NewReader(blob))
				scanner.Buffer(make([]byte, 64<<10), formats.MaxBuffer)
				scanner.Split(s.Split)
				for scanner.Scan() {
					var err error
					if dst, _, err = tr.Append(dst[:0], scanner.Bytes()); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
