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
	"blobtail/record/meaning"
)

// accepter is each part on the way of a request from its source to the buffer.
type accepter interface {
	Accept(ctx context.Context, r *record.Request) (record.Receipt, error)
}

// handling is the configured handling of records, compiled.
type handling struct {
	counters *tally.Counters
	rules    *rules.Rules     // nil: there are none
	forms    *rules.Rules     // those that are stored; nil: there are none
	fields   *meaning.Mapping // nil: there is none
}

// compile compiles the counters, rules and fields of the configuration. An error names the key and
// the column of each mistake.
func compile(c config.Config) (h handling, err error) {
	counters := make([]tally.Counter, len(c.Counters))
	for i, counter := range c.Counters {
		counters[i] = tally.Counter(counter)
	}
	var badCounters, badRules, badForms error
	if len(counters) > 0 {
		h.counters, badCounters = tally.NewCounters(counters)
	}
	if c.Forms.Cost() != "" {
		var all []rules.Rule
		for _, f := range c.Forms {
			form, _ := forms.Compile(f.Form) // the configuration is valid
			for _, glob := range f.Services {
				all = append(all, rules.Rule{Name: glob, Service: glob, Form: form, Read: !f.Store})
			}
		}
		h.forms, badForms = rules.Compile(all)
	}
	all := make([]rules.Rule, len(c.Rules))
	for i, r := range c.Rules {
		all[i] = rules.Rule{Name: r.Name, Service: r.Service, Where: r.Where, Drop: r.Drop, Sample: r.Sample}
		for _, m := range r.Mask {
			all[i].Mask = append(all[i].Mask, rules.Mask(m))
		}
	}
	if len(all) > 0 {
		h.rules, badRules = rules.Compile(all)
	}
	if h.fields = meaning.NewMapping(c.Fields.Naming()); c.TimeNear == "off" {
		h.fields = h.fields.WithFar(true)
	}
	return h, errors.Join(badCounters, badForms, badRules)
}

// filtered puts the forms and the rules before a part: rules see the fields of forms.
func (h handling) filtered(next accepter, reg *count.Registry) accepter {
	return filter(h.forms, filter(h.rules, next, reg), reg)
}

func filter(of *rules.Rules, next accepter, reg *count.Registry) accepter {
	if of == nil {
		return next
	}
	return rules.NewFilter(of, next, reg)
}

// counted counts the records of the sources, with the fields of forms, before the rules: a sample must
// not change a rate. The forms are before counts.
func (h handling) counted(next accepter, reg *count.Registry) (accept accepter, counts *tally.Tally) {
	counts = tally.New(tally.Options{Accept: filter(h.rules, next, reg), Counters: h.counters, Metrics: reg})
	return filter(h.forms, counts, reg), counts
}
