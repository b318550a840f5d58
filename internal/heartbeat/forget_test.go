package heartbeat_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"blobtail/internal/heartbeat"
	"blobtail/storage/mem"
)

// away is the question to an ingester that does not answer.
func away(context.Context, heartbeat.Ingester) error { return nil }

// Only a silent ingester can be given up, and one that comes back after all counts
// again.
func TestForget(t *testing.T) {
	ctx, s := t.Context(), mem.New(mem.Options{})
	since := time.Now().Add(-time.Minute)
	announcer := func() (a *heartbeat.Announcer, end func()) {
		a = announcerOf(t, s, heartbeat.Options{
			ID: "0badcafe", Store: "logs", Host: "logs-b",
			Oldest: func() (time.Time, bool) { return since, true },
		})
		return a, beat(t, a)
	}
	a, end := announcer()
	if a.ID() != "0badcafe" {
		t.Errorf("its id is %s", a.ID())
	}
	end()
	refused := func(store, id string, at time.Time, want string) {
		t.Helper()
		if _, err := heartbeat.Forget(ctx, s, store, id, at, away); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	refused("logs", "0badcafe", time.Now(), "it announced itself 0s ago; if it runs, stop it")
	refused("logs", "0badcafe", time.Now().Add(-time.Minute), "it announced itself 0s ago")
	refused("logs", "deadbeef", time.Now(), "there is no such ingester; there is: 0badcafe")
	refused("others", "0badcafe", time.Now(), "there is no such ingester; there is: none")

	later := time.Now().Add(heartbeat.Silence + time.Second)
	was, err := heartbeat.Forget(ctx, s, "logs", "0badcafe", later, away)
	if err != nil || was.State != heartbeat.Holding || was.Oldest.IsZero() {
		t.Fatalf("%+v, %v", was, err)
	}
	got := one(t, s, "logs")
	if got.State != heartbeat.Stopped || !got.GivenUp.Equal(later) || !got.Oldest.Equal(was.Oldest) || got.Host != "logs-b" || !got.Forgotten(later.Add(heartbeat.Memory)) {
		t.Errorf("%+v", got)
	}
	refused("logs", "0badcafe", later, "it was forgotten at")

	_, end = announcer()
	end()
	if got := one(t, s, "logs"); got.State != heartbeat.Holding || !got.GivenUp.IsZero() || got.Oldest.IsZero() {
		t.Errorf("back again: %+v", got)
	}
	if err := a.Stop(ctx, true); err != nil {
		t.Fatal(err)
	}
}

// An ingester that ended in order has no records to give up.
func TestForgetStopped(t *testing.T) {
	s := mem.New(mem.Options{})
	a := announcerOf(t, s, heartbeat.Options{ID: "0badcafe"})
	beat(t, a)()
	if err := a.Stop(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	_, err := heartbeat.Forget(t.Context(), s, "", "0badcafe", time.Now().Add(time.Hour), away)
	if err == nil || !strings.Contains(err.Error(), "it is stopped: all that it took is in blobs") {
		t.Error(err)
	}
}

// beat runs a until it has announced itself; the caller ends it.
func beat(t *testing.T, a *heartbeat.Announcer) (end func()) {
	t.Helper()
	done := make(chan struct{})
	running, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(done)
		a.Run(running)
	}()
	<-a.First()
	return func() {
		cancel()
		<-done
	}
}
