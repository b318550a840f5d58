//go:build tools

// Package logcli makes this module require logcli, the command of Loki, which `make logcli` builds
// for tests. It is a module of its own, because Loki requires some 2,000 packages, and because
// Loki's licence is the AGPL: the command runs beside ours in tests, and is not a part of it.
package logcli

import _ "github.com/grafana/loki/v3/cmd/logcli"
