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
		*f = append(*f, forms.Rule{Services: []string{fmt.Sprint(pair.Key)}, Form: fmt.Sprint(pair.Value)})
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
		form, err := forms.Compile(r.Form)
		if err != nil {
			m = append(m, fmt.Errorf("%s.form: %w", key, err))
		}
		const leave = "leave it out: the ingester stores the fields of JSON and logfmt without a form"
		m.check(err != nil || !form.Stage || !r.Store, key+".store", r.Form, leave)
	}
	return m
}

// Cost tells what the stored fields of forms cost; "": none are stored.
func (f Forms) Cost() string {
	for _, r := range f {
		if r.Store {
			return fmt.Sprintf("the fields of %s are stored: an access log takes 2.2 times the bytes, and 1.7 times the CPU; "+
				"without store: true reads make them (COST.md#fields-of-a-form)", strings.Join(r.Services, ", "))
		}
	}
	return ""
}
