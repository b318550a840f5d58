package page

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"github.com/tdewolff/minify/v2"
	"github.com/tdewolff/minify/v2/css"
	"github.com/tdewolff/minify/v2/js"
)

// small returns the text of a file as browsers get it: without comments and blanks, and with short
// names of variables. Preact is served as it was published.
func small(name string, text []byte) ([]byte, error) {
	least := string(text)
	var err error
	switch {
	case name == "preact.js" || name == "hooks.js":
		return text, nil
	case path.Ext(name) == ".js":
		least, err = smallModule(least)
	case path.Ext(name) == ".css":
		least, err = minified(css.Minify, least)
	default:
		return text, nil
	}
	if err != nil {
		return nil, fmt.Errorf("minify %s: %w", name, err)
	}
	return []byte(least), nil
}

func minified(by minify.MinifierFunc, text string) (string, error) {
	var out bytes.Buffer
	err := by(minify.New(), &out, strings.NewReader(text), nil)
	return out.String(), err
}

// smallModule gives the minifier a module as a function. The minifier keeps the names outside
// functions, since other scripts could use them, but no other file sees those of a module.
func smallModule(text string) (string, error) {
	m, err := moduleOf(text)
	if err != nil {
		return "", err
	}
	least, err := minified(js.Minify, m.function())
	if err != nil {
		return "", err
	}
	return m.from(least)
}
