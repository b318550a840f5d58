package unflushed_test

import (
	"net/http"
	"testing"
	"time"

	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
	"blobtail/reading/unflushed/live"
)

// A reader with a token for only some of the services that match gets their records. It learns
// which these are, and that unflushed records of others may be missing.
func TestNarrowedIsIncomplete(t *testing.T) {
	scene(t, 2, func(t *testing.T, c *company, s *screen) {
		c.guard = func(r *http.Request) (live.Reader, error) {
			return live.Reader{All: r.Header.Get("Authorization") == "Bearer peer", Globs: []string{"web", "a-*"}}, nil
		}
		all := c.running()
		hidden := append(c.all[0].send(line{service: "web-2"}), c.all[1].send(line{service: "web-2"})...)
		time.Sleep(time.Second)
		const narrowed = "the token may read only web,a-* of web*: records of other services that are in no blob yet may be missing"
		q := blobs.Query{Services: []string{"web*"}, Range: blobs.Always()}
		reader := c.reader(c.via("i0"), withoutRights)
		names, g := c.read(reader, q)
		if len(names) != len(all) || g.Live {
			t.Errorf("read are %v, all have answered: %v", names, g.Live)
		}
		says(t, problemsOf(g), 1, narrowed)
		c.reads(reader, all) // the named service is read completely
		peer := c.reader(func(o *unflushed.Options) { o.Token, o.PlainHTTP = "peer", true })
		if names, g := c.read(peer, q); len(names) != len(all)+len(hidden) || !g.Live || len(g.Report.Problems) > 0 {
			t.Errorf("a token for all reads %v, %q", names, problemsOf(g))
		}
	})
}

// A token for all services is not for those of the system, which listings ask for too.
func TestNarrowedToOrdinary(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, s *screen) {
		c.guard = func(*http.Request) (live.Reader, error) { return live.Reader{Globs: []string{"*"}}, nil }
		c.running()
		q := blobs.Query{Services: []string{"*", "_*"}, Range: blobs.Always()}
		_, g := c.read(c.reader(c.via("i0"), withoutRights), q)
		says(t, problemsOf(g), 1, "no service of the system such as _rejected", "--read '*,_*'")
	})
}
