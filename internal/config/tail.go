package config

import (
	"strconv"
	"strings"
)

// Tail says where the newest records of each service are kept for quick reading.
// Ingesters and readers have to agree on it.
type Tail struct {
	Enabled bool   `yaml:"enabled"` // ingesters write it
	Prefix  string `yaml:"prefix"`  // of the tables' names, letters
	Shards  int    `yaml:"shards"`  // partitions of a service in a table
}

func defaultTail() Tail { return Tail{Enabled: true, Prefix: "tail", Shards: 4} }

const (
	maxTailPrefix = 40
	maxTailShards = 16
)

func (t Tail) validate(bad func(key string, value any, want string)) {
	letters := strings.Trim(t.Prefix, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
	if t.Prefix == "" || len(t.Prefix) > maxTailPrefix || !letters {
		bad("tail.prefix", strconv.Quote(t.Prefix), "want letters only, at most "+strconv.Itoa(maxTailPrefix)+", for example tail")
	}
	if t.Shards < 1 || t.Shards > maxTailShards {
		bad("tail.shards", t.Shards, "want 1 to "+strconv.Itoa(maxTailShards))
	}
}
