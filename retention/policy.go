package retention

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
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

// words are the rule in a message; without a service it is the default.
func (r Rule) words() string {
	name, age := "the default", ageText(Keep)
	if r.Service != "" {
		name = "the rule " + strconv.Quote(r.Service)
	}
	if r.Age != Keep {
		age = fmt.Sprintf("%gd", r.Age.Hours()/24)
	}
	return name + " (" + age + ")"
}

// Age returns the age at which the logs of a service expire.
func (p Policy) Age(service string) time.Duration { return p.rule(service).Age }

// rule is the rule that counts for a service; that of the default has no service.
func (p Policy) rule(service string) Rule {
	for _, r := range p.Rules {
		if record.MatchService(r.Service, service) {
			return r
		}
	}
	return Rule{Age: p.Default}
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

// parsePolicy reads the text of a policy, but for the age of the tail's tables.
func parsePolicy(text string) (p Policy, err error) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) < 3 || lines[0] != "policy 1" {
		return p, fmt.Errorf("the text of the policy that was applied last is not of this version")
	}
	age := func(text string) time.Duration {
		if text == "keep" {
			return Keep
		}
		d, aerr := time.ParseDuration(text)
		err = cmp.Or(err, aerr)
		return d
	}
	p.Default = age(strings.TrimPrefix(lines[1], "default "))
	for _, line := range lines[3:] {
		service, qerr := strconv.QuotedPrefix(line)
		err = cmp.Or(err, qerr)
		r := Rule{Age: age(strings.TrimSpace(line[len(service):]))}
		r.Service, _ = strconv.Unquote(service)
		p.Rules = append(p.Rules, r)
	}
	return p, err
}

func ageText(age time.Duration) string {
	if age == Keep {
		return "keep"
	}
	return age.String()
}

// firstKept is the first day that is not past an age: a day expires only as a whole.
func firstKept(at time.Time, age time.Duration) horizon.Day { return horizon.DayOf(at.Add(-age)) }
