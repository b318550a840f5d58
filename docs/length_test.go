package docs

import (
	"regexp"
	"strings"
	"testing"
)

// TestLength ensures that a page stays short enough to be read: DESIGN.md tells one story, and a
// page with more than one subject becomes several. The larger pages may only shrink. A limit may
// be raised in the commit that says why.
func TestLength(t *testing.T) {
	const most = 5000
	larger := map[string]int{
		"DESIGN.md":       4500,
		"CHANGELOG.md":    8000,   // until a release begins a new one
		"docs/FORMAT.md":  9100,   // every byte that is stored
		"docs/LOGGERS.md": 10_100, // its table of loggers is generated
	}
	seen := map[string]bool{}
	for _, page := range pages(t) {
		limit, ok := larger[page]
		if !ok {
			limit = most
		}
		seen[page] = true
		if n := len(strings.Fields(read(t, page))); n > limit {
			t.Errorf("%s has %d words, more than %d", page, n, limit)
		}
	}
	for page := range larger {
		if !seen[page] {
			t.Errorf("there is no %s", page)
		}
	}
}

// TestNouns ensures that pages name their subjects: "what", "who" and their kin stand for a noun
// that the writer did not name. All pages together may have 1.5 of them in a thousand words.
func TestNouns(t *testing.T) {
	fenced := regexp.MustCompile("(?s)```.*?```")
	inline := regexp.MustCompile("`[^`\n]*`")
	word := regexp.MustCompile(`[A-Za-z][A-Za-z'-]*`)
	unnamed := regexp.MustCompile(`(?i)\b(what|who|whom|whose|whatever|whoever|whichever|wherever|of which|of whom)\b`)
	words, found := 0, 0
	var worst string
	worstRate := 0.0
	for _, page := range pages(t) {
		text := inline.ReplaceAllString(fenced.ReplaceAllString(read(t, page), ""), "x")
		n, all := len(unnamed.FindAllString(text, -1)), len(word.FindAllString(text, -1))
		words, found = words+all, found+n
		if rate := float64(n) / float64(all+1); rate > worstRate {
			worst, worstRate = page, rate
		}
	}
	if words < 50_000 || float64(found) > 1.5*float64(words)/1000 {
		t.Errorf("%d of %d words of pages are like what and who; most of them are in %s", found, words, worst)
	}
}
