package main

import (
	"maps"
	"slices"

	"blobtail/internal/access"
	"blobtail/internal/config"
	"blobtail/internal/globset"
	"blobtail/record/ack"
)

// levels are the levels of acknowledgement that the settings and the tokens ask for.
type levels struct {
	least    ack.Level // of every request
	services *globset.Set
	each     []ack.Level // of the patterns of services
	tokens   []*access.Token
}

func newLevels(c config.Config) (*levels, error) {
	patterns := slices.Sorted(maps.Keys(c.Ingest.Acks))
	l := &levels{least: c.Ingest.Ack, services: globset.New(patterns)}
	for _, p := range patterns {
		l.each = append(l.each, c.Ingest.Acks[p])
	}
	if c.Access.Tokens == "" {
		return l, nil
	}
	var err error
	l.tokens, err = access.Read(c.Access.Tokens)
	return l, err
}

// of is the strictest level of some services.
func (l *levels) of(services []string) ack.Level {
	level := l.least
	for _, s := range services {
		for _, i := range l.services.Match(s) {
			level = max(level, l.each[i])
		}
	}
	return level
}

// ships reports whether anybody may ask for shipped.
func (l *levels) ships() bool {
	return l.least == ack.Shipped || slices.Contains(l.each, ack.Shipped) ||
		slices.ContainsFunc(l.tokens, func(t *access.Token) bool { return t.Ack == ack.Shipped })
}
