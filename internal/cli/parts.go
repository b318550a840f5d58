package cli

import (
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Parts chooses groups of flags for a parser. A group is a pointer to a struct with kong's tags. A
// parser has the chosen ones if they stand in a field of type [kong.Plugins] with the tag embed, and
// the groups themselves with kong:"-".
//
// The time to make a parser grows with its flags, and a command line has few of them.
type Parts func(groups ...any) kong.Plugins

// AllParts chooses all groups, as help and explanations of mistakes need them.
func AllParts(groups ...any) kong.Plugins { return groups }

// PartsOf chooses the groups that a command line may set, that the environment sets, or that have
// defaults. So a parser of these reads that command line as one of all groups does, or reports an
// unknown flag.
func PartsOf(args []string) Parts {
	var names []string
	letters := ""
	for _, arg := range args {
		if long, ok := strings.CutPrefix(arg, "--"); ok {
			name, _, _ := strings.Cut(long, "=")
			names = append(names, undashed(name))
		} else if short, ok := strings.CutPrefix(arg, "-"); ok {
			letters += short // some may be of a value
		}
	}
	sets := func(field reflect.StructField) bool {
		tag := field.Tag
		for _, always := range []string{"default", "arg", "cmd", "required"} {
			if _, ok := tag.Lookup(always); ok {
				return true
			}
		}
		if short := tag.Get("short"); short != "" && strings.Contains(letters, short) {
			return true
		}
		name := tag.Get("name")
		if name == "" {
			name = field.Name
		}
		name = undashed(name)
		alias := func(given string) bool {
			return slices.ContainsFunc(strings.Split(tag.Get("aliases"), ","), func(alias string) bool { return undashed(alias) == given })
		}
		return slices.ContainsFunc(names, func(given string) bool { return given == name || given == "no"+name || alias(given) }) ||
			slices.ContainsFunc(strings.Split(tag.Get("env"), ","), func(variable string) bool { return os.Getenv(variable) != "" })
	}
	return func(groups ...any) kong.Plugins {
		return slices.DeleteFunc(groups, func(group any) bool { return !anyField(reflect.TypeOf(group).Elem(), sets) })
	}
}

// anyField reports whether a field of a struct, or of one that is embedded in it, is true for is.
func anyField(of reflect.Type, is func(reflect.StructField) bool) bool {
	for i := range of.NumField() {
		field := of.Field(i)
		if field.Anonymous && field.Type.Kind() == reflect.Struct {
			if anyField(field.Type, is) {
				return true
			}
		} else if is(field) {
			return true
		}
	}
	return false
}

// undashed makes the name of a flag and that of its field equal.
func undashed(name string) string { return strings.ToLower(strings.ReplaceAll(name, "-", "")) }
