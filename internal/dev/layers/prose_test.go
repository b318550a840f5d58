package layers

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A wh-word stands in place of a noun that the writer did not name. A reader has to find it.
var (
	aWord     = regexp.MustCompile(`[A-Za-z][A-Za-z'-]*`)
	whWord    = regexp.MustCompile(`(?i)\b(?:what|who|whom|whose|whatever|whoever|whichever|wherever|of which|of whom)\b`)
	codeBlock = regexp.MustCompile("(?s)```.*?```")
	codeSpan  = regexp.MustCompile("`[^`\n]*`")
)

// text is a page, or the comments of a Go file.
type text struct {
	path      string
	words, wh int
	first     string // of its wh-words: line and sentence
}

// TestProse ensures that comments and pages name the actors of their sentences.
func TestProse(t *testing.T) {
	prose(t, "comments", comments(t), mostWhComments, "mostWhComments")
	prose(t, "pages", pages(t), mostWhPages, "mostWhPages")
}

// prose compares some texts with their limit.
func prose(t *testing.T, kind string, texts []text, most float64, limit string) {
	t.Helper()
	var sum text
	for _, x := range texts {
		sum.words += x.words
		sum.wh += x.wh
	}
	if sum.words < 10_000 {
		t.Fatalf("found %d words of %s", sum.words, kind)
	}
	rate := 1000 * float64(sum.wh) / float64(sum.words)
	t.Logf("%s: %d words, %.2f wh-words in a thousand", kind, sum.words, rate)
	if rate <= most {
		return
	}
	slices.SortFunc(texts, func(a, b text) int { return cmp.Compare(b.wh, a.wh) })
	var with strings.Builder
	for _, x := range texts[:10] {
		fmt.Fprintf(&with, "\n%3d in %5d words  %s%s", x.wh, x.words, x.path, x.first)
	}
	t.Errorf("%s have %.2f wh-words in a thousand words, and at most %.1f are allowed: name the actor of the sentence, such as the sender; %s may be raised in the commit that says why%s",
		kind, rate, most, limit, with.String())
}

// count counts the words of a part of a text that begins at a line.
func (x *text) count(part string, line int) {
	x.words += len(aWord.FindAllStringIndex(part, -1))
	found := whWord.FindAllStringIndex(part, -1)
	x.wh += len(found)
	if len(found) > 0 && x.first == "" {
		at := found[0][0]
		sentence := part[strings.LastIndexByte(part[:at], '\n')+1:]
		sentence, _, _ = strings.Cut(sentence, "\n")
		if line > 0 {
			line += strings.Count(part[:at], "\n")
			x.first = fmt.Sprintf(":%d", line)
		}
		x.first += ": " + sentence
	}
}

// comments returns the comments of all Go files.
func comments(t *testing.T) (out []text) {
	t.Helper()
	for _, f := range parse(t) {
		x := text{path: f.path}
		for _, group := range f.tree.Comments {
			x.count(group.Text(), f.set.Position(group.Pos()).Line)
		}
		out = append(out, x)
	}
	return out
}

// pages returns the prose of all pages, without code.
func pages(t *testing.T) (out []text) {
	t.Helper()
	for _, page := range pageNames(t) {
		x := text{path: page}
		x.count(codeSpan.ReplaceAllString(codeBlock.ReplaceAllString(readPage(t, page), ""), "x"), 0)
		out = append(out, x)
	}
	return out
}

// pageNames returns the paths of all pages, from the root.
func pageNames(t *testing.T) (out []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := d.Name(); d.IsDir() && (base == "node_modules" || base == "testdata" || strings.HasPrefix(base, ".") && name != root) {
			return filepath.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(name, ".md") {
			rel, err := filepath.Rel(root, name)
			if err != nil {
				return err
			}
			out = append(out, filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func readPage(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// generated is a table that a program writes.
var generated = regexp.MustCompile(`(?s)<!-- the table of .*?<!-- the end of the table -->`)

// TestPageLength ensures that a reader sees the end of a page. The changelog is as long as its
// history, and generated tables do not count.
func TestPageLength(t *testing.T) {
	seen := map[string]bool{}
	for _, page := range pageNames(t) {
		if page == "CHANGELOG.md" {
			continue
		}
		n := len(strings.Fields(generated.ReplaceAllString(readPage(t, page), "")))
		was, listed := longPages[page]
		seen[page] = true
		switch {
		case page == "DESIGN.md":
			if n > mostDesign {
				t.Errorf("DESIGN.md has %d words, and at most %d are allowed: a chapter of one package belongs to its doc comment; mostDesign may be raised in the commit that says why", n, mostDesign)
			}
		case listed && n <= mostPage:
			t.Errorf("%s has %d words, within mostPage: take its row out of longPages", page, n)
		case listed && n < was-was/10:
			t.Errorf("%s has %d words now: lower the row in longPages, which says %d", page, n, was)
		case listed && n > was:
			t.Errorf("%s has %d words, and its row in longPages says %d, which may only shrink: divide the page, or raise the row in the commit that says why", page, n, was)
		case !listed && n > mostPage:
			t.Errorf("%s has %d words, and at most %d are allowed: divide it by reader; mostPage may be raised in the commit that says why", page, n, mostPage)
		}
	}
	for page := range longPages {
		if !seen[page] {
			t.Errorf("longPages has a row for %s, and there is no such page: take the row away", page)
		}
	}
}
