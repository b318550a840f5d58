package main

import (
	"context"
	"errors"

	"blobtail/internal/config"
	"blobtail/internal/count"
	"blobtail/internal/rules"
	"blobtail/internal/tally"
	"blobtail/record"
	"blobtail/record/forms"
)

// accepter is each part on the way of a request from its source to the buffer.
type accepter interface {
	Accept(ctx context.Context, r *record.Request) (record.Receipt, error)
}

// handling is the configured handling of records, compiled.
type handling struct {
	counters *tally.Counters
	rules    *rules.Rules    // nil: there are none
	fields   *record.Mapping // nil: there is none
}

// compile compiles the counters, rules and fields of the configuration. An error names the key and
// the column of each mistake.
func compile(c config.Config) (h handling, err error) {
	counters := make([]tally.Counter, len(c.Counters))
	for i, counter := range c.Counters {
		counters[i] = tally.Counter(counter)
	}
	var badCounters, badRules error
	if len(counters) > 0 {
		h.counters, badCounters = tally.NewCounters(counters)
	}
	var all []rules.Rule // the forms are first: masks see their fields
	for _, f := range c.Forms {
		form, _ := forms.Compile(f.Form) // the configuration is valid
		for i := 0; i < len(f.Services) && f.Store; i++ {
			all = append(all, rules.Rule{Name: f.Services[i], Service: f.Services[i], Form: form})
		}
	}
	for _, r := range c.Rules {
		one := rules.Rule{Name: r.Name, Service: r.Service, Where: r.Where, Drop: r.Drop, Sample: r.Sample}
		for _, m := range r.Mask {
			one.Mask = append(one.Mask, rules.Mask(m))
		}
		all = append(all, one)
	}
	if len(all) > 0 {
		h.rules, badRules = rules.Compile(all)
	}
	if h.fields = record.NewMapping(c.Fields.Naming()); c.TimeNear == "off" {
		h.fields = h.fields.WithFar(true)
	}
	return h, errors.Join(badCounters, badRules)
}

// filtered puts the rules before a part.
func (h handling) filtered(next accepter, reg *count.Registry) accepter {
	if h.rules == nil {
		return next
	}
	return rules.NewFilter(h.rules, next, reg)
}

// counted counts the records of the sources before the rules: a sample must not change a rate.
func (h handling) counted(next accepter, reg *count.Registry) *tally.Tally {
	return tally.New(tally.Options{Accept: h.filtered(next, reg), Counters: h.counters, Metrics: reg})
}
