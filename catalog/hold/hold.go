// Package hold knows the holds of a store: days of services that nobody may hide or delete.
//
// A hold is an object _hold/<name> with its services and days in the metadata, so that one LIST returns
// all of them. [Create] makes one by the conditional create. It is in force once its maker has looked
// for days that were hidden before it or are being erased (package retention). Whoever hides, erases or
// deletes a day calls [List] directly before and asks [Holds.Of].
package hold

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"blobtail/catalog/horizon"
	"blobtail/record"
	"blobtail/storage"
)

const (
	prefix = "_hold/"
	form   = "1"
)

// MostServices is the greatest length of the services of a hold, with commas between them.
const MostServices = 800

// Days of a hold without a first or a last one.
const (
	Oldest horizon.Day = math.MinInt32
	Newest horizon.Day = math.MaxInt32
)

// A Hold keeps the days From to To of some services, both included.
type Hold struct {
	Name     string   // see [ValidName]
	Services []string // names and globs, see [record.MatchService]
	From, To horizon.Day
	Reason   string    // of [Read] alone
	Made     time.Time // by the store's clock, to the second
	id       string    // of its object: a name can be used again
}

// Key is the key of its object.
func (h *Hold) Key() string { return prefix + h.Name }

// ValidName reports whether a hold may have a name: lower-case letters, digits, dots, _ and -, at most 63.
func ValidName(name string) bool {
	return regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`).MatchString(name)
}

// Holds reports whether the hold keeps a day of a service.
func (h *Hold) Holds(service string, day horizon.Day) bool {
	return h.From <= day && day <= h.To && h.Of(service)
}

// Of reports whether the hold is for a service.
func (h *Hold) Of(service string) bool {
	return slices.ContainsFunc(h.Services, func(glob string) bool { return record.MatchService(glob, service) })
}

// Holds are all holds of a store.
type Holds []Hold

// Of returns the first hold that keeps a day of a service; nil: there is none.
func (h Holds) Of(service string, day horizon.Day) *Hold {
	for i := range h {
		if h[i].Holds(service, day) {
			return &h[i]
		}
	}
	return nil
}

// First is the first day of a service that is held; [Newest]: there is none.
func (h Holds) First(service string) horizon.Day {
	first := Newest
	for i := range h {
		if h[i].Of(service) {
			first = min(first, h[i].From)
		}
	}
	return first
}

// List returns all holds, by one LIST. A hold that this version cannot read is an error: nobody knows
// what it keeps. A store that is missing has none.
func List(ctx context.Context, store horizon.Lister) (all Holds, err error) {
	for b, err := range store.List(ctx, prefix, "") {
		if errors.Is(err, storage.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("list the holds: %w", err)
		}
		h, err := parse(&b)
		if err != nil {
			return nil, err
		}
		all = append(all, h)
	}
	return all, nil
}

func parse(b *storage.Blob) (Hold, error) {
	h := Hold{Name: strings.TrimPrefix(b.Key, prefix), From: Oldest, To: Newest, Made: b.Created}
	h.Services = strings.Split(b.Metadata["services"], ",")
	var err error
	for key, day := range map[string]*horizon.Day{"from": &h.From, "to": &h.To} {
		if text := b.Metadata[key]; text != "" && err == nil {
			*day, err = horizon.ParseDay(text)
		}
	}
	if err != nil || b.Metadata["form"] != form || slices.Contains(h.Services, "") {
		return h, fmt.Errorf("%s: this version cannot read it, so nothing may be hidden or deleted; a newer one can release it", b.Key)
	}
	return h, nil
}

// Create makes the object of a hold. The error is [storage.ErrExist] if another one has its name.
func Create(ctx context.Context, store storage.BlobStore, h *Hold) error {
	h.id = rand.Text()
	meta := map[string]string{"form": form, "id": h.id, "services": strings.Join(h.Services, ",")}
	if h.From != Oldest {
		meta["from"] = h.From.String()
	}
	if h.To != Newest {
		meta["to"] = h.To.String()
	}
	return store.Create(ctx, h.Key(), []byte(h.Reason), storage.Attrs{ContentType: "text/plain; charset=utf-8", Metadata: meta})
}

// Undo deletes the object that Create has made, if it has the name still.
func Undo(ctx context.Context, store storage.BlobStore, h *Hold) error {
	b, err := store.Stat(ctx, h.Key())
	if errors.Is(err, storage.ErrNotExist) || err == nil && b.Metadata["id"] != h.id {
		return nil
	}
	if err != nil {
		return err
	}
	return store.Delete(ctx, b)
}

// Read reads the reason of a listed hold.
func Read(ctx context.Context, store storage.BlobStore, h *Hold) error {
	body, err := store.Get(ctx, h.Key(), 0, -1)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(body)
	h.Reason = string(text)
	return errors.Join(err, body.Close())
}
