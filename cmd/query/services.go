package main

import (
	"blobtail/internal/cli"
	"blobtail/query"
)

// serviceNames returns the services that arguments name.
func serviceNames(args []string) []string { return query.ParseServices(args) }

// servicesOf is serviceNames for arguments that each name some: one that does not may be a
// variable that was not set.
func servicesOf(args []string) ([]string, error) {
	for _, arg := range args {
		if len(serviceNames([]string{arg})) == 0 {
			return nil, cli.Usagef("%q names no service; logquery ls lists them", arg)
		}
	}
	return serviceNames(args), nil
}
