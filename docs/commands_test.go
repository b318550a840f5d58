package docs

import (
	"cmp"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// programs are the commands, in the order of the pages.
var programs = []string{"ingest", "logquery", "retention"}

// manual is the manual page of a program, as its verb man prints it.
func manual(t *testing.T, bin, program string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, program), "man")
	cmd.Env = environment()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s man: %v", program, err)
	}
	return strings.NewReplacer(`\-`, "-", `\(aq`, "'", `\e`, `\`, `\&`, "", `\fI`, "", `\fR`, "").Replace(string(out))
}

// TestPrintedCommands ensures that docs/reference/commands.md has the verbs, flags and variables of
// the programs, as their manual pages do.
func TestPrintedCommands(t *testing.T) {
	bin := build(t)
	var page strings.Builder
	page.WriteString("# Programs, verbs and flags\n\n" + note("TestPrintedCommands") + `
All that ` + "`--help`" + ` and the manual page (` + "`ingest man | man -l -`" + `) of the three programs say. A flag that is
common to the verbs of a program stands once; each verb names those that it uses. What the codes of
exit mean: [exit-codes.md](exit-codes.md). The keys of the configuration: [configuration.md](configuration.md).
` + "`ingest completion bash`, `zsh` or `fish`" + ` prints a script that completes verbs and flags.
`)
	for _, program := range programs {
		page.WriteString(markdown(t, program, manual(t, bin, program)))
	}
	printed(t, "docs/reference/commands.md", page.String())
}

// markdown makes a chapter of a manual page.
func markdown(t *testing.T, program, page string) string {
	t.Helper()
	var out strings.Builder
	lines := strings.Split(page, "\n")
	section, heading := "", ""
	for i := 0; i < len(lines); i++ {
		macro, text, _ := strings.Cut(lines[i], " ")
		switch macro {
		case ".SH":
			section, heading = text, ""
			if section == "NAME" {
				i++
				_, about, _ := strings.Cut(lines[i], " - ")
				fmt.Fprintf(&out, "\n## %s\n\n%s\n", program, escaped(about))
			}
		case ".SS":
			heading = ""
			i++
			fmt.Fprintf(&out, "\n### %s %s\n\n%s\n", program, text, escaped(lines[i]))
		case ".BR":
			fmt.Fprintf(&out, "\nWithout a verb it is `%s`.\n", strings.TrimSuffix(text, " ."))
		case ".B":
			if section == "VERBS" {
				fmt.Fprintf(&out, "\n`%s %s`\n", program, text)
			}
		case ".PP":
			if next := lines[i+1]; strings.HasPrefix(next, "Common flags") || strings.HasPrefix(next, "It uses none") {
				fmt.Fprintf(&out, "\n%s\n", regexp.MustCompile(`--[a-z-]+`).ReplaceAllString(next, "`$0`"))
				i++
			}
		case ".TP":
			if section == "EXIT STATUS" || section == "ENVIRONMENT" && strings.HasPrefix(lines[i+2], "The same as --") {
				i += 2
				break
			}
			kind := "flag"
			if section == "ENVIRONMENT" {
				kind = "other variables"
			} else if !strings.Contains(lines[i+1], " -") {
				kind = "argument"
			}
			if heading != kind {
				heading = kind
				fmt.Fprintf(&out, "\n| %s | |\n|---|---|\n", kind)
			}
			fmt.Fprintf(&out, "| `%s` | %s |\n", strings.ReplaceAll(strings.TrimPrefix(lines[i+1], ".B "), "|", `\|`), escaped(lines[i+2]))
			i += 2
		case ".nf":
			out.WriteString("\n```text\n")
			for i++; lines[i] != ".fi"; i++ {
				out.WriteString(strings.TrimRight(lines[i], " ") + "\n")
			}
			out.WriteString("```\n")
		case ".TH", program, "[VERB]", "VERB", "Without", "":
		default:
			t.Errorf("the manual of %s has the line %q, which is no part of the page", program, lines[i])
		}
	}
	return out.String()
}

// escaped is a text of a program in Markdown, with the variables of its flag in code.
func escaped(text string) string {
	text = strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`, "`", `\`+"`").Replace(text)
	return regexp.MustCompile(`\$([A-Z\\_, $]+)\)`).ReplaceAllStringFunc(text, func(m string) string {
		return "`" + strings.NewReplacer(`\_`, "_", "$", "", ")", "").Replace(m) + "`)"
	})
}

// flagsByVariable are the flags of a program, by the variables that stand for them.
func flagsByVariable(man string) map[string]string {
	flags := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\.B (?:-., )?(--[^= \n]+).*\n.*\(\$(BLOBTAIL_[A-Z_]+)\)`).FindAllStringSubmatch(man, -1) {
		flags[m[2]] = cmp.Or(flags[m[2]], m[1])
	}
	return flags
}

// TestExitCodes ensures that docs/reference/exit-codes.md has a row for each exit code of each program,
// and no other one.
func TestExitCodes(t *testing.T) {
	bin, page := build(t), read(t, "docs/reference/exit-codes.md")
	for _, program := range programs {
		_, chapter, ok := strings.Cut(page, "\n## "+program+"\n")
		if !ok {
			t.Errorf("docs/reference/exit-codes.md has no chapter of %s", program)
			continue
		}
		chapter, _, _ = strings.Cut(chapter, "\n## ")
		_, codes, _ := strings.Cut(manual(t, bin, program), ".SH EXIT STATUS\n")
		said := map[string]bool{}
		for _, m := range regexp.MustCompile(`(?m)^\.B (\d+)$`).FindAllStringSubmatch(codes, -1) {
			said[m[1]] = true
			if !strings.Contains(chapter, "\n| "+m[1]+" |") {
				t.Errorf("docs/reference/exit-codes.md does not explain the exit code %s of %s", m[1], program)
			}
		}
		for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllStringSubmatch(chapter, -1) {
			if !said[m[1]] {
				t.Errorf("docs/reference/exit-codes.md explains the exit code %s of %s, which the manual does not have", m[1], program)
			}
		}
	}
}
