// Package configs holds the files of this folder that commands have built in.
package configs

import _ "embed" // for the files

//go:embed prices.yaml
var prices string

// Prices is the text of prices.yaml.
func Prices() string { return prices }

//go:embed lnav.json
var lnav string

// Lnav is the text of lnav.json, by which lnav reads records.
func Lnav() string { return lnav }
