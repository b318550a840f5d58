package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"blobtail/internal/cli"
)

type manCmd struct{}

func (manCmd) run(_ context.Context, a *app) (int, error) {
	_, err := a.out.Write(manual(a.model))
	return cli.OK, err
}

// exitCodes are those of package cli, for people.
var exitCodes = []string{
	"0\tThe records were printed, and none is missing.",
	"1\tThere are none.",
	"2\tThe command line or the configuration is wrong.",
	"3\tSome of the records could not be read; stderr says which.",
	"4\tThe store or the server refuses access.",
	"5\tThere is no store or server, or it cannot be reached.",
	"130\tIt was interrupted.",
}

// manual is the manual page, in the language of man(7), of the texts of --help.
func manual(app *kong.Application) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, ".TH %s 1 \"\" \"blobtail\" \"User Commands\"\n", strings.ToUpper(app.Name))
	fmt.Fprintf(&out, ".SH NAME\n%s \\- %s\n", app.Name, troff(app.Help))
	fmt.Fprintf(&out, ".SH SYNOPSIS\n.B %s\n[\\fIVERB\\fR] [\\fIFLAGS\\fR] [\\fISERVICE\\fR ...]\n", app.Name)
	out.WriteString(".SH FLAGS OF ALL VERBS\n")
	manFlags(&out, app.Flags)
	out.WriteString(".SH VERBS\n")
	for _, verb := range app.Children {
		if verb.Hidden {
			continue
		}
		fmt.Fprintf(&out, ".SS %s\n%s\n.PP\n.B %s\n", troff(verb.Name), troff(verb.Help), troff(verb.Summary()))
		manFlags(&out, verb.Flags)
		if verb.Detail != "" {
			fmt.Fprintf(&out, ".PP\n.nf\n%s\n.fi\n", troff(verb.Detail))
		}
	}
	out.WriteString(".SH ENVIRONMENT\n")
	for _, f := range app.Flags {
		for _, env := range f.Envs {
			fmt.Fprintf(&out, ".TP\n.B %s\nThe same as \\-\\-%s.\n", env, troff(f.Name))
		}
	}
	out.WriteString(".TP\n.B NO_COLOR\nNo colours.\n.SH EXIT STATUS\n")
	for _, line := range exitCodes {
		code, text, _ := strings.Cut(line, "\t")
		fmt.Fprintf(&out, ".TP\n.B %s\n%s\n", code, troff(text))
	}
	return out.Bytes()
}

func manFlags(out *bytes.Buffer, flags []*kong.Flag) {
	for _, f := range flags {
		if f.Hidden {
			continue
		}
		name := "\\-\\-" + troff(f.Name)
		if f.Short != 0 {
			name = "\\-" + string(f.Short) + ", " + name
		}
		if !f.IsBool() {
			name += "=" + troff(f.FormatPlaceHolder())
		}
		fmt.Fprintf(out, ".TP\n.B %s\n%s\n", name, troff(f.Help))
	}
}

// troff escapes a text for man(7).
func troff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "\n.", "\n\\&.").Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}
