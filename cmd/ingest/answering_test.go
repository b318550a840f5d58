package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"blobtail/internal/heartbeat"
	"blobtail/newest/live"
	"blobtail/record"
	"blobtail/storage/mem"
)

// empty is an empty log, and a snapshot of it.
type empty struct{}

func (empty) Open(context.Context, live.LogQuery) (live.Held, error) { return empty{}, nil }
func (empty) Position() uint64                                       { return 0 }
func (empty) Behind() bool                                           { return false }
func (empty) Close()                                                 {}
func (empty) Each(context.Context, func(*record.Entry) error) error  { return nil }

// An ingester that answers is not forgotten, even if its row has long been silent.
func TestAnsweringIsNotForgotten(t *testing.T) {
	tables := mem.New(mem.Options{})
	handler := live.NewHandler(live.Options{
		Self:    func() live.Self { return live.Self{ID: "0badcafe", Process: "01234567"} },
		Journal: empty{},
	})
	mux := http.NewServeMux()
	mux.Handle(live.Pattern, handler)
	server := httptest.NewServer(mux)
	defer server.Close()
	defer handler.Stop()
	a, err := heartbeat.New(tables, heartbeat.Options{
		ID: "0badcafe", Address: server.URL,
		Now: func() time.Time { return time.Now().Add(-time.Hour) },
	})
	if err != nil {
		t.Fatal(err)
	}
	leave, err := a.Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	leave()
	if err := answering(t.Context(), tables, "", "0badcafe", ""); err == nil || !strings.Contains(err.Error(), "it answers at "+server.URL) {
		t.Errorf("one that answers: %v", err)
	}
	if err := answering(t.Context(), tables, "", "deadbeef", ""); err != nil {
		t.Errorf("one that is not there: %v", err)
	}
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "a token is needed", http.StatusUnauthorized)
	}))
	defer refuses.Close()
	server.Config.Handler = refuses.Config.Handler
	if err := answering(t.Context(), tables, "", "0badcafe", ""); err == nil || !strings.Contains(err.Error(), "set BLOBTAIL_PEER_TOKEN") {
		t.Errorf("one that wants a token: %v", err)
	}
	server.Close()
	if err := answering(t.Context(), tables, "", "0badcafe", ""); err != nil {
		t.Errorf("one that is gone: %v", err)
	}
}
