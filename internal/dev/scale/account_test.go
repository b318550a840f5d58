package scale_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/dev/scale"
	"blobtail/storage"
	"blobtail/storage/azure"
	"blobtail/storage/storagetest"
)

func open(t *testing.T, o scale.Options) (*scale.Account, *azure.Store) {
	t.Helper()
	a := scale.New(o)
	s, err := a.Open()
	if err != nil {
		t.Fatal(err)
	}
	return a, s
}

// The driver of production meets the contracts of package storage on the account.
func TestConformance(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) (storage.BlobStore, storage.TableStore) {
		_, s := open(t, scale.Options{ListLatency: -1, GetLatency: -1, PutLatency: -1, Requests: -1, Entities: -1})
		if err := s.EnsureContainer(t.Context()); err != nil {
			t.Fatal(err)
		}
		return s, s
	})
}

// Counts, bytes and times are those of a case that is counted by hand.
func TestCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s := open(t, scale.Options{})
		ctx := t.Context()
		start := time.Now()
		spent := func(want time.Duration) {
			t.Helper()
			if got := time.Since(start); got != want {
				t.Errorf("it took %v, want %v", got, want)
			}
			start = time.Now()
		}
		if err := s.EnsureContainer(ctx); err != nil { // has the price of a list
			t.Fatal(err)
		}
		spent(20 * time.Millisecond)
		body := bytes.Repeat([]byte("x"), 1000)
		for i := range 3 {
			storagetest.Put(t, s, fmt.Sprintf("web/%d", i), body)
		}
		if err := s.Create(ctx, "web/1", body, storage.Attrs{}); !errors.Is(err, storage.ErrExist) {
			t.Errorf("created twice: %v", err)
		}
		spent(4 * 15 * time.Millisecond)
		r, err := s.Get(ctx, "web/1", 100, 50)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || len(got) != 50 {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if _, err := s.Stat(ctx, "web/1"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Now(ctx); err != nil {
			t.Fatal(err)
		}
		spent(3 * 10 * time.Millisecond)
		storagetest.Objects(t, s, "web/")
		spent(20 * time.Millisecond)
		rows := []storage.Row{{Key: "a", Props: map[string]any{"Lines": make([]byte, 100)}}, {Key: "b", Props: map[string]any{"N": int64(7)}}}
		if err := s.Upsert(ctx, "tail20261126", "web", rows); err != nil { // meets no table, makes it, writes
			t.Fatal(err)
		}
		spent(3 * 15 * time.Millisecond)
		for _, err := range s.Scan(ctx, "tail20261126", "web", "", "", 0) {
			if err != nil {
				t.Fatal(err)
			}
		}
		spent(10 * time.Millisecond)
		if err := s.Delete(ctx, storagetest.Keys("web/1", "web/2")...); err != nil {
			t.Fatal(err)
		}
		spent(15 * time.Millisecond)
		got := a.Counts()
		want := scale.Counts{Put: 4, List: 2, Get: 1, Head: 2, Delete: 3, TableWrite: 3, TableRead: 1, In: got.In, Out: got.Out}
		if got != want || got.In < 4000 || got.Out < 50 {
			t.Errorf("%+v, want %+v", got, want)
		}
		// 4 + Timestamp 8+18+8 + key 2*(3+1) + property 8+2*5+4+100; and 4+34+8 + 8+2+8.
		if got, want := a.Written("tail"), (scale.Written{Transactions: 1, Rows: 2, Bytes: 168 + 64}); got != want {
			t.Errorf("written %+v, want %+v", got, want)
		}
		if blobs, bytes := a.Stored(); blobs != 1 || bytes != 1000 {
			t.Errorf("%d blobs of %d bytes", blobs, bytes)
		}
		if n := a.Detail()["table_write tail"]; n != 2 {
			t.Errorf("%v", a.Detail())
		}
	})
}

// A list has pages, and each is a request.
func TestPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s := open(t, scale.Options{})
		for i := range 10_001 {
			a.Add(fmt.Sprintf("web/%05d/a.log", i), nil, storage.Attrs{})
		}
		start, n := time.Now(), 0
		for _, err := range s.List(t.Context(), "web/", "") {
			if n++; err != nil {
				t.Fatal(err)
			}
		}
		if got := a.Counts(); n != 10_001 || got.List != 3 || time.Since(start) != 60*time.Millisecond {
			t.Errorf("%d names in %+v and %v", n, got, time.Since(start))
		}
		n = 0
		for _, err := range s.Dirs(t.Context(), "web/") {
			if n++; err != nil {
				t.Fatal(err)
			}
		}
		if got := a.Counts(); n != 10_001 || got.List != 6 {
			t.Errorf("%d directories in %+v", n, got)
		}
	})
}

// Beyond a limit the account answers 503, and the driver waits as long as the answer says.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
		a, s := open(t, scale.Options{Requests: 10, Entities: 20})
		if err := s.EnsureContainer(t.Context()); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for i := range 12 { // 9 in this second
			storagetest.Put(t, s, fmt.Sprint("web/", i), nil)
		}
		if got, want := time.Since(start), 13*15*time.Millisecond+time.Second; got != want {
			t.Errorf("it took %v, want %v", got, want)
		}
		if c := a.Counts(); c.Put != 12 || c.Refused != 1 {
			t.Errorf("%+v", c)
		}
		time.Sleep(time.Second)
		if err := s.Upsert(t.Context(), "tail", "web", nil); err != nil {
			t.Fatal(err)
		}
		rows := make([]storage.Row, 15)
		for i := range rows {
			rows[i].Key = fmt.Sprint("k", i)
		}
		start = time.Now()
		for range 2 {
			if err := s.Upsert(t.Context(), "tail", "web", rows); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Upsert(t.Context(), "tail", "other", rows); err != nil {
			t.Fatal(err)
		}
		if got, want := time.Since(start), 4*15*time.Millisecond+time.Second; got != want {
			t.Errorf("it took %v, want %v", got, want)
		}
	})
}

// An account that is down refuses all, and the error is the one of Azure.
func TestDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s := open(t, scale.Options{})
		a.SetDown(true)
		var refused *azure.ServiceError
		_, err := s.Stat(t.Context(), "web/1")
		if !errors.As(err, &refused) || refused.Status != http.StatusServiceUnavailable || refused.Code != "ServerBusy" {
			t.Errorf("%v", err)
		}
		a.SetDown(false)
		storagetest.Put(t, s, "web/1", nil)
		a.SetDown(true)
		ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
		defer stop()
		if _, err := s.Stat(ctx, "web/1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

// What is forgotten is counted, and takes no room.
func TestForget(t *testing.T) {
	a, s := open(t, scale.Options{ForgetBody: func(string) bool { return true }, Forget: func(table string) bool { return strings.HasPrefix(table, "tail") }})
	storagetest.Put(t, s, "web/1", []byte("body"))
	for _, table := range []string{"tail1", "lease"} {
		if err := s.Upsert(t.Context(), table, "p", []storage.Row{{Key: "k"}}); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, err := range s.Scan(t.Context(), table, "p", "", "", 0) {
			if n++; err != nil {
				t.Fatal(err)
			}
		}
		if want := map[string]int{"tail1": 0, "lease": 1}[table]; n != want {
			t.Errorf("%s has %d rows, want %d", table, n, want)
		}
	}
	if _, bytes := a.Stored(); bytes != 4 || a.Written("tail").Rows != 1 {
		t.Errorf("%d bytes, %+v", bytes, a.Written("tail"))
	}
}
