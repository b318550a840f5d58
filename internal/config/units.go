package config

import (
	"time"

	"blobtail/internal/units"
)

// Duration, Auto and Size are the values of keys that have units.
type (
	Duration = units.Duration
	Auto     = units.Auto
	Size     = units.Size
)

// ParseDuration reads a [Duration]. It accepts no sign.
func ParseDuration(s string) (time.Duration, error) { return units.ParseDuration(s) }
