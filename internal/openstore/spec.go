package openstore

import (
	"fmt"
	"strings"

	"blobtail/storage/azure"
)

// Spec names a store as an operator writes it: dir:PATH or
// azure:[ACCOUNT/]CONTAINER. Specs can be compared. The zero Spec names none.
type Spec struct {
	kind  string // inDir or inAzure
	place string
}

const (
	inDir   = "dir"
	inAzure = "azure"
)

// BadSpecError is a text that names no store.
type BadSpecError struct {
	Spec   string
	Reason string
}

// Error implements error.
func (e *BadSpecError) Error() string { return fmt.Sprintf("store %q: %s", e.Spec, e.Reason) }

// Default is the store of a command without a store flag.
func Default() Spec { return Spec{inDir, "./data"} }

// Parse reads a spec. It sends no request, and does not check whether the store exists.
// The error is a [*BadSpecError].
func Parse(text string) (Spec, error) {
	kind, place, _ := strings.Cut(text, ":")
	if place == "" || kind != inDir && kind != inAzure {
		return Spec{}, &BadSpecError{text, "it must be dir:PATH or azure:[ACCOUNT/]CONTAINER"}
	}
	if kind == inAzure {
		if _, _, err := azure.ParseSpec(place); err != nil {
			return Spec{}, &BadSpecError{text, err.Error()}
		}
	}
	return Spec{kind, place}, nil
}

// UnmarshalText is [Parse] for flags and files. An empty text is the zero Spec.
func (s *Spec) UnmarshalText(text []byte) (err error) {
	*s = Spec{}
	if len(text) > 0 {
		*s, err = Parse(string(text))
	}
	return err
}

// MarshalText writes the text that UnmarshalText reads.
func (s Spec) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String is the text that Parse reads, "" for the zero Spec.
func (s Spec) String() string {
	if s.kind == "" {
		return ""
	}
	return s.kind + ":" + s.place
}

// Dir is the path of a store in a directory, "" for others.
func (s Spec) Dir() string {
	if s.kind != inDir {
		return ""
	}
	return s.place
}

// Remote reports whether a network is between this host and the store. Reading
// costs money then.
func (s Spec) Remote() bool { return s.kind == inAzure }

// Name is the name of the store in its tables, which the containers of an account
// share: the container's, and "" for a directory, which has tables of its own.
func (s Spec) Name() string {
	if s.kind != inAzure {
		return ""
	}
	return s.place[strings.LastIndexByte(s.place, '/')+1:]
}
