package main

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"blobtail/internal/cli"
	"blobtail/internal/spelling"
	"blobtail/reading"
	"blobtail/reading/survey"
	"blobtail/record"
)

// sampled is how many records tell the fields of services after a search found nothing.
const sampled = 200

// pair is a text that names a field and its value, in one of the forms that people write.
func pair() *regexp.Regexp {
	return regexp.MustCompile(`^"?([A-Za-z_][A-Za-z0-9_.-]*)"?[=:] *"?([^"]*)"?$`)
}

// meant tells, after a text filter found nothing, the level, the service or the field that
// was probably meant by the text, with its command; "" if the text looks like none of them.
func (a *app) meant(ctx context.Context, ask *reading.Ask) string {
	if ask.Not || ask.LogQL != "" || ctx.Err() != nil {
		return ""
	}
	for _, text := range slices.Concat(ask.Texts, ask.Words, ask.Exprs) {
		key, value := "", text
		if m := pair().FindStringSubmatch(text); m != nil {
			key, value = m[1], m[2]
		}
		level := record.ParseLevel([]byte(value))
		switch {
		case level != record.Other && (key == "" || key == "level"):
			return "for the level: " + a.instead(text, "--level", level.String())
		case key == "service" || key == "" && record.ValidService(record.FoldService(text)):
			if hint := a.meantService(ctx, value); hint != "" {
				return hint
			}
		case key != "":
			if hint := a.meantField(ctx, ask, text, key, value); hint != "" {
				return hint
			}
		}
	}
	return ""
}

// meantService tells the service of a name, if there is one.
func (a *app) meantService(ctx context.Context, name string) string {
	if name == "" {
		return ""
	}
	if near := spelling.Near(record.FoldService(name), a.services(ctx)); near != "" {
		return "for the service: logquery " + cli.ShellWords(near)
	}
	return ""
}

// meantField tells the field of a name, if some of the newest records have it or one with a
// name like it.
func (a *app) meantField(ctx context.Context, ask *reading.Ask, text, key, value string) string {
	s := survey.New(survey.Options{Fields: mostFields})
	sample := reading.Ask{Services: ask.Services, Range: ask.Range, Parse: ask.Parse, Live: reading.Off, Limit: sampled}
	if _, err := a.source.Records(ctx, sample, s.Add); err != nil {
		return "" // it is a help only
	}
	var names []string
	for _, f := range s.Fields() {
		names = append(names, f.Name)
	}
	name := spelling.Near(key, names)
	switch {
	case name == "":
		return ""
	case name == key:
		words := append([]string{key}, ask.Services...)
		if ask.Parse != "" {
			words = append(words, "--parse", ask.Parse)
		}
		return "for the values of " + key + ": logquery top " + cli.ShellWords(words...)
	}
	literal := strconv.Quote(value)
	if _, err := strconv.ParseFloat(value, 64); err == nil {
		literal = value
	}
	return "for the field " + name + ": " + a.instead(text, "--where", name+" == "+literal)
}

// instead is the command line with another filter in place of a text filter.
func (a *app) instead(text, flag, value string) string {
	args := slices.Clone(a.env.args)
	if at := slices.Index(args, text); at > 0 && strings.HasPrefix(args[at-1], "-") {
		args[at-1], args[at] = flag, value
	} else if at := slices.IndexFunc(args, func(arg string) bool { return len(arg) > 2 && arg[0] == '-' && strings.HasSuffix(arg, text) }); at >= 0 {
		args = slices.Replace(args, at, at+1, flag, value)
	} else {
		return flag + " " + cli.ShellWords(value)
	}
	return "logquery " + cli.ShellWords(args...)
}
