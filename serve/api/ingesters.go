package api

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"time"

	"blobtail/internal/door"
	"blobtail/internal/lease"
	"blobtail/reading/form"
	"blobtail/storage"
)

// ingesters lists the ingesters of the store.
func (c *call) ingesters() error {
	rows, now, unread, err := c.store.Ingesters(c.r.Context())
	if errors.Is(err, errors.ErrUnsupported) {
		return door.Refuse(http.StatusNotFound, "this server knows no ingesters")
	}
	if err != nil && !errors.Is(err, storage.ErrNotExist) {
		return err
	}
	rows = slices.DeleteFunc(rows, func(i lease.Ingester) bool { return i.Forgotten(now) })
	answer := form.Ingesters{Ingesters: make([]form.Ingester, 0, len(rows)), Time: form.Stamp(now.UnixNano()), Complete: unread == nil, Problems: []string{}}
	if unread != nil {
		answer.Problems = append(answer.Problems, unread.Error())
	}
	for i := range rows {
		answer.Ingesters = append(answer.Ingesters, ingesterOf(&rows[i], now))
	}
	slices.SortStableFunc(answer.Ingesters, func(x, y form.Ingester) int {
		return cmp.Or(cmp.Compare(x.State, y.State), x.Lane-y.Lane) // by the letters: live, silent, stopped
	})
	return c.json(answer)
}

func ingesterOf(i *lease.Ingester, now time.Time) form.Ingester {
	out := form.Ingester{
		ID: i.ID, State: "silent", Lane: i.Lane, Host: i.Host, Address: i.Address, Version: i.Version,
		Started: instant(i.Started), At: instant(i.At), Oldest: instant(i.Oldest), Holds: string(i.State), StoreID: i.StoreID,
		LostSince: instant(i.Lost.Since), LostUntil: instant(i.Lost.Until), Floor: instant(i.Floor),
	}
	switch {
	case i.State == lease.Stopped:
		out.State = "stopped"
	case i.Live(now):
		out.State = "live"
	}
	if !i.Oldest.IsZero() {
		out.Unflushed = max(0, now.Sub(i.Oldest).Round(time.Millisecond).Seconds())
	}
	return out
}

// instant is [form.Stamp] of a time, "" for none.
func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return form.Stamp(t.UnixNano())
}
