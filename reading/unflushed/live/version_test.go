package live_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"blobtail/internal/lease"
	"blobtail/reading/unflushed/live"
)

// An answer in an unknown version is no answer. The reader learns the ingester, its
// version, and the program to upgrade: from the ingester itself, and through another
// one.
func TestAnotherVersion(t *testing.T) {
	const id = "bbbbbbbb"
	answer := func(status int, edit func(http.Header)) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			headers(w.Header(), id)
			edit(w.Header())
			w.WriteHeader(status)
			io.WriteString(w, "end 0 0 0\n")
		})
	}
	of := func(version string) func(http.Header) {
		return func(h http.Header) { h.Set("Blobtail-Live", version) }
	}
	first := func(h http.Header) {
		for _, name := range []string{"Live", "Process", "Store", "Snapshots"} {
			h.Del("Blobtail-" + name)
		}
	}
	newer := fmt.Sprintf("speaks version %d of /live; ", live.Version+1)
	for _, c := range []struct {
		name            string
		h               http.Handler
		reader, by      string // the messages to its reader, and to the reader of another ingester
		version, status int
	}{
		{"newer", answer(http.StatusOK, of(fmt.Sprint(live.Version+1))), newer + "this program knows versions up to 2: upgrade this program",
			newer + "the ingester that asked it knows versions up to 2: upgrade the one that asked", live.Version + 1, http.StatusOK},
		{"newer, and no text", answer(http.StatusOK, func(h http.Header) {
			of(fmt.Sprint(live.Version + 1))(h)
			h.Set("Content-Type", "application/octet-stream")
			h.Del("Blobtail-Process")
		}), newer, newer, live.Version + 1, http.StatusOK},
		{"newer, and refuses", answer(http.StatusBadRequest, of(fmt.Sprint(live.Version+1))), newer, newer, live.Version + 1, http.StatusBadRequest},
		{"the first", answer(http.StatusOK, first), "speaks version 1 of /live, as before commit a960ca37: upgrade that ingester", "upgrade that ingester", 1, http.StatusOK},
		{"the first, busy", answer(http.StatusServiceUnavailable, first), "does not answer (503)", "does not answer (503)", 0, http.StatusServiceUnavailable},
		{"no number", answer(http.StatusOK, of("two")), `the version of its answer cannot be read: "two"`, `cannot be read: "two"`, 0, http.StatusOK},
		{"none", answer(http.StatusOK, of("0")), `the version of its answer cannot be read: "0"`, `cannot be read: "0"`, 0, http.StatusOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := serve(t, c.h)
			_, err := client(t, url).Ask(t.Context(), all("web"))
			var no *live.NoAnswerError
			switch {
			case err == nil || !strings.Contains(err.Error(), c.reader) || !strings.Contains(err.Error(), url):
				t.Errorf("a reader gets %v", err)
			case !errors.As(err, &no) || no.Status != c.status:
				t.Errorf("%#v", err)
			case c.version > 0 && !strings.Contains(err.Error(), fmt.Sprintf("ingester %s at %s speaks version %d of /live", id, url, c.version)):
				t.Errorf("a reader gets %v", err)
			}
			a := newIngester(t, "aaaaaaaa", peer(lease.Ingester{ID: id, Address: url}))
			a.log.add(entry(1, 1, 0, "web"))
			got, _, err := read(t, a.url, all("web"))
			if m := incomplete(t, err, 1, 0); len(got) != 1 || m.ID != id || !strings.Contains(m.Reason, c.by) {
				t.Errorf("%d records, %+v", len(got), m)
			}
		})
	}
}

// Every message has its version: the question of a reader, that of an ingester to
// another, an answer, and a refusal. A caller that is newer, or names no version, still
// gets an answer.
func TestSaysVersion(t *testing.T) {
	want := fmt.Sprint(live.Version)
	b := newIngester(t, "bbbbbbbb")
	questions := make(chan string, 2)
	note := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			questions <- r.Header.Get("Blobtail-Live")
			r.Header.Set("Blobtail-Live", "77")
			h.ServeHTTP(w, r)
		})
	}
	peer := b.peer()
	peer.Address = serve(t, note(b.h))
	a := newIngester(t, "aaaaaaaa", peer)
	if _, _, err := read(t, serve(t, note(a.h)), all("web")); err != io.EOF {
		t.Error(err)
	}
	if reader, ingester := <-questions, <-questions; reader != want || ingester != want {
		t.Errorf("asked in versions %q and %q", reader, ingester)
	}
	for _, path := range []string{"/live/web", "/live/web?nonsense=1"} {
		resp, err := http.Get(a.url + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := resp.Header.Get("Blobtail-Live"); got != want {
			t.Errorf("%s is answered %d in version %q", path, resp.StatusCode, got)
		}
	}
}
