package remote_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/access"
	"blobtail/internal/door"
	"blobtail/reading"
	"blobtail/reading/readingtest"
	"blobtail/reading/remote"
	"blobtail/record"
	"blobtail/serve/api"
	"blobtail/serve/loki"
)

// serve returns a client of a server over a house, for the holder of a token that may read some
// services; none: no token is asked for.
func serve(t *testing.T, h *readingtest.House, read ...string) *remote.Client {
	t.Helper()
	reader := h.Reader()
	var guard door.Options
	var o remote.Options
	if len(read) > 0 {
		file := filepath.Join(t.TempDir(), "tokens.yaml")
		secret, hash := access.NewSecret()
		if _, err := access.Add(file, access.Entry{ID: "reader", Hash: hash, Read: read}); err != nil {
			t.Fatal(err)
		}
		tokens, err := access.Open(file, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		guard.Tokens, o.Token = tokens, "reader."+secret
	}
	doors := door.NewReads(door.ReadsOptions{Guard: door.New(guard), Log: zerolog.Nop(), Route: func(path string) door.Route {
		if strings.HasSuffix(path, "/tail") {
			return door.Route{Name: "tail", Kind: door.Tail}
		}
		return door.Route{Name: "query", Kind: door.Query}
	}})
	mux := http.NewServeMux()
	mux.Handle(api.Prefix, api.New(api.Options{Reader: reader}))
	mux.Handle("/loki/", loki.New(loki.Options{Reader: reader}))
	srv := httptest.NewServer(doors.Wrap(mux))
	t.Cleanup(func() {
		doors.DropTails()
		srv.Close()
	})
	c, err := remote.New(srv.URL, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A server passes the tests of a source.
func TestSource(t *testing.T) {
	readingtest.Run(t, func(t *testing.T, h *readingtest.House, read ...string) reading.Source { return serve(t, h, read...) })
}

// A server answers as the store does that it reads.
func TestSame(t *testing.T) {
	h, then := readingtest.New(t, 1), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for i := range 30 {
		h.Send(0, readingtest.Line{Time: then.Add(time.Duration(i) * time.Minute), Service: []string{"web", "api"}[i%2], Msg: fmt.Sprint("message ", i), Fields: `"n":` + fmt.Sprint(i)})
	}
	h.Flush()
	h.Send(0, readingtest.Line{Time: then.Add(time.Hour), Service: "web", Level: "error", Msg: "late"})
	store, server := h.Reader().For(nil), serve(t, h)
	var place reading.Place
	_, err := store.Entries(t.Context(), reading.Ask{Services: []string{"web"}, Range: reading.Always(), Texts: []string{"message 10"}}, func(e *record.Entry) error {
		place = reading.Place{Service: "web", Time: e.Time, ID: e.ID, Before: 2, After: 3}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	others, gone := place, place
	others.Others, gone.Time = true, 7
	entries := func(n *reading.Neighbours) (s string) {
		if n.Record == nil {
			return "none"
		}
		for _, e := range slices.Concat(n.Before, []record.Entry{*n.Record}, n.After) {
			s += fmt.Sprintf("%d %v %s", e.Time, e.ID, e.Line)
		}
		return s
	}
	day := reading.Range{From: then.UnixNano(), To: then.Add(20 * time.Hour).UnixNano()}
	asks := map[string]reading.Ask{
		"all": {Services: []string{"*"}, Range: reading.Always()}, "day": {Services: []string{"web"}, Range: day}, "newest": {Services: []string{"*"}, Range: day, Limit: 3},
		"oldest": {Services: []string{"web", "nosuch"}, Range: day, First: 2}, "reverse": {Services: []string{"api"}, Range: day, Reverse: true},
		"filter": {Services: []string{"web"}, Range: reading.Always(), Texts: []string{"message"}, Where: "n >= 20"}, "logql": {LogQL: `{service="web"} |= "late"`, Range: reading.Always()},
		"nothing": {Services: []string{"nosuch"}, Range: day}, "blobs": {Services: []string{"web"}, Range: reading.Always(), Live: reading.Off}, "note": {Services: []string{"web"}, Range: day, Where: "m > 1"},
		"parsed": {Services: []string{"*"}, Range: reading.Always(), Parse: "<_> <number>", Where: "number > 27"}, "levels": {Services: []string{"*"}, Range: reading.Always(), NotLevels: 1 << record.Error},
	}
	for name, ask := range asks {
		for what, answer := range map[string]func(s reading.Source) (string, *reading.Outcome, error){
			"records": func(s reading.Source) (text string, _ *reading.Outcome, _ error) {
				out, err := s.Records(t.Context(), ask, func(lines []byte) error { text += string(lines); return nil })
				return text, out, err
			},
			"count": func(s reading.Source) (string, *reading.Outcome, error) {
				out, err := s.Count(t.Context(), ask)
				return "", out, err
			},
			"histogram": func(s reading.Source) (string, *reading.Outcome, error) {
				h, out, err := s.Histogram(t.Context(), ask, reading.Slices{Until: then.Add(100 * time.Hour).UnixNano(), Zone: time.UTC})
				if err != nil {
					return "", out, err
				}
				return fmt.Sprint(*h), out, nil
			},
			"services": func(s reading.Source) (string, *reading.Outcome, error) {
				list, out, err := s.Services(t.Context(), ask)
				return fmt.Sprint(list), out, err
			},
			"days": func(s reading.Source) (string, *reading.Outcome, error) {
				list, out, err := s.Days(t.Context(), ask)
				return fmt.Sprint(list), out, err
			},
			"around": func(s reading.Source) (text string, out *reading.Outcome, err error) {
				for _, p := range []reading.Place{place, others, gone} {
					n, _, err := s.Around(t.Context(), ask, p)
					if err != nil {
						return text, nil, err
					}
					text += entries(n) + "\n"
				}
				return text, nil, nil
			},
		} {
			if ask.LogQL != "" && (what == "days" || what == "services") {
				continue // of services by name
			}
			say := func(s reading.Source) string {
				text, out, err := answer(s)
				if err != nil {
					return fmt.Sprintf("%T %v", err, err)
				}
				if out == nil {
					return text
				}
				absent := ""
				for _, none := range out.Absent {
					absent += none.Name
				}
				return fmt.Sprintf("%s complete %v, %d records, more %v, absent %s, notes %q, warnings %v", text, out.Complete(), out.Records, out.More, absent, out.Notes, out.Warnings)
			}
			if want, got := say(store), say(server); got != want {
				t.Errorf("%s, %s:\n%s\nstore:\n%s", name, what, got, want)
			}
		}
	}
	if names, err := server.Names(t.Context()); err != nil || strings.Join(names, " ") != "api web" {
		t.Error(names, err)
	}
}
