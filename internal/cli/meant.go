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

// MeantShell returns the hint for completion of a program without the name of a shell; "" for other
// errors of a parser.
func MeantShell(program string, err error) string {
	if !strings.HasPrefix(err.Error(), `expected "<shell>"`) {
		return ""
	}
	return "for which shell? " + program + " completion bash, zsh or fish"
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
