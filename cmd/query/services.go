package main

import "blobtail/query"

// serviceNames returns the services that arguments name.
func serviceNames(args []string) []string { return query.ParseServices(args) }
