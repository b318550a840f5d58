package config

import (
	"fmt"
	"slices"
	"strings"

	"blobtail/record/meaning"
)

// Fields are names of fields for the time, the level, the message and the service of records. In
// the file they are one section for all services, or a list of sections. For each part the first
// counts that is for the service of a record and has names of the part.
type Fields []FieldNames

// FieldNames are the names for some services. They are tried in their order, before the known ones.
type FieldNames struct {
	Services []string `yaml:"services,omitempty"` // names and globs; none: all
	Time     []string `yaml:"time,omitempty"`
	Level    []string `yaml:"level,omitempty"`
	Message  []string `yaml:"message,omitempty"`
	Service  []string `yaml:"service,omitempty"`
}

// UnmarshalYAML reads a list, or one section.
func (f *Fields) UnmarshalYAML(unmarshal func(any) error) error {
	var list []FieldNames
	err := unmarshal(&list)
	if err == nil {
		*f = list
		return nil
	}
	var one FieldNames
	if unmarshal(&one) != nil {
		return err
	}
	*f = Fields{one}
	return nil
}

// Naming returns them for a parser of records.
func (f Fields) Naming() (all []meaning.Naming) {
	for _, n := range f {
		all = append(all, meaning.Naming{
			Services: n.Services, Names: meaning.Names{Time: n.Time, Level: n.Level, Message: n.Message, Service: n.Service},
		})
	}
	return all
}

// parts are the names by part.
func (n *FieldNames) parts() [4][]string { return [...][]string{n.Time, n.Level, n.Message, n.Service} }

// validate reports mistakes, and one in [Config.TimeNear].
func (f Fields) validate(m *mistakes, near string) {
	m.check(near == "on" || near == "off", "time-near", near, "want on or off")
	for i := range f {
		n, key := &f[i], "fields"
		if len(f) > 1 {
			key = fmt.Sprintf("fields[%d]", i)
		}
		for _, pattern := range n.Services {
			m.checkServices(key+".services", pattern)
		}
		m.check(len(n.Services) == 0 || len(n.Service) == 0, key+".service", plain(strings.Join(n.Service, ", ")),
			"want no services beside it: a record's service is found before its other names are chosen")
		all := 0
		for j, part := range [...]string{"time", "level", "message", "service"} {
			names := n.parts()[j]
			all += len(names)
			for at, name := range names {
				m.check(strings.TrimSpace(name) == name && name != "", key+"."+part, name, "want names of fields, without spaces around them")
				m.check(len(name) <= meaning.LongestName, key+"."+part, name, fmt.Sprintf("want names of at most %d bytes", meaning.LongestName))
				again := slices.ContainsFunc(names[:at], func(earlier string) bool { return strings.EqualFold(earlier, name) })
				m.check(!again, key+"."+part, name, "want each name once; their case does not matter")
			}
		}
		m.check(all > 0, key, plain("nothing"), "want names for time, level, message or service, for example time: [when]")
		m.check(all <= meaning.MostNames, key, all, fmt.Sprintf("want at most %d names", meaning.MostNames))
		if first := f.hides(i); first >= 0 {
			m.check(false, key, plain(strings.Join(slices.Concat(n.Time, n.Level, n.Message, n.Service), ", ")),
				fmt.Sprintf("the names never count, because fields[%d] is before them and has the same parts for the same services; put them before that", first))
		}
	}
}

// hides returns the first section before a section that leaves it without effect, or -1.
func (f Fields) hides(i int) int {
	return slices.IndexFunc(f[:i], func(earlier FieldNames) bool {
		for j, names := range f[i].parts() {
			if len(names) > 0 && len(earlier.parts()[j]) == 0 {
				return false
			}
		}
		within := func(pattern string) bool {
			return slices.ContainsFunc(earlier.Services, func(wide string) bool { return covers(wide, pattern) })
		}
		return len(earlier.Services) == 0 || len(f[i].Services) > 0 && !slices.ContainsFunc(f[i].Services, func(p string) bool { return !within(p) })
	})
}
