package main

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"blobtail/internal/access"
	"blobtail/internal/bill"
	"blobtail/internal/config"
	"blobtail/internal/units"
	"blobtail/record"
	"blobtail/record/ack"
)

// levels are the levels of acknowledgement that the settings and the tokens ask for.
type levels struct {
	least    ack.Level            // of every request
	services map[string]ack.Level // by their names and globs
	tokens   []*access.Token
}

func newLevels(c config.Config) (l *levels, err error) {
	l = &levels{least: c.Ingest.Ack, services: c.Ingest.Acks}
	if c.Access.Tokens != "" {
		l.tokens, err = access.Read(c.Access.Tokens)
	}
	return l, err
}

// of is the strictest level of some services.
func (l *levels) of(services []string) ack.Level {
	level := l.least
	for p, asked := range l.services {
		if asked > level && slices.ContainsFunc(services, func(s string) bool { return record.MatchService(p, s) }) {
			level = asked
		}
	}
	return level
}

// asks reports whether the settings or a token ask for a level.
func (l *levels) asks(level ack.Level) bool {
	return l.least == level || slices.Contains(slices.Collect(maps.Values(l.services)), level) ||
		slices.ContainsFunc(l.tokens, func(t *access.Token) bool { return t.Ack == level })
}

// unanswered warns of a level for which nobody waits, at the door without answers.
func (l *levels) unanswered(c config.Syslog) (notes []string) {
	level, why := l.least, "ingest.ack"
	for _, p := range slices.Sorted(maps.Keys(l.services)) {
		if asked := l.services[p]; asked > level && mayTake(c, p) {
			level, why = asked, "ingest.acks for "+p
		}
	}
	if c.Listen == "" || level == ack.Disk {
		return nil
	}
	return append(notes, fmt.Sprintf("syslog at %s has no answers, so nobody waits for the level %v (%s): "+
		"what it took may be lost with the disk of the log; send what must not be lost over HTTP",
		c.Listen, level, why))
}

// mayTake reports whether a service of a pattern may come as syslog.
func mayTake(c config.Syslog, pattern string) bool {
	isGlob := func(p string) bool { return strings.ContainsAny(p, `*?[\`) }
	return c.Service == "" && len(c.Services) == 0 || c.Service != "" && record.MatchService(pattern, c.Service) ||
		slices.ContainsFunc(c.Services, func(p string) bool {
			return record.MatchService(pattern, p) || record.MatchService(p, pattern) || isGlob(p) && isGlob(pattern)
		})
}

// costs says what the levels cost a day, by the services of the store.
func (l *levels) costs(c config.Config, store iter.Seq2[string, error]) (notes []string, err error) {
	prices, err := bill.Load("")
	if err != nil {
		return nil, err
	}
	const day = 24 * time.Hour
	cost := func(puts int) string {
		return fmt.Sprintf("%s a day, %.2f %s", units.Count(puts, "PUT"), prices.Requests(puts, 0), prices.Currency)
	}
	shipped, each := int(day/time.Duration(c.Ship.Every)), int(day/time.Duration(c.Flush.StoredEvery))
	if l.asks(ack.Shipped) {
		notes = append(notes, fmt.Sprintf("shipped takes up to %s, at each ingester for all services together: "+
			"one each %v while records come (ship.every)", cost(shipped), c.Ship.Every))
	}
	if !l.asks(ack.Stored) {
		return notes, nil
	}
	services, err := l.stored(store)
	note := fmt.Sprintf("stored takes up to %s, at each ingester for each service: one each %v while records come (flush.stored-every)",
		cost(each), c.Flush.StoredEvery)
	if services > 1 {
		note += fmt.Sprintf("; for the %s that have it, up to %s", units.Count(services, "service"), cost(services*each))
	}
	if services*each > shipped {
		note += fmt.Sprintf("; shipped would be up to %s for all, and a longer flush.stored-every is cheaper too", cost(shipped))
	}
	return append(notes, note), err
}

// stored counts the services whose requests always wait until they are stored: those that the store has,
// and those that the settings name.
func (l *levels) stored(store iter.Seq2[string, error]) (int, error) {
	names := map[string]bool{}
	for p, asked := range l.services {
		if asked == ack.Stored && record.ValidService(p) {
			names[p] = true
		}
	}
	for name, err := range store {
		if err != nil {
			return len(names), err
		}
		if record.ValidService(name) && (l.of([]string{name}) == ack.Stored ||
			slices.ContainsFunc(l.tokens, func(t *access.Token) bool { return t.Ack == ack.Stored && t.MayWrite(name) })) {
			names[name] = true
		}
	}
	return len(names), nil
}
