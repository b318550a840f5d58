package unflushed_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"blobtail/internal/budget"
	"blobtail/reading/unflushed"
)

// ending ends a follower once the whole answer with a text has come, before anybody reads it.
type ending struct {
	under http.RoundTripper
	text  string
	end   context.CancelFunc
}

// RoundTrip implements [http.RoundTripper].
func (e *ending) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := e.under.RoundTrip(r)
	if err != nil || r.Method != http.MethodGet {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if bytes.Contains(body, []byte(e.text)) {
		e.end()
		time.Sleep(time.Millisecond) // its budget knows that
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, err
}

// A follower that ends while it reads an answer, as when its server stops, gives a cursor from which
// another one shows the records of that answer: a matcher lets none pass once the query is over.
func TestFollowEndsWithinAnswer(t *testing.T) {
	scene(t, 2, func(t *testing.T, c *company, s *screen) {
		c.running()
		over, end := context.WithCancel(context.Background())
		ctx, b := budget.NewPool(budget.Limits{}).Begin(over)
		defer b.End()
		wire := &ending{under: c.Wire, text: `"msg"`, end: end}
		r := c.reader(func(o *unflushed.Options) { o.Announced = &http.Client{Transport: wire} })
		ended := make(chan unflushed.Cursor)
		go func() {
			cursor, _ := r.Follow(ctx, s.options(always("web")))
			ended <- cursor
		}()
		time.Sleep(3 * time.Second)
		sent := namesOf(c.all[1].send(line{service: "web"}, line{service: "web"}))
		cursor := <-ended
		s2 := &screen{c: c}
		o := s2.options(always("web"))
		o.After = &cursor
		f := follow(c.reader(), o)
		time.Sleep(3 * time.Second)
		f.end(t)
		if shown := s.names(); len(shown) > 0 {
			t.Fatalf("the first one shows %v: the test is not of an answer that nobody has read", shown)
		}
		s2.shows(sent...)
	})
}
