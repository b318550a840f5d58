// Package configs holds the files of this folder that commands have built in.
package configs

import _ "embed" // for the files

//go:embed prices.yaml
var prices string

// Prices is the text of prices.yaml.
func Prices() string { return prices }

//go:embed plan.yaml
var plan string

// Plan is the text of plan.yaml.
func Plan() string { return plan }
