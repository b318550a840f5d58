package unflushed_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"blobtail/internal/lease"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
	"blobtail/reading/unflushed/live"
	"blobtail/storage"
)

// via makes a reader ask the one ingester at this URL.
func (c *company) via(host string) func(*unflushed.Options) {
	return func(o *unflushed.Options) {
		client, err := live.NewClient("http://"+host, live.ClientOptions{HTTP: c.Wire.Client()})
		if err != nil {
			c.t.Fatal(err)
		}
		o.Live, o.Announced = client, nil
	}
}

// withoutRights is a reader that may read blobs and no tables.
func withoutRights(o *unflushed.Options) {
	o.Tail = nil
	o.Ingesters = func(context.Context) ([]lease.Ingester, time.Time, error) {
		return nil, time.Now(), fmt.Errorf("list the ingesters: %w", storage.ErrUnauthorized)
	}
}

// reads reads all of web, and checks the records and the problems. A read without
// problems is complete.
func (c *company) reads(r *unflushed.Reader, want []*sentRecord, problems ...string) *unflushed.Gathered {
	c.t.Helper()
	names, g := c.read(r, always("web"))
	if want := namesOf(want); !slices.Equal(names, want) {
		c.t.Errorf("read are %v, want %v", names, want)
	}
	c.tells(g, problems...)
	return g
}

// tells checks that each of the texts is reported, and no other.
func (c *company) tells(g *unflushed.Gathered, problems ...string) {
	c.t.Helper()
	told := problemsOf(g)
	for _, p := range problems {
		says(c.t, told, len(problems), p)
	}
	if len(problems) == 0 && len(told) > 0 {
		c.t.Errorf("told is %q", told)
	}
	if g.Live && len(problems) > 0 {
		c.t.Error("all have answered, it says")
	}
}

// problemsOf are the texts of the problems.
func problemsOf(g *unflushed.Gathered) (texts []string) {
	for _, p := range g.Report.Problems {
		texts = append(texts, p.Error())
	}
	return texts
}

// gather completes a query, without reading blobs.
func (c *company) gather(r *unflushed.Reader, q blobs.Query) *unflushed.Gathered {
	c.t.Helper()
	g, err := r.Gather(c.t.Context(), q, unflushed.Auto)
	if err != nil {
		c.t.Fatal(err)
	}
	g.Close()
	return g
}

// storeRow stores a row by hand.
func (c *company) storeRow(key string, props map[string]any) {
	c.t.Helper()
	at := c.Now().UTC().Format("2006-01-02T15:04:05.000000000Z")
	row := map[string]any{"format": int64(1), "process": "01234567", "store": "", "storeid": storeID, "state": "holding", "host": "by-hand", "started": at, "at": at}
	for name, v := range props {
		row[name] = v
	}
	if err := c.Store.Upsert(c.t.Context(), lease.Table, lease.Partition, []storage.Row{{Key: key, Props: row}}); err != nil {
		c.t.Fatal(err)
	}
}
