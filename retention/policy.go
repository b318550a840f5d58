package retention

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"blobtail/catalog/horizon"
	"blobtail/record"
)

// Keep is an age that no log reaches.
const Keep time.Duration = math.MaxInt64

// minAge is the smallest age allowed.
const minAge = 24 * time.Hour

// Policy sets the age at which the logs of each service expire.
type Policy struct {
	Default time.Duration // of services that no rule names; 0: not set, so nothing is deleted
	Rules   []Rule        // the first that matches counts
	Tail    time.Duration // of the tail's tables; 0: they stay
}

// Rule is the age of the services that a name or glob matches, as in
// [record.MatchService].
type Rule struct {
	Service string
	Age     time.Duration
}

// Age returns the age at which the logs of a service expire.
func (p Policy) Age(service string) time.Duration {
	for _, r := range p.Rules {
		if record.MatchService(r.Service, service) {
			return r.Age
		}
	}
	return p.Default
}

// check refuses an invalid policy. The caller may have checked it already, but no
// other check protects the logs from a mistake.
func (p Policy) check() error {
	if p.Default == 0 {
		return refusef("no age is set for all services, so nothing is deleted; set retention.default in the configuration, to 30d or to keep")
	}
	ages := []time.Duration{p.Default, cmp.Or(p.Tail, Keep)}
	for _, r := range p.Rules {
		if !record.ValidPattern(r.Service) {
			return refusef("rule %q: not a glob", r.Service)
		}
		ages = append(ages, r.Age)
	}
	for _, age := range ages {
		if age < minAge {
			return refusef("the age %v is too short; want at least %v", age, minAge)
		}
	}
	return nil
}

// text is the canonical form of a policy, for its hash.
func (p Policy) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "policy 1\ndefault %s\ntail %s\n", ageText(p.Default), ageText(p.Tail))
	for _, r := range p.Rules {
		fmt.Fprintf(&b, "%q %s\n", r.Service, ageText(r.Age))
	}
	return b.String()
}

func ageText(age time.Duration) string {
	if age == Keep {
		return "keep"
	}
	return age.String()
}

// firstKept is the first day that is not past an age: a day expires only as a whole.
func firstKept(at time.Time, age time.Duration) horizon.Day { return horizon.DayOf(at.Add(-age)) }
