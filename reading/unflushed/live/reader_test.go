package live_test

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"blobtail/internal/door"
	"blobtail/internal/lease"
	"blobtail/reading/unflushed/live"
	"blobtail/record"
)

// guard knows readers by their token: the globs that they may read.
func guard(r *http.Request) (live.Reader, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case !ok:
		return live.Reader{}, door.Refuse(http.StatusUnauthorized, "who are you?")
	case token == "nothing":
		return live.Reader{}, nil
	case token == "peer":
		return live.Reader{All: true}, nil
	}
	return live.Reader{Globs: strings.Fields(token)}, nil
}

// deaf does not know the rights of the reader behind an asking ingester.
func deaf(r *http.Request) (live.Reader, error) {
	r.Header.Del("Blobtail-Readable")
	return guard(r)
}

func peersOf(all ...*ingester) (list []lease.Ingester) {
	for _, i := range all {
		list = append(list, i.peer())
	}
	return list
}

// A reader gets the records that it may read, from all ingesters, and no others. The
// newest are those that it may read.
func TestReaders(t *testing.T) {
	b := newIngesterWith(t, "bbbbbbbb", live.Options{Guard: guard})
	c := newIngesterWith(t, "cccccccc", live.Options{Guard: deaf})
	a := newIngesterWith(t, "aaaaaaaa", live.Options{Guard: guard, Token: "peer", Peers: roll(peersOf(b, c), nil)})
	var every []record.Entry
	for n := range 90 {
		e := entry(n, byte(n), 1, []string{"web-1", "db", "_rejected", "web"}[n%4])
		[]*ingester{a, b, c}[n%3].log.add(e)
		every = append(every, e)
	}
	for name, x := range map[string]struct {
		token, ask string
		newest     int
		want       string // services
		status     int
		narrowed   string
	}{
		"no token":              {"", "web", 0, "", 401, ""},
		"a peer":                {"peer", "*,_*", 0, "web-1 db _rejected web", 0, ""},
		"its service":           {"web", "web", 0, "web", 0, ""},
		"its services":          {"web web-*", "*", 0, "web-1 web", 0, "web,web-*"},
		"its newest":            {"web web-*", "*", 5, "web-1 web", 0, "web,web-*"},
		"another's":             {"web", "db", 0, "", 403, ""},
		"one of two":            {"web", "web,db", 0, "", 403, ""},
		"a glob of another's":   {"web", "d*", 0, "", 0, "web"},
		"system services":       {"*", "*,_*", 0, "web-1 db web", 0, "*"},
		"a part of its glob":    {"web-*", "web-?,web-1*", 0, "web-1", 0, ""},
		"more than its glob":    {"web-*", "we*", 0, "web-1", 0, "web-*"},
		"all but the system's":  {"*", "w*,db,[_r]*", 0, "web-1 db web", 0, ""},
		"nothing at all":        {"nothing", "*", 0, "", 403, ""},
		"a system service":      {"*", "_rejected", 0, "", 403, ""},
		"system services, told": {"_*", "_*", 0, "_rejected", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			asker, err := live.NewClient(a.url, live.ClientOptions{Token: x.token})
			if err != nil {
				t.Fatal(err)
			}
			defer asker.Close()
			q := all(x.ask)
			q.Newest = x.newest
			answer, err := asker.Ask(t.Context(), q)
			if x.status != 0 {
				if no, ok := errors.AsType[*live.NoAnswerError](err); !ok || no.Status != x.status {
					t.Error(err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Close()
			got, err := rest(answer)
			if err != io.EOF || answer.Narrowed != x.narrowed {
				t.Errorf("narrowed to %q, %v", answer.Narrowed, err)
			}
			want := slices.DeleteFunc(slices.Clone(every), func(e record.Entry) bool {
				return !slices.Contains(strings.Fields(x.want), service(e))
			})
			if x.newest > 0 {
				want = want[len(want)-x.newest:]
			}
			same(t, got, want)
		})
	}
}

// An answer is narrowed too if the token of the asking ingester may not read all.
func TestNarrowedPeer(t *testing.T) {
	b := newIngesterWith(t, "bbbbbbbb", live.Options{Guard: guard})
	a := newIngesterWith(t, "aaaaaaaa", live.Options{Token: "web", Peers: roll(peersOf(b), nil)})
	for ask, want := range map[string]string{"*": "web", "web": ""} {
		if _, answer, err := read(t, a.url, all(ask)); err != io.EOF || answer.Narrowed != want {
			t.Errorf("%s: narrowed to %q, %v", ask, answer.Narrowed, err)
		}
	}
}

// An ingester that others do not know says so to the reader.
func TestPeerWithoutToken(t *testing.T) {
	b := newIngesterWith(t, "bbbbbbbb", live.Options{Guard: guard})
	a := newIngesterWith(t, "aaaaaaaa", live.Options{Guard: guard, Peers: roll(peersOf(b), nil)})
	asker, err := live.NewClient(a.url, live.ClientOptions{Token: "web"})
	if err != nil {
		t.Fatal(err)
	}
	defer asker.Close()
	answer, err := asker.Ask(t.Context(), all("web"))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Close()
	_, err = rest(answer)
	if missing := incomplete(t, err, 1, 0); !strings.Contains(missing.Reason, "does not answer (401): who are you?") {
		t.Error(missing)
	}
}
