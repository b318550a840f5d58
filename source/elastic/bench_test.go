package elastic_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"blobtail/source/elastic"
	"blobtail/source/httpsource"
	"blobtail/source/sourcetest"
)

// corpus is the body of all records. action makes the line before each; it may be empty.
func corpus(action func(r *rand.Rand) string) (b []byte) {
	ids := rand.New(rand.NewPCG(7, 7))
	for _, r := range sourcetest.Records() {
		b = r.AppendJSON(append(b, action(ids)...))
	}
	return b
}

// BenchmarkHandler measures the handler alone, without a connection, beside the same records
// as NDJSON.
func BenchmarkHandler(b *testing.B) {
	none := func(*rand.Rand) string { return "" }
	create := func(*rand.Rand) string { return `{"create":{}}` + "\n" }
	withID := func(r *rand.Rand) string {
		return fmt.Sprintf(`{"index":{"_index":"logs","_id":"%016x%04x"}}`+"\n", r.Uint64(), r.IntN(1<<16))
	}
	for _, bb := range []struct {
		name, path string
		action     func(*rand.Rand) string
	}{
		{"ndjson", "/ingest", none},
		{"create", "/logs/_bulk", create},
		{"ids", "/_bulk", withID},
		{"ids, as Filebeat asks", "/_bulk?filter_path=errors,items.*.error,items.*.status", withID},
		{"two indexes", "/_bulk", func(r *rand.Rand) string { return fmt.Sprintf(`{"create":{"_index":"logs-%d"}}`+"\n", r.IntN(2)) }},
	} {
		b.Run(bb.name, func(b *testing.B) {
			s := httpsource.New(httpsource.Options{Accept: sourcetest.Discard{}, Protocols: []httpsource.Protocol{elastic.New(elastic.Options{})}})
			w := sourcetest.Load{Path: bb.path, ContentType: "application/x-ndjson", Body: corpus(bb.action)}.Bench(b, s)
			if items := bytes.Count(w.Body.Bytes(), []byte(`"status":201`)); bb.name != "ndjson" && items != sourcetest.PerBody {
				b.Errorf("%d items: %.200s", items, w.Body)
			}
		})
	}
}
