// Package rules drops, masks and samples records before an ingester writes them to its log,
// by rules of the configuration. Compile them with [Compile], and put a [Filter] between the
// sources and the rest of the ingester.
//
// # The effect of a rule
//
// A rule applies to the records of the services that its pattern matches, and that its
// expression selects, if it has one. The rules work in their order, and each sees a record
// as those before have left it. A record that a rule drops, or that a sample leaves out, is
// seen by none after. The sender is answered as if the record was kept.
//
//   - Drop leaves the record out.
//   - Sample keeps a share of the records. The choice is a function of the record's
//     identity, so a request that is sent again makes the same one, at any ingester. The
//     records of a request that has no identity are chosen by their lines: it would be kept
//     twice in any case.
//   - Mask replaces texts in the values of a record: in its message and its fields, nested
//     ones too. It changes neither the names of fields, nor the time, the service and a
//     level that is known.
//
// # Records that could not be read
//
// The service _rejected has the original bytes of invalid records, so masks apply there too,
// and in doubt rather than not: see [Filter.Accept]. Drop and sample apply to it only if
// their pattern begins with "_".
//
// # Identities
//
// The index of each record stays its place in the body. Masks change the bytes of records,
// and two records of one identity must have the same bytes. So the origin of a request
// depends on the definitions of the masks that its services have. A request that is sent
// again after a change of those masks is therefore stored twice, once with each.
package rules

import (
	"errors"
	"fmt"

	"github.com/zeebo/xxh3"

	"blobtail/internal/globset"
	"blobtail/internal/where"
	"blobtail/record"
	"blobtail/record/forms"
)

// Rule is one rule of the configuration. One of Drop, Sample and Mask is set.
type Rule struct {
	// Name is the label of the rule in metrics.
	Name string
	// Service is a name or a glob as those of [record.MatchService].
	Service string
	// Where is an expression as those of [where.Parse]. "": all records of the service.
	Where string
	Drop  bool
	// Sample is the share of records that are kept, between 0 and 1. 0: no sample.
	Sample float64
	Mask   []Mask
	// Form is that of the messages; nil: none. Of the forms for a service the first counts. Forms have a
	// filter of their own, before the one of the other rules.
	Form *forms.Form
	// Read says that reads make the fields of the form: nothing is stored.
	Read bool
}

// Actions are the values of the label action, by [Rule.action].
const (
	actionDrop   = "drop"
	actionSample = "sample"
	actionMask   = "mask"
)

func (r *Rule) action() string {
	switch {
	case r.Drop:
		return actionDrop
	case r.Sample > 0:
		return actionSample
	}
	return actionMask
}

const (
	// MostRules is how many rules there may be.
	MostRules = 64
	// MostMasks is how many masks all rules together may have.
	MostMasks = 63
)

// Rules are compiled rules. Any number of goroutines may use them.
type Rules struct {
	of    []rule
	set   *globset.Set
	forms bool // they are forms
}

// rule is a compiled [Rule].
type rule struct {
	name   string
	action string
	where  *where.Expr // nil: all records
	masks  []mask
	form   *forms.Form
	read   bool
	id     uint64 // of the definition of its masks
	seed   uint64 // of a sample
	kept   uint64 // of a sample, the records with a lower hash
	raw    bool   // its pattern matches the service _rejected
}

// kindsVersion is raised with each change of the texts that a kind matches: the same masks then
// have other results.
const kindsVersion = 1

// id is a hash of all that decides on the bytes of a record.
func (r *Rule) id() uint64 {
	text := fmt.Appendf(nil, "%d %q %q", kindsVersion, r.Service, r.Where)
	if r.Form != nil {
		text = fmt.Appendf(text, " form %q", r.Form.Text)
	}
	for _, m := range r.Mask {
		text = fmt.Appendf(text, " %q %q %q %q", m.Field, m.Kind, m.Pattern, m.With)
	}
	return xxh3.Hash(text)
}

// Compile compiles rules. An error names the key in the configuration, the rule, and the
// column, of each mistake in an expression or a pattern.
func Compile(all []Rule) (*Rules, error) {
	c := &Rules{of: make([]rule, len(all)), forms: len(all) > 0 && all[0].Form != nil}
	what := "rules"
	if c.forms {
		what = "forms"
	}
	if len(all) > MostRules {
		return nil, fmt.Errorf("%s: there are %d; want at most %d", what, len(all), MostRules)
	}
	var mistakes []error
	patterns, masks := make([]string, len(all)), 0
	for i := range all {
		patterns[i] = all[i].Service
		masks += len(all[i].Mask)
		mistakes = append(mistakes, c.of[i].compile(&all[i], i))
	}
	if masks > MostMasks {
		mistakes = append(mistakes, fmt.Errorf("rules: there are %d masks in all; want at most %d", masks, MostMasks))
	}
	c.set = globset.New(patterns)
	return c, errors.Join(mistakes...)
}

// compile compiles rule n.
func (c *rule) compile(r *Rule, n int) error {
	key := fmt.Sprintf("rules[%d]", n)
	c.name, c.action = r.Name, r.action()
	c.raw = record.MatchService(r.Service, record.RejectedService)
	c.form, c.read, c.id = r.Form, r.Read, r.id()
	c.seed = xxh3.HashString(r.Name)
	c.kept = uint64(r.Sample * (1 << 63) * 2)
	var mistakes []error
	if r.Where != "" {
		var err error
		if c.where, err = where.Parse(nil, r.Where, false); err != nil {
			mistakes = append(mistakes, fmt.Errorf("%s.where: %q: %w (rule %s)", key, r.Where, err, r.Name))
		}
	}
	for i, m := range r.Mask {
		compiled, err := compileMask(m)
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("%s.mask[%d]%w (rule %s)", key, i, err, r.Name))
		}
		compiled.rule = n
		c.masks = append(c.masks, compiled)
	}
	return errors.Join(mistakes...)
}
