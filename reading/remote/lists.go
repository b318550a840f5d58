package remote

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"blobtail/internal/lease"
	"blobtail/reading"
	"blobtail/reading/form"
	"blobtail/record"
)

// listed are the parameters of a question that routes of lists know.
func listed(a *reading.Ask, more ...string) url.Values {
	all, p := a.Values(), url.Values{}
	for _, key := range append([]string{"from", "to", "live"}, more...) {
		if values := all[key]; values != nil {
			p[key] = values
		}
	}
	return p
}

// Services implements [reading.Source].
func (c *Client) Services(ctx context.Context, a reading.Ask) (list []reading.Service, out *reading.Outcome, err error) {
	var f form.Services
	if err := c.object(ctx, "services", listed(&a), &f); err != nil {
		return nil, nil, err
	}
	for _, s := range f.Services {
		of := reading.Service{
			Name: s.Name, Blobs: s.Blobs, Records: s.Records, Bytes: s.Bytes, Stored: s.Stored, Unflushed: s.Unflushed, Estimated: s.Estimated,
			First: nanos(s.First), Last: nanos(s.Last),
		}
		for level, n := range s.Levels {
			of.Levels[record.ParseLevel([]byte(level))] += n
		}
		list = append(list, of)
	}
	out = c.outcome(&f.Outcome)
	out.Records = int64(len(list))
	return list, out, nil
}

// Names implements [reading.Source].
func (c *Client) Names(ctx context.Context) (names []string, err error) {
	list, _, err := c.Services(ctx, reading.Ask{Range: reading.Always()})
	for i := range list {
		names = append(names, list[i].Name)
	}
	return names, err
}

// Days implements [reading.Source].
func (c *Client) Days(ctx context.Context, a reading.Ask) (all []reading.Listed, out *reading.Outcome, err error) {
	var f form.Days
	if err := c.object(ctx, "days", listed(&a, "service"), &f); err != nil {
		return nil, nil, failure(a.Services, err)
	}
	for _, d := range f.Days {
		all = append(all, reading.Listed{Service: d.Service, Total: reading.Total{
			Name: d.Day, Blobs: d.Blobs, Records: d.Records, Raw: d.Bytes, Stored: d.Stored, Unflushed: d.Unflushed, First: nanos(d.First), Last: nanos(d.Last),
		}})
	}
	return all, c.outcome(&f.Outcome), nil
}

// Blobs implements [reading.Source]. The entry of the unflushed records is of all services and days.
func (c *Client) Blobs(ctx context.Context, a reading.Ask) (all []reading.Listed, out *reading.Outcome, err error) {
	var f form.Blobs
	if err := c.object(ctx, "blobs", listed(&a, "service"), &f); err != nil {
		return nil, nil, failure(a.Services, err)
	}
	for _, b := range f.Blobs {
		all = append(all, reading.Listed{Service: b.Service, Total: reading.Total{
			Name: b.Name, Blobs: 1, Records: b.Records, Raw: b.Bytes, Stored: b.Stored, First: nanos(b.First), Last: nanos(b.Last),
		}})
	}
	if f.Unflushed > 0 {
		all = append(all, reading.Listed{Total: reading.Total{Unflushed: f.Unflushed}})
	}
	return all, c.outcome(&f.Outcome), nil
}

// Ingesters implements [reading.Source].
func (c *Client) Ingesters(ctx context.Context) (rows []lease.Ingester, now time.Time, unread, err error) {
	var f form.Ingesters
	if err := c.object(ctx, "ingesters", nil, &f); err != nil {
		return nil, time.Time{}, nil, err
	}
	at := func(text string) time.Time {
		if text == "" {
			return time.Time{}
		}
		return time.Unix(0, nanos(text)).UTC()
	}
	for _, i := range f.Ingesters {
		rows = append(rows, lease.Ingester{
			ID: i.ID, State: lease.State(i.Holds), Lane: i.Lane, Host: i.Host, Address: i.Address, Version: i.Version, StoreID: i.StoreID,
			Started: at(i.Started), At: at(i.At), Oldest: at(i.Oldest), Floor: at(i.Floor), Lost: lease.Loss{Since: at(i.LostSince), Until: at(i.LostUntil)},
		})
	}
	if !f.Complete {
		unread = errors.New(strings.Join(f.Problems, "; "))
	}
	return rows, at(f.Time), unread, nil
}
