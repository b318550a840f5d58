package live_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"blobtail/reading/unflushed/live"
)

func blobOf(service string, n int) string {
	return fmt.Sprintf("%s/2026/11/20/1500/%06d.log", service, n)
}

// newestOf is a memory of the n-th blob of some services.
func newestOf(n int, services ...string) *live.Newest {
	all := &live.Newest{}
	for i, service := range services {
		all.Note(service, blobOf(service, 1), [16]byte{9}) // an earlier one
		all.Note(service, blobOf(service, n), [16]byte{byte(n), byte(i)})
	}
	return all
}

// stored are the blobs that an answer names, as text.
func stored(a *live.Answer) (all []string) {
	for _, s := range a.Stored() {
		all = append(all, fmt.Sprintf("%s.%s %d %x %s", s.Ingester, s.Process, s.Number, s.Batch[:2], s.Key))
	}
	slices.Sort(all)
	return all
}

// An answer names the newest blob of each service of the question, of the asked ingester and of the
// others, as far as the token may read.
func TestNewestBlobs(t *testing.T) {
	b := newIngesterWith(t, "bbbbbbbb", live.Options{Guard: guard, Newest: newestOf(7, "web", "db")})
	c := newIngesterWith(t, "cccccccc", live.Options{Guard: deaf, Newest: newestOf(8, "db", "web-1")})
	d := newIngesterWith(t, "dddddddd", live.Options{}) // it has stored none since its start
	a := newIngesterWith(t, "aaaaaaaa", live.Options{Guard: guard, Token: "peer", Newest: newestOf(6, "web", "_rejected"), Peers: roll(peersOf(b, c, d), nil)})
	a.log.add(entry(1, 1, 0, "web"))
	c.log.add(entry(2, 2, 0, "db"))
	line := func(id string, number int, batch, key string) string {
		return fmt.Sprintf("%s.%s %d %s %s", id, processOf(id), number, batch, key)
	}
	aWeb, aRejected := line("aaaaaaaa", 2, "0600", blobOf("web", 6)), line("aaaaaaaa", 4, "0601", blobOf("_rejected", 6))
	bWeb, bDB := line("bbbbbbbb", 2, "0700", blobOf("web", 7)), line("bbbbbbbb", 4, "0701", blobOf("db", 7))
	cDB, cWeb1 := line("cccccccc", 2, "0800", blobOf("db", 8)), line("cccccccc", 4, "0801", blobOf("web-1", 8))
	for _, x := range []struct {
		token, ask string
		want       []string
	}{
		{"peer", "web", []string{aWeb, bWeb}},
		{"peer", "db,none", []string{bDB, cDB}},
		{"peer", "*", []string{aWeb, bWeb, bDB, cDB, cWeb1}},
		{"peer", "web*,_*", []string{aWeb, aRejected, bWeb, cWeb1}},
		{"web", "*", []string{aWeb, bWeb}},
		{"web web-*", "*,_*", []string{aWeb, bWeb, cWeb1}},
		{"db", "db", []string{bDB, cDB}},
	} {
		asker, err := live.NewClient(a.url, live.ClientOptions{Token: x.token})
		if err != nil {
			t.Fatal(err)
		}
		defer asker.Close()
		for _, wanted := range []bool{true, false} {
			q := all(x.ask)
			q.Stored = wanted
			answer, err := asker.Ask(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Close()
			if _, err := rest(answer); err != io.EOF {
				t.Errorf("%s of %s ends with %v", x.token, x.ask, err)
			}
			want := slices.Sorted(slices.Values(x.want))
			if !wanted {
				want = nil
			}
			if got := stored(answer); !slices.Equal(got, want) {
				t.Errorf("%s of %s, wanted %v: %q, want %q", x.token, x.ask, wanted, got, want)
			}
		}
	}
}

// A follower, and a reader that does not ask for them, gets no names of blobs: readers of older
// versions know no such line.
func TestNewestBlobsForOthers(t *testing.T) {
	a := newIngesterWith(t, "aaaaaaaa", live.Options{Newest: newestOf(6, "web")})
	for query, header := range map[string]string{"": "", "?follow=1": "1"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.url+"/live/web"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		if header != "" {
			r.Header.Set("Blobtail-Stored", header)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(body) != "end 0 0 0\n" {
			t.Errorf("%q: %v %q", query, err, body)
		}
	}
}

// An answer with an invalid name of a blob is cut short there.
func TestInvalidNewestBlobs(t *testing.T) {
	good := "stored aaaaaaaa 5 " + strings.Repeat("0a", 16) + " " + blobOf("web", 1) + "\n"
	ask := func(text string, wanted bool) (*live.Answer, error) {
		q := all("web")
		q.Stored = wanted
		_, a, err := read(t, serve(t, script("aaaaaaaa", text+"end 0 0 0\n")), q)
		return a, err
	}
	if a, err := ask(good, true); err != io.EOF || len(a.Stored()) != 1 || a.Stored()[0].Number != 5 || a.Stored()[0].Process != processOf("aaaaaaaa") {
		t.Errorf("%v, %v", a.Stored(), err)
	}
	for name, text := range map[string]string{
		"another ingester": strings.Replace(good, "aaaaaaaa", "bbbbbbbb", 1),
		"another service":  strings.Replace(good, "web/", "db/", 1),
		"no service":       strings.Replace(good, "web/", "/", 1),
		"no number":        strings.Replace(good, " 5 ", " x ", 1),
		"a short batch":    strings.Replace(good, "0a0a", "0a", 1),
		"a long batch":     strings.Replace(good, "0a0a", "0a0a0a", 1),
		"no batch":         strings.Replace(good, "0a0a", "0axx", 1),
		"controls":         strings.Replace(good, "/1500/", "/\x1b[31m/", 1),
		"a long key":       strings.Replace(good, "/1500/", "/"+strings.Repeat("1", 600)+"/", 1),
		"nothing":          "stored\n",
	} {
		if a, err := ask(good+text, true); err == io.EOF || len(a.Stored()) != 1 {
			t.Errorf("%s: %v, %v", name, a.Stored(), err)
		}
	}
	if _, err := ask(good, false); err == io.EOF {
		t.Error("names of blobs come unasked")
	}
}

// The memory of blobs is bounded, and knows the last ones.
func TestNewestIsBounded(t *testing.T) {
	newest := &live.Newest{}
	var noting sync.WaitGroup
	const each = 40_000
	for n := range 2 {
		noting.Go(func() {
			for i := range each {
				service := fmt.Sprintf("s%d-%d", n, i)
				newest.Note(service, blobOf(service, 1), [16]byte{})
			}
		})
	}
	noting.Wait()
	newest.Note("last", blobOf("last", 3), [16]byte{})
	a := newIngesterWith(t, "aaaaaaaa", live.Options{Newest: newest})
	q := all("s0-0,s1-0,last")
	q.Stored = true
	if _, answer, err := read(t, a.url, q); err != io.EOF || len(answer.Stored()) != 1 || answer.Stored()[0].Number != 2*each+1 {
		t.Errorf("%v, %v", answer.Stored(), err)
	}
}
