package page

import (
	"bytes"
	"fmt"
	"io"
	"path"

	"github.com/tdewolff/minify/v2"
	"github.com/tdewolff/minify/v2/css"
	"github.com/tdewolff/minify/v2/js"
)

// small returns the text of a file as browsers get it: without comments and blanks, and with short
// names of variables. Preact is served as it was published.
func small(name string, text []byte) ([]byte, error) {
	var out bytes.Buffer
	var by func(*minify.M, io.Writer, io.Reader, map[string]string) error
	switch {
	case name == "preact.js" || name == "hooks.js":
		return text, nil
	case path.Ext(name) == ".js":
		by = js.Minify
	case path.Ext(name) == ".css":
		by = css.Minify
	default:
		return text, nil
	}
	if err := by(minify.New(), &out, bytes.NewReader(text), nil); err != nil {
		return nil, fmt.Errorf("minify %s: %w", name, err)
	}
	return out.Bytes(), nil
}
