package guide

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// Manual is the manual page of a command, in the language of man(7), of the texts of --help.
func (g *Guide) Manual(app *kong.Application) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, ".TH %s 1 \"\" \"blobtail\" \"User Commands\"\n", strings.ToUpper(app.Name))
	fmt.Fprintf(&out, ".SH NAME\n%s \\- %s\n", app.Name, troff(app.Help))
	verb := "\\fIVERB\\fR"
	if g.Default != "" {
		verb = "[" + verb + "]"
	}
	fmt.Fprintf(&out, ".SH SYNOPSIS\n.B %s\n%s [\\fIFLAGS\\fR] [\\fIARGUMENT\\fR ...]\n", app.Name, verb)
	if g.Default != "" {
		fmt.Fprintf(&out, ".PP\nWithout a verb it is\n.BR %s .\n", troff(g.Default))
	}
	out.WriteString(".SH COMMON FLAGS\n")
	manFlags(&out, app.Flags)
	out.WriteString(".SH VERBS\n")
	for _, verb := range verbs(app.Node) {
		g.manVerb(&out, verb)
	}
	out.WriteString(".SH ENVIRONMENT\n")
	manVariables(&out, app.Flags)
	for _, verb := range verbs(app.Node) {
		manVariables(&out, verb.Flags)
	}
	for _, v := range g.Environment {
		fmt.Fprintf(&out, ".TP\n.B %s\n%s\n", v[0], troff(v[1]))
	}
	out.WriteString(".SH EXIT STATUS\n")
	for _, e := range g.Exits {
		fmt.Fprintf(&out, ".TP\n.B %d\n%s\n", e.Code, troff(e.Meaning))
	}
	return out.Bytes()
}

// manVerb writes the section of a verb.
func (g *Guide) manVerb(out *bytes.Buffer, verb *kong.Node) {
	fmt.Fprintf(out, ".SS %s\n%s\n", troff(name(verb)), troff(verb.Help))
	if len(verb.Children) > 0 {
		return // those have sections of their own
	}
	fmt.Fprintf(out, ".PP\n.B %s\n", troff(verb.Summary()))
	if used, limited := g.limits(verb); limited {
		text := "It uses none of the common flags."
		if len(used) > 0 {
			text = "Common flags that it uses: --" + strings.Join(used, ", --") + "."
		}
		fmt.Fprintf(out, ".PP\n%s\n", troff(text))
	}
	for _, arg := range verb.Positional {
		if arg.Help != "" {
			fmt.Fprintf(out, ".TP\n.B %s\n%s\n", troff(arg.Summary()), troff(arg.Help))
		}
	}
	for n := verb.Parent; n.Type != kong.ApplicationNode; n = n.Parent {
		manFlags(out, n.Flags)
	}
	manFlags(out, verb.Flags)
	if verb.Detail != "" {
		fmt.Fprintf(out, ".PP\n.nf\n%s\n.fi\n", troff(verb.Detail))
	}
}

func manVariables(out *bytes.Buffer, flags []*kong.Flag) {
	for _, f := range flags {
		for _, env := range f.Envs {
			fmt.Fprintf(out, ".TP\n.B %s\nThe same as \\-\\-%s.\n", env, troff(f.Name))
		}
	}
}

func manFlags(out *bytes.Buffer, flags []*kong.Flag) {
	for _, f := range flags {
		if f.Hidden {
			continue
		}
		name := "\\-\\-" + troff(f.Name)
		if f.Tag.Negatable != "" {
			name = "\\-\\-[no\\-]" + troff(f.Name)
		}
		if f.Short != 0 {
			name = "\\-" + string(f.Short) + ", " + name
		}
		if !f.IsBool() {
			name += "=" + troff(strings.Trim(f.FormatPlaceHolder(), `"`))
		}
		fmt.Fprintf(out, ".TP\n.B %s\n%s\n", name, troff(kong.DefaultHelpValueFormatter(f.Value)))
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
