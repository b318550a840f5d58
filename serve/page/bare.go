package page

import (
	"bytes"
	"path"
	"regexp"
)

// bare returns the text of a file as browsers get it: without its comments for programmers, and
// without the indentation. That is a fifth of it. The lines keep their numbers. It knows no
// JavaScript: a comment with a line of its own begins there with // or /**, no text has /** in it,
// and no template goes over the end of a line, which tests check.
func bare(name string, text []byte) []byte {
	if ext := path.Ext(name); ext != ".js" && ext != ".css" || vendored(name) {
		return text
	}
	annotation := regexp.MustCompile(`/\*\*(?:[^*]|\*+[^*/])*\*+/ ?`) // within a line or on lines of its own
	text = annotation.ReplaceAllFunc(text, func(found []byte) []byte {
		return bytes.Repeat([]byte("\n"), bytes.Count(found, []byte("\n")))
	})
	out := make([]byte, 0, len(text))
	for line := range bytes.Lines(text) {
		line = bytes.TrimLeft(line, "\t ")
		if bytes.HasPrefix(line, []byte("//")) {
			line = []byte("\n")
		}
		out = append(out, line...)
	}
	return out
}

// vendored reports whether a file is Preact's, which is served as it was published.
func vendored(name string) bool { return name == "preact.js" || name == "hooks.js" }
