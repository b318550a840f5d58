package cli

import (
	"slices"
	"strings"
)

// MeantVersion returns the hint for a flag by which other programs print their version; "" for other
// flags.
func MeantVersion(flag string) string {
	if !slices.Contains([]string{"-V", "-v", "--ver", "-version"}, flag) {
		return ""
	}
	return "for the version: --version"
}

// MeantListen returns the hint for a flag of other servers that has their address: --listen with
// the address that usual shows; "" for other flags.
func MeantListen(flag, usual string) string {
	name, _, _ := strings.Cut(flag, "=")
	if !slices.Contains([]string{"--port", "-p", "--http-port", "--address", "--addr", "--bind", "--bind-address", "--http", "--interface"}, name) {
		return ""
	}
	return "for the address and the port: --listen " + usual
}
