package config

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/token"

	"blobtail/internal/openstore"
)

// marshal writes a value as YAML that reads back as the same value, with any texts in it. The
// encoder alone writes some texts so that they read back as others. [Load] refuses ${NAME} where
// the dollar is written as it is.
func marshal(v any, more ...yaml.EncodeOption) ([]byte, error) {
	text, err := yaml.MarshalWithOptions(v, append(more, yaml.CustomMarshaler(scalar), yaml.CustomMarshaler(func(s openstore.Spec) ([]byte, error) {
		return scalar(s.String())
	}))...)
	return variable().ReplaceAllFunc(text, func(name []byte) []byte { // such a text is in double quotes
		return append([]byte(`\x24`), name[1:]...)
	}), err
}

// scalar writes a text as a value of YAML: as it is, if no reader may take it for anything else,
// else in quotes.
func scalar(text string) ([]byte, error) {
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("%q is not in UTF-8, so no file of YAML can have it", text)
	}
	if isPlain(text) {
		return []byte(text), nil
	}
	return []byte(strconv.Quote(text)), nil
}

// isPlain reports whether a text needs no quotes: YAML gives it no meaning, it reads
// back as itself, and it has no variable for [Load] to refuse.
func isPlain(text string) bool {
	if token.IsNeedQuoted(text) || variable().MatchString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		return false
	}
	var alone any
	var read map[string]any
	return yaml.Unmarshal([]byte(text), &alone) == nil && alone == any(text) &&
		yaml.Unmarshal([]byte("key: "+text), &read) == nil && len(read) == 1 && read["key"] == any(text)
}
