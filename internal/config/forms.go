package config

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"

	"blobtail/record/forms"
)

// Forms are the forms of messages, by service: the first for a service counts. In the file they are a
// list, or names and globs with their forms.
type Forms []forms.Rule

// UnmarshalYAML reads a list, or a mapping.
func (f *Forms) UnmarshalYAML(unmarshal func(any) error) error {
	var pairs yaml.MapSlice
	if unmarshal(&pairs) != nil {
		return unmarshal((*[]forms.Rule)(f))
	}
	for _, pair := range pairs {
		form, _ := pair.Value.(string) // Check refuses another value
		*f = append(*f, forms.Rule{Services: []string{fmt.Sprint(pair.Key)}, Form: form})
	}
	return nil
}

// Check returns the mistakes.
func (f Forms) Check() (m mistakes) {
	for i, r := range f {
		key := fmt.Sprintf("forms[%d]", i)
		m.check(len(r.Services) > 0, key, plain(r.Form), `want services, for example services: ["nginx*"]`)
		for _, pattern := range r.Services {
			m.checkServices(key+".services", pattern)
		}
		const want = "want the name of a form or a pattern; a stored form is in a list: - {services: [web], form: combined, store: true}"
		if m.check(r.Form != "", key+".form", r.Form, want); r.Form == "" {
			continue
		}
		if _, err := forms.Compile(r.Form); err != nil {
			m = append(m, fmt.Errorf("%s.form: %w", key, err))
		}
		m.check(r.Form != "json" || !r.Store, key+".store", r.Form, "leave it out: the ingester stores the fields of JSON without a form")
	}
	return m
}

// Cost tells what the stored fields of forms cost; "": none are stored.
func (f Forms) Cost() string {
	for _, r := range f {
		if r.Store {
			return fmt.Sprintf("the fields of %s are stored: an access log takes 2.1 times the bytes, and 1.9 times the CPU; "+
				"without store: true reads make them (docs/measured/cost.md#fields-of-a-form)", strings.Join(r.Services, ", "))
		}
	}
	return ""
}

// FormNotes tell what stored fields cost, and which masks leave them as they are.
func (c Config) FormNotes() (notes []string) {
	cost := c.Forms.Cost()
	if cost == "" {
		return nil
	}
	notes = append(notes, cost)
	for i, r := range c.Rules {
		for j, m := range r.Mask {
			if m.Field == "msg" {
				notes = append(notes, fmt.Sprintf("rules[%d].mask[%d]: field: msg does not mask the fields that a form makes "+
					"of the message; name them too, or leave field out", i, j))
			}
		}
	}
	return notes
}
