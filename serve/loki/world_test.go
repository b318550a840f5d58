package loki_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/blobfmt"
	"blobtail/internal/lease"
	"blobtail/reading"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
	"blobtail/record"
	"blobtail/serve/loki"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// noon is the time of the tests.
const noon = int64(1_795_348_800_000_000_000)

const (
	second = int64(time.Second)
	minute = int64(time.Minute)
	hour   = int64(time.Hour)
)

// A world is a store with a handler that reads it. Its clock stands at noon.
type world struct {
	t      testing.TB
	store  *mem.Store
	faults storagetest.Script
	enc    *blobfmt.Encoder
	number int
	reader *reading.Reader
	api    http.Handler
}

func newWorld(t testing.TB, change ...func(*loki.Options)) *world {
	return newWorldWithin(t, 0, change...)
}

// newWorldWithin is a world of reads that decode at most so many bytes.
func newWorldWithin(t testing.TB, most int64, change ...func(*loki.Options)) *world {
	enc, err := blobfmt.NewEncoder(blobfmt.EncoderOptions{BlockSize: 16 << 10, FilterPercent: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, store: mem.New(mem.Options{}), enc: enc}
	store := storagetest.Faulty(w.store, func(op storagetest.Op, key string) storagetest.Fault {
		if w.faults == nil {
			return storagetest.Fault{}
		}
		return w.faults(op, key)
	})
	now := func() time.Time { return time.Unix(0, noon) }
	blobs := blobs.New(store, blobs.Options{Workers: 2, Now: now})
	w.reader = reading.New(reading.Options{Blobs: blobs, MaxRaw: most, Logs: unflushed.New(unflushed.Options{
		Blobs: blobs, Unasked: true,
		Store: func(context.Context) (string, error) { return "", nil },
		Ingesters: func(context.Context) ([]lease.Ingester, time.Time, error) {
			return nil, now(), nil
		},
	})})
	o := loki.Options{Reader: w.reader, Now: now, Version: "1.2.3", Revision: "abcdef", Timeout: 2 * time.Minute}
	for _, f := range change {
		f(&o)
	}
	w.api = loki.New(o)
	return w
}

// rec is one record: its time, and its line without time and service.
type rec struct {
	time int64
	line string
}

// canonical makes the stored line of a record.
func canonical(service, level string, ns int64, msg, fields string) string {
	b := record.AppendTime([]byte(`{"ts":"`), ns)
	if fields != "" {
		fields = "," + fields
	}
	return string(b) + fmt.Sprintf(`","level":"%s","service":"%s","msg":"%s"%s}`, level, service, record.AppendEscaped(nil, []byte(msg)), fields) + "\n"
}

// add stores the records of a service, in a blob for each hour.
func (w *world) add(service string, recs ...rec) {
	w.t.Helper()
	byHour := map[int64][]rec{}
	for _, r := range recs {
		byHour[r.time/hour] = append(byHour[r.time/hour], r)
	}
	for h, some := range byHour {
		slices.SortStableFunc(some, func(a, b rec) int { return int((a.time - b.time) % hour) })
		w.number++
		w.enc.Reset()
		for i, r := range some {
			var origin record.Origin
			binary.BigEndian.PutUint64(origin[8:], uint64(w.number))
			if err := w.enc.Add([]byte(r.line), r.time, origin, uint32(i)); err != nil {
				w.t.Fatal(err)
			}
		}
		var id blobfmt.BatchID
		binary.BigEndian.PutUint64(id[8:], uint64(w.number))
		body, meta, err := w.enc.Finish(id)
		if err != nil {
			w.t.Fatal(err)
		}
		name := blobfmt.Name{Service: service, Period: time.Unix(0, h*hour).UTC(), Number: w.number}
		storagetest.Put(w.t, w.store, name.String(), bytes.Clone(body), storage.Attrs{
			ContentType: blobfmt.ContentType, ContentEncoding: blobfmt.ContentEncoding, Metadata: meta.Map(),
		})
	}
}

// log stores one record.
func (w *world) log(service, level string, ns int64, msg, fields string) {
	w.t.Helper()
	w.add(service, rec{ns, canonical(service, level, ns, msg, fields)})
}

// an answer is the part of a response that tests look at.
type answer struct {
	code int
	kind string // its Content-Type
	body string
}

// get asks with parameters, each as name and value, and headers.
func (w *world) get(path string, params ...string) answer {
	return w.ask(http.MethodGet, path, nil, params...)
}

// grafana is the header by which Grafana's data source tells its abilities.
func grafana() http.Header {
	return http.Header{"X-Loki-Response-Encoding-Flags": {"categorize-labels"}}
}

func (w *world) ask(method, path string, header http.Header, params ...string) answer {
	w.t.Helper()
	form := url.Values{}
	for i := 0; i < len(params); i += 2 {
		form.Add(params[i], params[i+1])
	}
	var body io.Reader
	target := path + "?" + form.Encode()
	if method == http.MethodPost {
		body, target = strings.NewReader(form.Encode()), path
	}
	r := httptest.NewRequest(method, target, body)
	if body != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, values := range header {
		r.Header[name] = values
	}
	rec := httptest.NewRecorder()
	w.api.ServeHTTP(rec, r)
	return answer{rec.Code, rec.Header().Get("Content-Type"), rec.Body.String()}
}

// is checks an answer to the byte.
func (a answer) is(t testing.TB, code int, body string) {
	t.Helper()
	if a.code != code || a.body != body+"\n" {
		t.Errorf("answer %d:\n%s\nwant %d:\n%s", a.code, a.body, code, body)
	}
}

// text is a number as a parameter.
func text(n int64) string { return fmt.Sprint(n) }
