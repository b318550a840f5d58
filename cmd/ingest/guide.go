package main

import (
	"io"
	"slices"
	"strings"

	"blobtail/internal/guide"
)

// signposts say what kong's model of the command line does not.
func signposts() *guide.Guide {
	return &guide.Guide{
		// The others start an ingester, or say whether it would start.
		Uses: map[string][]string{
			"drain":      {"config", "admin"},
			"adopt":      {"config", "admin"},
			"forget":     {"config", "store", "tls-ca", "tls-server-name"},
			"token":      {"config", "tokens"},
			"import":     {"config", "store", "wal", "period", "flush-size", "flush-age", "flush-min", "flush-max-age", "flush-filters"},
			"send":       {"config", "store", "wal", "tls-ca", "tls-server-name", "period", "flush-filters"},
			"try":        {"config"},
			"loggers":    {},
			"man":        {},
			"completion": {},
		},
		Default: "run",
		Exits: []guide.Exit{
			{Code: 0, Meaning: "It was stopped and ended in order, or the verb did its work."},
			{Code: 1, Meaning: "It failed while it ran, or check found a problem; stderr or stdout says which."},
			{Code: 2, Meaning: "The command line or the configuration is wrong, or the log or the store is too old."},
			{Code: 3, Meaning: "import: some lines or blobs could not be read; stderr says which."},
			{Code: 4, Meaning: "import: the store refuses access."},
			{Code: 5, Meaning: "import: there is no store, or it cannot be reached."},
			{Code: 130, Meaning: "It was interrupted."},
		},
		Environment: [][2]string{
			{"BLOBTAIL_PEER_TOKEN", "The token that is shown to other ingesters."},
		},
	}
}

// guides reports whether a verb prints what is in the program alone.
func guides(verb string) bool {
	first, _, _ := strings.Cut(verb, " ")
	return slices.Contains([]string{"loggers", "man", "completion", "complete"}, first)
}

// guide prints the manual, the script for a shell, the known loggers, or what a word may become.
func (g *grammar) guide(verb string, stdout io.Writer) error {
	if strings.HasPrefix(verb, "loggers") {
		return g.Loggers.run(stdout)
	}
	text := signposts().Print(g.model, g.Complete.Words)
	switch {
	case verb == "man":
		text = string(signposts().Manual(g.model))
	case strings.HasPrefix(verb, "completion"):
		text = guide.Script(g.Completion.Shell, "ingest")
	}
	_, err := io.WriteString(stdout, text)
	return err
}
