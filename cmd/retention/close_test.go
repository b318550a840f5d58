package main

import (
	"bytes"
	"testing"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/openstore"
	"blobtail/retention/closing"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// Before a distant store is closed, the command says what that takes at most: by the first day of
// each service, without a listing of its blobs. A directory costs nothing.
func TestClosingCost(t *testing.T) {
	blobs := mem.New(mem.Options{})
	old := time.Now().UTC().Add(-26*time.Hour).AddDate(0, 0, -1000).Format("2006/01/02/") // 999 more days can be closed
	for _, key := range []string{"web/" + old + "0300/000001.log", "web-2/" + old + "2300/000001.log", "shop/" + old + "0300/000001.log"} {
		storagetest.Put(t, blobs, key, nil)
	}
	store := storagetest.Faulty(blobs, func(op storagetest.Op, _ string) (f storagetest.Fault) {
		if op == storagetest.List {
			f.Before = storagetest.ErrFault
		}
		return f
	})
	for spec, want := range map[string]string{
		"dir:data": "",
		// 2,000 PUTs at 0.065 for 10,000, and 2 + 2 * 2,000 LISTs at as much: 0.013 and 0.026013.
		"azure:acc/logs": "retention: 2,000 days of 2 services at most: 2,000 PUTs, 4,002 LISTs, and one more for each 5,000 blobs; " +
			"these take 0.0390 USD at the prices of 2026-11-22 to 2026-11-30\n",
	} {
		var out bytes.Buffer
		a := &app{Console: cli.Console{Name: "retention", Stderr: &out}, store: &openstore.Store{Blobs: store}}
		if err := a.config.Store.UnmarshalText([]byte(spec)); err != nil {
			t.Fatal(err)
		}
		if err := a.closingCost(t.Context(), closing.Options{Services: []string{"web*"}}); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != want {
			t.Errorf("%s: %q, want %q", spec, got, want)
		}
	}
}
