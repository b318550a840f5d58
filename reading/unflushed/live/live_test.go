package live_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/lease"
	"blobtail/reading/unflushed/live"
	"blobtail/record"
)

// Any ingester answers for all, in order, and sends each record once.
func TestMerge(t *testing.T) {
	b, c := newIngester(t, "bbbbbbbb"), newIngester(t, "cccccccc")
	a := newIngester(t, "aaaaaaaa", b.peer(), c.peer())
	random := rand.New(rand.NewPCG(1, 2))
	services := []string{"web", "web-2", "db", "_rejected"}
	var every []record.Entry
	for range 3000 {
		e := entry(random.IntN(50), byte(random.IntN(20)), uint32(random.IntN(3)), services[random.IntN(len(services))])
		for _, i := range []*ingester{a, b, c} {
			if random.IntN(2) == 0 {
				i.log.add(e)
				every = append(every, e)
			}
		}
	}
	for _, q := range []live.Query{all("web"), all("web*"), all("*"), all("_*"), all("nothing"), all("[a-d]?"),
		{Service: "*", From: start + 10e9, To: start + 20e9}} {
		want := slices.DeleteFunc(merged(every), func(e record.Entry) bool {
			return !q.Match(service(e)) || e.Time < q.From || e.Time >= q.To
		})
		got, answer, err := read(t, a.url, q)
		if err != io.EOF {
			t.Errorf("%s: %v", q.Service, err)
		}
		same(t, got, want)
		if p := answer.Positions(); len(p) != 3 || p["bbbbbbbb"] != uint64(len(b.log.entries)) || answer.Self != selfOf("aaaaaaaa")() {
			t.Errorf("positions %v of %+v", p, answer.Self)
		}
	}
	// Each of the peers answers for itself alone when it has no peers.
	got, _, err := read(t, b.url, all("*"))
	if err != io.EOF || len(got) == 0 {
		t.Errorf("%d records, %v", len(got), err)
	}
}

// The log of an ingester has the reason why another one does not answer it, once for each change.
func TestMissingIsLogged(t *testing.T) {
	status := http.StatusUnauthorized
	refuses := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "a token is needed", status) }))
	var log bytes.Buffer
	a := newIngesterWith(t, "aaaaaaaa", live.Options{
		Log:   zerolog.New(&log),
		Peers: roll([]lease.Ingester{peer(lease.Ingester{ID: "bbbbbbbb", Host: "b", Address: refuses})}, nil),
	})
	for _, status = range []int{http.StatusUnauthorized, http.StatusUnauthorized, http.StatusForbidden} {
		if _, _, err := read(t, a.url, all("web")); err == io.EOF {
			t.Error("the answer is whole")
		}
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], `"ingester":"bbbbbbbb"`) || !strings.Contains(lines[0], "401") || !strings.Contains(lines[1], "403") {
		t.Errorf("%q", lines)
	}
}

// A glob matches a system service only if it begins with an underscore.
func TestMatch(t *testing.T) {
	for _, c := range []struct {
		glob, service string
		want          bool
	}{
		{"*", "web", true}, {"*", "_rejected", false}, {"?rejected", "_rejected", false}, {"_*", "_rejected", true},
		{"_rejected", "_rejected", true}, {"web", "web2", false}, {"web-[0-9]", "web-3", true},
		{"web[a,b],auth", "web,", true},
		{"web[a,b],auth", "weba", true},
		{"web[a,b],auth", "auth", true},
		{"web[a,b],auth", "web", false},
		{"web,a*", "auth", true},
	} {
		if q := all(c.glob); q.Match(c.service) != c.want {
			t.Errorf("%s matches %s: %v", c.glob, c.service, !c.want)
		}
	}
}

// The newest records of all ingesters are sent.
func TestNewest(t *testing.T) {
	b, c := newIngester(t, "bbbbbbbb"), newIngester(t, "cccccccc")
	a := newIngester(t, "aaaaaaaa", b.peer(), c.peer())
	var every []record.Entry
	for n := range 300 {
		e := entry(n, 1, uint32(n), "web")
		every = append(every, e)
		[]*ingester{a, b, c}[n%3].log.add(e)
		[]*ingester{a, b, c}[n/7%3].log.add(e)
	}
	for _, n := range []int{1, 7, 100, 299, 300, 1000, live.MaxNewest} {
		q := all("web")
		q.Newest = n
		got, _, err := read(t, a.url, q)
		if err != io.EOF {
			t.Error(err)
		}
		same(t, got, every[max(0, len(every)-n):])
	}
	q := all("web")
	q.Newest = 7
	if _, _, err := read(t, a.url, q); err != io.EOF || b.log.lastAsked().Newest != 7 || a.log.lastAsked().Newest != 7 {
		t.Error("the logs are not asked for the newest only")
	}
}

// If the newest records take more memory than the limit, some older ones are sent too,
// and none is missing.
func TestNewestHuge(t *testing.T) {
	a := newIngester(t, "aaaaaaaa")
	b := newIngester(t, "bbbbbbbb", a.peer())
	for n := range 90 {
		e := entry(n, 1, uint32(n), "web")
		head, _, _ := strings.Cut(string(e.Line), `"}`)
		e.Line = []byte(head + strings.Repeat("x", 1<<20) + "\"}\n")
		[]*ingester{a, b}[n%2].log.add(e)
	}
	q := all("web")
	q.Newest = 80
	answer, err := client(t, b.url).Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Close()
	first, count := int64(0), 0
	for {
		e, err := answer.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if count == 0 {
			first = e.Time
		}
		count++
	}
	if count < 80 || first > start+10e9 {
		t.Errorf("%d records from %v on", count, time.Duration(first-start))
	}
}

// A follower gets the records appended since, from each ingester behind its position
// there.
func TestFollow(t *testing.T) {
	b := newIngester(t, "bbbbbbbb")
	var peers []lease.Ingester
	a := newIngesterWith(t, "aaaaaaaa", live.Options{Peers: func(_ context.Context, fresh bool) (live.Roll, error) {
		if fresh {
			t.Error("a poll looks the others up afresh")
		}
		return live.Roll{Now: listed, Peers: peers, Listed: time.Now()}, nil
	}})
	peers = []lease.Ingester{b.peer()}
	a.log.add(entry(1, 1, 0, "web"))
	b.log.add(entry(2, 2, 0, "web"), entry(3, 2, 1, "web"))
	q := all("web")
	q.Follow, q.Now = true, true
	b.log.behind = true // it need not remember anything before its position
	got, answer, err := read(t, a.url, q)
	if want := (live.Positions{"aaaaaaaa": 1, "bbbbbbbb": 2}); err != io.EOF || len(got) != 0 || !reflect.DeepEqual(answer.Positions(), want) || len(answer.Behind) > 0 {
		t.Fatalf("at the start: %v, %v, behind %v, %v", got, answer.Positions(), answer.Behind, err)
	}
	b.log.behind = false
	if a.log.lastAsked().Match("web") || b.log.lastAsked().Match("web") {
		t.Error("the logs are asked for more than positions")
	}
	// A late one, an old one, and an ingester that is new.
	c := newIngester(t, "cccccccc")
	peers = append(peers, c.peer())
	late, old, other := entry(0, 1, 1, "web"), entry(4, 2, 2, "web"), entry(2, 3, 0, "web")
	a.log.add(late)
	b.log.add(old)
	c.log.add(other)
	q.Now, q.After = false, answer.Positions()
	got, answer, err = read(t, a.url, q)
	if err != io.EOF {
		t.Fatal(err)
	}
	same(t, got, []record.Entry{late, other, old})
	// Nothing is new.
	q.After = answer.Positions()
	c.log.behind = true
	got, answer, err = read(t, a.url, q)
	if err != io.EOF || len(got) != 0 || !reflect.DeepEqual(answer.Positions(), q.After) || !slices.Equal(answer.Behind, []string{"cccccccc"}) {
		t.Errorf("%v, %v, behind %v, %v", got, answer.Positions(), answer.Behind, err)
	}
}

// A follower asks again for missing records. It keeps the position of an ingester that
// does not answer, and all positions when the answer is cut. It does not ask again for
// damaged records.
func TestFollowPositionsStay(t *testing.T) {
	lies := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers(w.Header(), "bbbbbbbb")
		w.Header().Set("Blobtail-Positions", "bbbbbbbb.ff")
		io.WriteString(w, "no end\n")
	})
	damaged := newIngester(t, "dddddddd")
	damaged.log.add(entry(1, 4, 0, "web"))
	damaged.log.damage = errors.New("rotten")
	a := newIngester(t, "aaaaaaaa", peer(lease.Ingester{ID: "bbbbbbbb", Address: serve(t, lies)}), peer(lease.Ingester{ID: "cccccccc"}), damaged.peer())
	a.log.add(entry(1, 1, 0, "web"))
	q := all("web")
	q.Follow, q.After = true, live.Positions{"bbbbbbbb": 5, "cccccccc": 6}
	_, answer, err := read(t, a.url, q)
	var lacks *live.IncompleteError
	if !errors.As(err, &lacks) || lacks.Asked != 3 || lacks.Answered != 0 || len(lacks.Missing) != 3 || !lacks.Missing[2].Damaged || lacks.Missing[1].Damaged {
		t.Fatal(err)
	}
	if want := (live.Positions{"aaaaaaaa": 1, "bbbbbbbb": 5, "cccccccc": 6, "dddddddd": 1}); !reflect.DeepEqual(answer.Positions(), want) {
		t.Errorf("positions %v", answer.Positions())
	}
	delete(q.After, "bbbbbbbb") // asked for all of it, so again for all
	if _, answer, _ = read(t, a.url, q); answer.Positions()["bbbbbbbb"] != 0 {
		t.Errorf("positions %v", answer.Positions())
	}
	var cut *live.CutError
	if _, answer, err = read(t, serve(t, lies), q); !errors.As(err, &cut) || !reflect.DeepEqual(answer.Positions(), q.After) {
		t.Errorf("%v, positions %v", err, answer.Positions())
	}
}

// Once an answer came to its end, its positions stay, also if its caller ends before it
// asks for them: the caller has the records.
func TestFollowPositionsAtTheEnd(t *testing.T) {
	a := newIngester(t, "aaaaaaaa")
	a.log.add(entry(1, 1, 0, "web"))
	q := all("web")
	q.Follow, q.After = true, live.Positions{"aaaaaaaa": 0}
	ctx, leave := context.WithCancel(t.Context())
	answer, err := client(t, a.url).Ask(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := rest(answer); len(got) != 1 || err != io.EOF {
		t.Fatalf("%v, %v", got, err)
	}
	answer.Close()
	leave()
	if p := answer.Positions(); p["aaaaaaaa"] != 1 {
		t.Errorf("positions %v", p)
	}
}

// Damage of the own log is reported when all the rest has been sent.
func TestDamage(t *testing.T) {
	b := newIngester(t, "bbbbbbbb")
	a := newIngester(t, "aaaaaaaa", b.peer(), peer(lease.Ingester{ID: "cccccccc"}))
	a.log.add(entry(1, 1, 0, "web"))
	b.log.add(entry(2, 2, 0, "web"))
	a.log.damage = errors.New("3 runs cannot\nbe read")
	got, answer, err := read(t, a.url, all("web"))
	same(t, got, []record.Entry{entry(1, 1, 0, "web"), entry(2, 2, 0, "web")})
	var lacks *live.IncompleteError
	if !errors.As(err, &lacks) || lacks.Damage != "3 runs cannot be read" || len(lacks.Missing) != 1 {
		t.Errorf("%v", err)
	}
	if answer.Positions()["aaaaaaaa"] != 1 {
		t.Errorf("positions %v", answer.Positions())
	}
}

// An ingester that may hold records counts as missing if it does not answer. That holds
// for any question, and however long it has been silent. An ingester without records is
// asked, but does not count as missing.
func TestSilent(t *testing.T) {
	alive := newIngester(t, "bbbbbbbb")
	alive.log.add(entry(1, 1, 0, "web"))
	old := time.Unix(0, start)
	idle := func(p lease.Ingester) lease.Ingester {
		p = peer(p)
		p.State = lease.Idle
		return p
	}
	other := func(p lease.Ingester) lease.Ingester {
		p.Process = "01234567"
		return p
	}
	for _, c := range []struct {
		name     string
		peer     lease.Ingester
		q        live.Query
		answered int
		missing  string
	}{
		{"only its announcements fail", peer(lease.Ingester{ID: "bbbbbbbb", Address: alive.url, At: silent, Oldest: old}), all("web"), 1, ""},
		{"the same, and it says of no record", peer(lease.Ingester{ID: "bbbbbbbb", Address: alive.url, At: silent}), all("web"), 1, ""},
		{"gone", peer(lease.Ingester{ID: "bbbbbbbb", Host: "logs b", At: silent, Oldest: old}), all("web"), 0,
			"it has been silent for over a minute and may hold records since 2026-11-20T15:00:00Z that are in no blob: start it again on its log, or, if that is lost, give it up with ingest forget bbbbbbbb ("},
		{"gone, before what is asked for ends", peer(lease.Ingester{ID: "bbbbbbbb", At: silent, Oldest: old}), live.Query{Service: "web", To: start + 1}, 0, "silent"},
		{"gone, after that", peer(lease.Ingester{ID: "bbbbbbbb", At: silent, Oldest: old}), live.Query{Service: "web", To: start}, 0, "silent"},
		{"gone, and it says of no record", peer(lease.Ingester{ID: "bbbbbbbb", At: silent}), all("web"), 0, "it has been silent for over a minute and may hold records that are in no blob"},
		{"idle, and answers", idle(lease.Ingester{ID: "bbbbbbbb", Address: alive.url}), all("web"), 1, ""},
		{"idle, and is gone", idle(lease.Ingester{ID: "bbbbbbbb"}), all("web"), -1, ""},
		{"another process", other(alive.peer()), all("web"), 0, "another start of ingester bbbbbbbb answers than the one in its row"},
		{"another process, idle", other(idle(lease.Ingester{ID: "bbbbbbbb", Address: alive.url})), all("web"), 1, ""},
		{"no address", peer(lease.Ingester{ID: "bbbbbbbb"}), all("web"), 0, "it announces no address; set --advertise"},
		{"ourselves", peer(lease.Ingester{ID: "aaaaaaaa"}), all("web"), -1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newIngester(t, "aaaaaaaa", c.peer)
			got, _, err := read(t, a.url, c.q)
			switch {
			case c.missing != "":
				if m := incomplete(t, err, 1, 0); !strings.Contains(m.Reason, c.missing) || m.ID != "bbbbbbbb" || strings.ContainsRune(m.Host, ' ') {
					t.Errorf("%+v", m)
				}
			case err != io.EOF || len(got) != max(0, c.answered):
				t.Errorf("%d records, %v", len(got), err)
			}
		})
	}
}

// If the list of ingesters is not known, the answer is incomplete. The known ones are
// asked.
func TestUnknownPeers(t *testing.T) {
	b := newIngester(t, "bbbbbbbb")
	b.log.add(entry(1, 1, 0, "web"))
	a := newIngesterWith(t, "aaaaaaaa", live.Options{Peers: func(_ context.Context, fresh bool) (live.Roll, error) {
		if !fresh {
			t.Error("a read makes do with an old list")
		}
		return live.Roll{Now: listed, Peers: []lease.Ingester{b.peer()}, Listed: time.Now().Add(-time.Hour)}, errors.New("the store is away")
	}})
	got, _, err := read(t, a.url, all("web"))
	if m := incomplete(t, err, 2, 1); len(got) != 1 || m.ID != "-" || !strings.Contains(m.Reason, "the store is away") {
		t.Errorf("%d records, %+v", len(got), m)
	}
}

// The newest records of a single log are sent as they come. So the answers to many
// readers at once are not held in memory.
func TestNewestAlone(t *testing.T) {
	in := newIngester(t, "aaaaaaaa")
	in.log.pause = make(chan struct{})
	for i := range 3 {
		e := entry(i, 1, uint32(i), "web")
		e.Line = bytes.Replace(e.Line, []byte(`"msg":"`), []byte(`"msg":"`+strings.Repeat("x", 1<<20)), 1)
		in.log.add(e)
	}
	q := all("web")
	q.Newest = 2
	a, err := client(t, in.url).Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if e, err := a.Next(); err != nil || e.ID.Index != 1 {
		t.Fatalf("%v, %v", e.ID, err)
	}
	close(in.log.pause) // the last one is not there before
	if got, err := rest(a); err != io.EOF || len(got) != 1 {
		t.Errorf("%d more, %v", len(got), err)
	}
}
