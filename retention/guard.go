package retention

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"blobtail/catalog"
	"blobtail/internal/units"
	"blobtail/storage"
)

// An applied policy is an object _policy/<yyyymmddThhmmssZ>-<hash>, made by the
// conditional create, with the policy as its text. The greatest name is the policy
// that was applied last.
const (
	policyPrefix = "_policy/"
	policyTime   = "20060102T150405Z"
)

// A policy that was not applied before needs a confirmation if a service has left a rule that kept
// it for longer, or if it hides more than this.
const (
	freeDays    = 2 // of any service
	freePercent = 20
	// ages from here on are as good as keep: there is time to find a mistake
	asKept = 50 * 365 * 24 * time.Hour
)

// policyRecord is the policy that was applied last; zero is none.
type policyRecord struct {
	at   time.Time
	hash string
	key  string // of its object
}

func (j *Job) recordedPolicy(ctx context.Context) (last policyRecord, err error) {
	for b, err := range j.blobs.List(ctx, policyPrefix, "") {
		if err != nil {
			return last, fmt.Errorf("list the policies that were applied: %w", err)
		}
		stamp, hash, _ := strings.Cut(strings.TrimPrefix(b.Key, policyPrefix), "-")
		if at, err := time.Parse(policyTime, stamp); err == nil && len(hash) == 2*sha256.Size {
			last = policyRecord{at, hash, b.Key}
		}
	}
	return last, nil
}

// recordPolicy records the policy as applied, under a name greater than all others.
func (j *Job) recordPolicy(ctx context.Context, p *Plan) error {
	if p.recorded.hash == p.policy {
		return nil
	}
	at := p.now.UTC().Truncate(time.Second)
	if !at.After(p.recorded.at) {
		at = p.recorded.at.Add(time.Second)
	}
	key := policyPrefix + at.Format(policyTime) + "-" + p.policy
	err := j.blobs.Create(ctx, key, []byte(j.o.Policy.text()), storage.Attrs{ContentType: "text/plain"})
	if err != nil && !errors.Is(err, storage.ErrExist) {
		return fmt.Errorf("record the policy: %w", err)
	}
	return nil
}

// guard returns the reasons that a plan has to be confirmed, or "".
func (j *Job) guard(ctx context.Context, p *Plan) (why string, err error) {
	var all []string
	if p.Doubt != "" && (p.Total(Hide).Blobs > 0 || len(p.Tables) > 0) {
		all = append(all, p.Doubt)
	}
	if why, err = j.policyGuard(ctx, p); why != "" {
		all = append(all, why)
	}
	return strings.Join(all, "; and "), err
}

// policyGuard returns the reason that a policy has to be confirmed, or "". A backlog under
// the policy that was applied last needs no confirmation.
func (j *Job) policyGuard(ctx context.Context, p *Plan) (why string, err error) {
	if p.recorded.hash == p.policy {
		return "", nil
	}
	changed := "no policy was applied to this store before"
	if p.recorded.hash != "" {
		changed = "the policy is not the one applied last, on " + p.recorded.at.Format(time.DateOnly)
	}
	if left, err := j.left(ctx, p); err != nil || left != "" {
		return changed + ", and " + left, err
	}
	days := map[string]int{}
	most := ""
	for _, d := range p.Days {
		if d.Step == Hide {
			if days[d.Service]++; days[d.Service] > days[most] {
				most = d.Service
			}
		}
	}
	switch {
	case most == "":
		return "", nil
	case days[most] > freeDays:
		return fmt.Sprintf("%s, and it hides %s of %s", changed, units.Count(days[most], "day"), most), nil
	}
	var all atomic.Int64 // bytes of all services
	err = each(len(p.services), func(i int) error {
		for e, err := range catalog.Blobs(ctx, j.blobs, p.services[i].name, catalog.Range{}) {
			if err != nil {
				return err
			}
			if e.Blob() {
				all.Add(e.Size)
			}
		}
		return nil
	})
	if hides := p.Total(Hide).Bytes; err == nil && hides*100 > all.Load()*freePercent {
		why = fmt.Sprintf("%s, and it hides %s of %s stored", changed, units.Thousands(hides), units.Count(all.Load(), "byte"))
	}
	return why, err
}

// left names the services that have left their rule of the policy that was applied last, and that no
// other keeps for as long; "": there are none. A rule that has another age now was changed with
// intent. One whose pattern has changed may be for other services by mistake.
func (j *Job) left(ctx context.Context, p *Plan) (text string, err error) {
	if p.recorded.hash == "" {
		return "", nil
	}
	applied, err := catalog.Read(ctx, j.blobs, p.recorded.key, 0, -1)
	if err != nil {
		return "", err
	}
	last, err := parsePolicy(string(applied))
	if err != nil {
		return "", nil // the policy of another version is not compared
	}
	var names []string
	var was, is Rule
	for _, s := range p.services {
		a, b := last.rule(s.name), j.o.Policy.rule(s.name)
		if s.stored && a.Service != "" && a.Service != b.Service && b.Age < min(a.Age, asKept) {
			if len(names) == 0 {
				was, is = a, b
			}
			names = append(names, s.name)
		}
	}
	switch {
	case len(names) == 0:
		return "", nil
	case len(names) > 1:
		names[0] += fmt.Sprintf(" (and %d more)", len(names)-1)
	}
	return fmt.Sprintf("%s was under %s, and is under %s now", names[0], was.words(), is.words()), nil
}

// ConfirmError says that a run needs a confirmation and did not get it, or that it got one
// of another plan.
type ConfirmError struct {
	Why   string // "": this plan needs no confirmation
	Hash  string // the hash that confirms it
	Given string // the hash that the caller gave; "": none
}

func (e *ConfirmError) Error() string {
	if e.Given != "" && e.Why == "" {
		return fmt.Sprintf("%s is not the hash of this plan, which is %s and needs no confirmation", e.Given, e.Hash)
	}
	if e.Given != "" {
		return fmt.Sprintf("%s is not the hash of this plan, which is %s; %s", e.Given, e.Hash, e.Why)
	}
	return e.Why
}

// Confirmed checks the caller's confirmation against a hash. A confirmation of another plan
// is a mistake also if none is needed: the caller saw a plan that is not carried out.
func Confirmed(why, hash, given string) error {
	given = strings.TrimSpace(given)
	if why == "" && given == "" || strings.EqualFold(given, hash) {
		return nil
	}
	return &ConfirmError{Why: why, Hash: hash, Given: given}
}
