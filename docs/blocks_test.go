package docs

import (
	"slices"
	"strings"
	"testing"
)

// block is a fenced block of a page.
type block struct {
	line   int    // of its fence
	kind   string // sh, text
	text   string
	skip   string // reason for not running it
	output string // expected output: the text block that follows directly
	shown  bool   // there was one
}

// shown are the kinds of blocks that name a language or a configuration of another program. They
// are never run.
var shown = []string{"conf", "csharp", "go", "ini", "java", "js", "json", "python", "toml", "xml", "yaml"}

// blocks finds the fenced blocks of kind sh on a page. A block under a comment that
// begins with "not run here:" is not run; the comment gives the reason.
func blocks(t *testing.T, page string) []block {
	t.Helper()
	lines := strings.Split(read(t, page), "\n")
	var out []block
	skip, adjacent := "", false
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if reason, ok := strings.CutPrefix(line, "<!-- not run here: "); ok {
			skip = strings.TrimSuffix(reason, " -->")
			continue
		}
		kind, fenced := strings.CutPrefix(line, "```")
		if !fenced {
			if line != "" || skip != "" {
				adjacent, skip = false, ""
			}
			continue
		}
		b := block{line: i + 1, kind: kind, skip: skip}
		for i++; i < len(lines) && lines[i] != "```"; i++ {
			b.text += lines[i] + "\n"
		}
		switch {
		case kind == "sh":
			out = append(out, b)
			adjacent = true
			skip = ""
			continue
		case kind == "text" && adjacent:
			out[len(out)-1].output, out[len(out)-1].shown = b.text, true
		case kind != "text" && !slices.Contains(shown, kind):
			t.Errorf("%s:%d: a block of kind %q is neither sh nor text nor one of %v", page, b.line, kind, shown)
		}
		adjacent, skip = false, ""
	}
	return out
}

// programsOf are the programs of others that the commands of a page run.
var programsOf = map[string][]string{
	"docs/send/go.md":     {"go"},
	"docs/send/node.md":   {"node"},
	"docs/send/python.md": {"python3"},
}
