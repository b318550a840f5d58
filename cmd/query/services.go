package main

import (
	"context"
	"strings"

	"blobtail/internal/cli"
	"blobtail/reading"
)

// serviceNames returns the services that arguments name.
func serviceNames(args []string) []string { return reading.ParseServices(args) }

// servicesOf is serviceNames for arguments that each name some: one that does not may be a
// variable that was not set.
func servicesOf(args []string) ([]string, error) {
	for _, arg := range args {
		if len(serviceNames([]string{arg})) == 0 {
			hint := "logquery ls lists them"
			if strings.Trim(arg, "<>=!~&|") == "" && arg != "" {
				hint = "a comparison is one argument, in quotes: --where 'status > 500'"
			}
			return nil, cli.Usagef("%q names no service; %s", arg, hint)
		}
	}
	return serviceNames(args), nil
}

// services are all services, for hints: none if they cannot be listed. It asks once.
func (a *app) services(ctx context.Context) []string {
	if a.names.all == nil && a.source != nil && ctx.Err() == nil {
		a.names.all, _ = a.source.Names(ctx)
	}
	return a.names.all
}
