package main

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"blobtail/internal/cli"
	"blobtail/internal/spelling"
	"blobtail/reading"
	"blobtail/reading/search"
	"blobtail/record"
)

// pair is a text that names a field and its value, in one of the forms that people write.
func pair() *regexp.Regexp {
	return regexp.MustCompile(`^"?([A-Za-z_][A-Za-z0-9_.-]*)"?[=:] *"?([^"]*)"?$`)
}

// meant tells, after a text filter found nothing, the level, the service or the field that
// was probably meant by the text, with its command; "" if the text looks like none of them.
func (a *app) meant(ctx context.Context, ask *reading.Ask) string {
	switch {
	case ask.Not || ctx.Err() != nil:
		return ""
	case ask.LogQL != "":
		if query := logqlMeant(ask.LogQL); query != "" {
			return "the name of a service is in the label service, and other labels are fields: --logql " + cli.ShellWords(query)
		}
		return ""
	}
	for _, text := range slices.Concat(ask.Texts, ask.Words, ask.Exprs) {
		key, value := "", text
		if m := pair().FindStringSubmatch(text); m != nil {
			key, value = m[1], m[2]
		}
		if level := record.ParseLevel([]byte(value)); level != record.Other && (key == "" || key == "level") {
			return "for the level: " + a.instead(text, "--level", level.String())
		}
		if key == "service" || key == "" && record.ValidService(record.FoldService(text)) {
			if near := spelling.Near(record.FoldService(value), a.services(ctx)); near != "" {
				return "for the service: logquery " + cli.ShellWords(near)
			}
		}
		if line := search.Meant(key + "=" + value); line != "" {
			return "for the field: " + a.instead(text, "--search", line)
		}
	}
	return ""
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
