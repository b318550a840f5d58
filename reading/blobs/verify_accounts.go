package blobs

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"blobtail/catalog"
	"blobtail/catalog/closed"
	"blobtail/catalog/horizon"
	"blobtail/storage"
)

// accounts checks the accounts of all days in the range: each part against the one before, and the
// blobs against the highest. A read judges by names and batches; this goes by all that the account
// has of a blob.
func (v *verifying) accounts(ctx context.Context) error {
	rng := v.plan.rng.periods()
	for _, service := range v.plan.services {
		for l, err := range v.plan.view.Listings(ctx, service, v.plan.account(service).lists) {
			if err != nil {
				return err
			}
			if len(l.Parts) == 0 || !whole(rng, l.Day) {
				continue
			}
			found, err := v.day(ctx, l)
			if err == nil && len(found) > 0 {
				err = v.plan.view.Look(ctx)
			}
			if err != nil {
				return err
			}
			if v.plan.view.Hides(service, l.Day) {
				continue // dropped since it was listed
			}
			for _, f := range found {
				v.report(f)
			}
		}
	}
	return v.rooted(ctx, v.plan.services, rng)
}

// whole reports whether a range has all of a day.
func whole(rng catalog.Range, day horizon.Day) bool {
	r := catalog.DayRange(day)
	return !r.From.Before(rng.From) && (rng.To.IsZero() || !r.To.After(rng.To))
}

// day checks a day.
func (v *verifying) day(ctx context.Context, d *catalog.Listing) (found []Finding, err error) {
	find := func(key string, err error) { found = append(found, Finding{Key: key, Err: err}) }
	var last *closed.Part
	for i, key := range d.Parts {
		if n := (closed.Name{Service: d.Service, Day: d.Day, Number: i + 1}); key != n.String() {
			find(n.String(), errors.New("this part of the account is missing"))
			break
		}
		part, err := catalog.ReadPart(ctx, v.store, key)
		if err := fatal(ctx, err); err != nil {
			return nil, err
		}
		switch {
		case errors.Is(err, closed.ErrUnread):
			find(key, closed.ErrUnread)
		case err != nil:
			find(key, err)
		case i == 0 && part.Before != (closed.Hash{}), last != nil && part.Before != last.Sum:
			find(key, errors.New("it does not follow from the part before: one of both was changed"))
		}
		if last = part; part != nil {
			v.parts[part.Sum] = true
		}
	}
	if last == nil {
		return found, nil
	}
	for _, l := range last.Lost {
		v.lost[l.Key] = true
	}
	listed := map[string]*catalog.Entry{}
	for i := range d.Blobs {
		listed[d.Blobs[i].Key] = &d.Blobs[i]
	}
	for _, b := range slices.Concat(last.Blobs, last.Replaced) {
		e := listed[b.Key]
		if e == nil || e.State != catalog.Sound || e.Meta.Batch != b.Batch {
			continue // it is missing, which the plan has reported, or damaged
		}
		is := closed.BlobOf(e.Key, e.Size, &e.Meta)
		if sum, ok := v.hashed[b.Key]; ok && is.SHA256 == (closed.Hash{}) {
			is.SHA256 = sum
		}
		if !is.Is(b) {
			find(b.Key, fmt.Errorf("it was written anew: the account has %d bytes with the SHA-256 %x, and it has %d with %x",
				b.Size, b.SHA256, is.Size, is.SHA256))
		}
	}
	return found, nil
}

// roots reads the chain of roots, and checks it. The first root of a day may follow from any of the days
// before: a run of the day before may end at the same time.
func (v *verifying) roots(ctx context.Context, key ed25519.PublicKey) error {
	var last *closed.Root
	known := map[string]closed.Hash{"": {}} // by name
	for root, err := range catalog.Roots(ctx, v.store, nil) {
		if err := fatal(ctx, err); err != nil {
			return err
		}
		if root == nil {
			v.report(Finding{Key: closed.RootPrefix, Err: err})
			continue
		}
		if err == nil && key != nil {
			err = root.Verify(key)
		}
		if err != nil {
			v.report(Finding{Key: root.Name, Err: err})
		}
		before, first := "", strings.HasSuffix(root.Name, closed.FirstRoot)
		if last != nil {
			before = last.Name
		}
		hash, ok := known[root.BeforeName]
		if root.Form > 0 && (!ok || root.Before != hash || root.BeforeName != before && (!first || root.BeforeName == "")) {
			v.report(Finding{Key: root.Name, Err: errors.New("it does not follow from the root before: " +
				"one of both was changed, or one between them is missing")})
		}
		v.named = append(v.named, root.Days)
		last, known[root.Name] = root, root.Sum
	}
	if key != nil && last == nil {
		v.report(Finding{Key: closed.RootPrefix, Err: errors.New("there is no root, so nothing is signed")})
	}
	v.out.Root = last
	return nil
}

// rooted checks that each part that any root names was listed, or is of a day that was dropped. Where
// a newer part was removed, the next run builds on the one before, and later roots name that.
func (v *verifying) rooted(ctx context.Context, services []string, rng catalog.Range) error {
	if len(v.named) == 0 {
		return nil
	}
	marks, err := horizon.Marks(ctx, v.store)
	if err != nil && !errors.Is(err, storage.ErrNotExist) {
		return err
	}
	hidden, names := horizon.Of(marks), map[string]string{}
	for _, service := range slices.Concat(services, slices.Collect(maps.Keys(hidden))) {
		names[closed.Alias(service)] = service
	}
	for _, parts := range v.named {
		for _, text := range slices.Sorted(maps.Keys(parts)) {
			day, err := horizon.ParseDay(text)
			if err != nil || !whole(rng, day) {
				continue
			}
			for alias, hash := range parts[text] {
				if service := names[alias]; !hidden.Hides(service, day) && !v.parts[hash] {
					v.parts[hash] = true // once
					v.report(v.unrooted(service, alias, day, hash))
				}
			}
		}
	}
	return nil
}

// unrooted is the finding that a part is missing that a root names.
func (v *verifying) unrooted(service, alias string, day horizon.Day, hash closed.Hash) Finding {
	if service == "" {
		return Finding{Key: v.out.Root.Name, Err: fmt.Errorf("a service had blobs on %s, and has none on any day: "+
			"the SHA-256 of its name begins with %s", day, alias)}
	}
	return Finding{Key: closed.PartPrefix(service, day) + "*",
		Err: fmt.Errorf("the part with the SHA-256 %x is missing, or was changed: blobs of the day may be missing with it", hash)}
}
