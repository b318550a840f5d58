package docs

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"blobtail/internal/config"
)

// setting is a key of configs/blobtail.yaml.
type setting struct {
	section  bool
	value    string // the default
	comment  []string
	partners []string // keys below it without a comment of their own
}

// settings are the keys of configs/blobtail.yaml in their order, with the comment above each. The first
// comment of the file is the first setting, "".
func settings(t *testing.T) (keys []string, all map[string]*setting) {
	t.Helper()
	keys, all = []string{""}, map[string]*setting{"": {}}
	var comment []string
	section, last := "", ""
	entry := regexp.MustCompile(`^( *)([a-z-]+): *(.*)$`)
	for line := range strings.Lines(read(t, "configs/blobtail.yaml")) {
		line = strings.TrimRight(line, "\n")
		text, commented := strings.CutPrefix(strings.TrimLeft(line, " "), "#")
		m := entry.FindStringSubmatch(line)
		switch {
		case commented:
			comment = append(comment, strings.TrimPrefix(text, " "))
		case line == "":
			if len(keys) == 1 && all[""].comment == nil {
				all[""].comment, comment = comment[1:], nil
			}
		case strings.HasPrefix(strings.TrimLeft(line, " "), "- "):
			all[last].section = false
			all[last].value = strings.Trim(all[last].value+", "+strings.TrimLeft(line, " -"), ", ")
		case m == nil:
			t.Fatalf("configs/blobtail.yaml: what is %q?", line)
		default:
			key := m[2]
			if m[1] == "" {
				section = key
			} else {
				key = section + "." + key
			}
			all[key] = &setting{section: m[3] == "", value: m[3], comment: comment}
			if comment == nil && m[1] != "" && !all[last].section {
				owner := keys[len(keys)-1]
				all[owner].partners = append(all[owner].partners, key)
			} else {
				keys = append(keys, key)
			}
			last, comment = key, nil
		}
	}
	return keys, all
}

// kinds has what the value of each key is, and variables its variable of the environment.
func kinds(of reflect.Type, path string, kind, variables map[string]string) {
	for i := range of.NumField() {
		f := of.Field(i)
		name, inline, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		key := strings.Trim(path+"."+name, ".")
		variables[key] = f.Tag.Get("env")
		units := map[string]string{"Duration": "a duration", "Auto": "a duration, or auto", "Size": "a size", "Age": "an age"}
		switch named := units[f.Type.Name()]; {
		case inline != "" || f.Type.Kind() == reflect.Struct && f.Type.Name() != "Spec":
			kinds(f.Type, key, kind, variables)
		case named != "":
			kind[key] = named
		case f.Type.Kind() == reflect.Bool:
			kind[key] = "true or false"
		case f.Type.Kind() == reflect.Int:
			kind[key] = "a number"
		case f.Type.Kind() == reflect.Slice:
			kind[key] = "a list"
		case f.Type.Kind() == reflect.Map:
			kind[key] = "names with values"
		default:
			kind[key] = "a text"
		}
	}
}

// TestPrintedConfiguration ensures that docs/reference/configuration.md has each key of
// configs/blobtail.yaml, with the comment there, and the flags and variables for it.
func TestPrintedConfiguration(t *testing.T) {
	bin := build(t)
	keys, all := settings(t)
	kind, variables := map[string]string{}, map[string]string{}
	kinds(reflect.TypeFor[config.Config](), "", kind, variables)
	// Flags of logquery for keys that are no flags of ingest.
	variables["live"], variables["workers"], variables["access.token-file"] = "BLOBTAIL_LIVE", "BLOBTAIL_WORKERS", "BLOBTAIL_TOKEN_FILE"
	flags := map[string]map[string]string{}
	for _, program := range programs {
		flags[program] = flagsByVariable(manual(t, bin, program))
	}
	var page strings.Builder
	page.WriteString("# Configuration, key by key\n\n" + note("TestPrintedConfiguration") + `
The keys of [configs/blobtail.yaml](../../configs/blobtail.yaml), which is the same as a file to copy:
pass yours with ` + "`--config FILE`" + `. ` + "`ingest print-config`" + ` prints what is in force. Prices and plans for
` + "`logquery bill` and `logquery cost`" + ` have files of their own: [configs/prices.yaml](../../configs/prices.yaml) and
[configs/plan.yaml](../../configs/plan.yaml).
`)
	for _, key := range keys {
		s := all[key]
		if key != "" {
			level := "###"
			if !strings.Contains(key, ".") {
				level = "##"
			}
			fmt.Fprintf(&page, "\n%s %s\n", level, strings.Join(append([]string{key}, s.partners...), ", "))
		}
		for _, name := range append([]string{key}, s.partners...) {
			if !all[name].section && name != "" {
				page.WriteString("\n" + head(t, name, all[name].value, kind[name], variables[name], flags) + "\n")
			}
		}
		page.WriteString(prose(s.comment))
	}
	printed(t, "docs/reference/configuration.md", page.String())
}

// head says what a key may be, and where else it can be set.
func head(t *testing.T, key, value, kind, variable string, flags map[string]map[string]string) string {
	t.Helper()
	if kind == "" {
		t.Errorf("configs/blobtail.yaml has %s, and the configuration has no such key", key)
	}
	text := fmt.Sprintf("`%s: %s`", key, value)
	if kind != "a text" {
		text += " · " + kind
	}
	if variable == "" {
		return text
	}
	text += " · `" + variable + "`"
	found := false
	for _, program := range programs {
		if flag := flags[program][variable]; flag != "" {
			text += fmt.Sprintf(" · `%s %s`", program, flag)
			found = true
		}
	}
	if !found {
		t.Errorf("no program has a flag for %s, the variable of %s", variable, key)
	}
	return text
}

// prose makes paragraphs of a comment, and blocks of its lines that are indented further. Pages that
// it names become links.
func prose(comment []string) string {
	var out strings.Builder
	indented := false
	for i, line := range comment {
		if code := strings.HasPrefix(line, "  "); code != indented || i == 0 {
			if indented {
				out.WriteString("```\n")
			}
			if indented = code; code {
				out.WriteString("\n```text")
			}
			out.WriteString("\n")
		}
		if indented {
			line = strings.TrimPrefix(line, "  ")
		} else {
			line = regexp.MustCompile(`docs/([a-z-]+/[a-z-]+\.md)(#[a-z-]+)?`).ReplaceAllString(line, "[$1](../$1$2)")
			line = regexp.MustCompile(`\b_\w+|\$\{NAME\}`).ReplaceAllString(strings.ReplaceAll(line, "*", `\*`), "`$0`")
		}
		out.WriteString(line + "\n")
	}
	if indented {
		out.WriteString("```\n")
	}
	return out.String()
}
