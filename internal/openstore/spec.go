package openstore

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"blobtail/internal/spelling"
	"blobtail/storage/azure"
	"blobtail/storage/fsys"
)

// Spec names a store as an operator writes it: dir:PATH, azure:[ACCOUNT/]CONTAINER, or
// azurelogs:ACCOUNT[/CONTAINER] and azurelogs:dir:PATH, which can only be read. Specs can be
// compared. The zero Spec names none.
type Spec struct {
	kind  string // inDir, inAzure or azureLogs
	place string
}

const (
	inDir     = "dir"
	inAzure   = "azure"
	azureLogs = "azurelogs"
)

// BadSpecError is a text that names no store.
type BadSpecError struct {
	Spec   string // without parts that may be a secret
	Reason string
}

// Error implements error.
func (e *BadSpecError) Error() string { return fmt.Sprintf("store %q: %s", e.Spec, e.Reason) }

// Default is the store of a command without a store flag.
func Default() Spec { return Spec{inDir, "./data"} }

// Parse reads a spec. It sends no request, and does not check whether the store exists.
// The error is a [*BadSpecError]. It shows no secret that people put behind a name.
func Parse(text string) (Spec, error) {
	s, err := parse(text)
	shown, secret := public(text)
	if bad, ok := errors.AsType[*BadSpecError](err); ok && !secret {
		meant := spelling.First(text, spelling.Habits(stores, "store"))
		if _, err := parse(meant); err == nil {
			bad.Reason += "; write " + meant
		}
	}
	if err != nil && secret {
		return Spec{}, &BadSpecError{shown, "it must be azure:[ACCOUNT/]CONTAINER and no more: a key or a SAS belongs into AZURE_STORAGE_CONNECTION_STRING or AZURE_STORAGE_SAS_TOKEN"}
	}
	return s, err
}

// stores are how people write stores, each with an example.
const stores = `store
https?://([a-z0-9]+)\.(?:blob|dfs)\.[a-z.]+/([^/]+)/?.*	azure:$1/$2	https://acct.blob.core.windows.net/logs	azure:acct/logs
(?:azure|az|blob|azblob|abfss?|wasbs?):(?://)?([^/]+(?:/[^/]+)?)/?	azure:$1	az://acct/logs	azure:acct/logs
azure:(?://)?([^/]+/[^/]+)/.*	azure:$1	azure:acct/logs/web	azure:acct/logs
~(/.*)	dir:$$HOME$1	~/data	dir:$HOME/data
(?:file|dir)://(/.*)	dir:$1	file:///var/data	dir:/var/data
(?:file|path|fs|local):([^:]+)	dir:$1	file:./data	dir:./data
(\.{0,2}/.*|\.\.?|[^:/]+/?)	dir:$1	./data2	dir:./data2
([a-z0-9]{3,24}/[a-z0-9-]+)/?	azure:$1	acct/logs	azure:acct/logs
([^:]+)	dir:$1	var/log/data	dir:var/log/data
`

// public returns the part of a spec before a secret that it may have.
func public(text string) (shown string, secret bool) {
	lower, end := strings.ToLower(text), len(text)
	for _, sign := range []string{"?", ";", "sig=", "signature=", "accountkey"} {
		if at := strings.Index(lower, sign); at >= 0 {
			end = min(end, at)
		}
	}
	if strings.Contains(text, "@") { // behind a user and a password
		end = min(end, strings.Index(text+":", ":")+1)
		if end > strings.Index(text, "@") {
			end = 0
		}
	}
	if end == len(text) {
		return text, false
	}
	return text[:end] + "...", true
}

func parse(text string) (Spec, error) {
	kind, place, _ := strings.Cut(text, ":")
	s := Spec{kind, place}
	switch {
	case place == "" || kind != inDir && kind != inAzure && kind != azureLogs, kind == azureLogs && place == copied:
		return Spec{}, &BadSpecError{text, "it must be dir:PATH or azure:[ACCOUNT/]CONTAINER; to read Azure's own logs azurelogs:ACCOUNT[/CONTAINER] or azurelogs:dir:PATH"}
	case kind == inDir || s.Copied() != "":
		path := cmp.Or(s.Dir(), s.Copied())
		if err := fsys.NoHome(path); err != nil {
			return Spec{}, &BadSpecError{text, err.Error()}
		}
	case kind == inAzure:
		if _, _, err := azure.ParseSpec(place); err != nil {
			return Spec{}, &BadSpecError{text, err.Error()}
		}
	case kind == azureLogs:
		if _, _, err := azure.ParseLogs(place); err != nil {
			return Spec{}, &BadSpecError{text, err.Error()}
		}
	}
	return s, nil
}

// UnmarshalText is [Parse] for flags and files. An empty text is the zero Spec.
func (s *Spec) UnmarshalText(text []byte) (err error) {
	*s = Spec{}
	if len(text) > 0 {
		*s, err = Parse(string(text))
	}
	return err
}

// UnmarshalYAML reads the text of a file. The decoder of YAML would write it anew for
// UnmarshalText, and change some characters by that.
func (s *Spec) UnmarshalYAML(decode func(any) error) error {
	var text string
	if err := decode(&text); err != nil {
		return err
	}
	return s.UnmarshalText([]byte(text))
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

// copied begins the place of a directory with copies of Azure's own logs.
const copied = "dir:"

// Copied is the path of a directory with copies of Azure's own logs, "" for other stores.
func (s Spec) Copied() string {
	path, ok := strings.CutPrefix(s.place, copied)
	if s.kind != azureLogs || !ok {
		return ""
	}
	return path
}

// Logs reports whether the store is Azure's own logs. It can only be read, and no ingester
// writes to it.
func (s Spec) Logs() bool { return s.kind == azureLogs }

// Remote reports whether a network is between this host and the store. Reading
// costs money then.
func (s Spec) Remote() bool { return s.kind == inAzure || s.kind == azureLogs && s.Copied() == "" }

// Name is the name of the store in its tables, which the containers of an account
// share: the container's, and "" for a directory, which has tables of its own.
func (s Spec) Name() string {
	if s.kind != inAzure {
		return ""
	}
	return s.place[strings.LastIndexByte(s.place, '/')+1:]
}
