package config

import "time"

// The values of flush.max-age that auto stands for. A record that readers cannot ask the ingester
// for is found when it is in a blob. Where they can, it is found at once, and half as many blobs
// cost half as many requests.
const (
	maxAgeLive  = 10 * time.Minute
	maxAgeBlobs = 5 * time.Minute
)

// MaxAge returns flush.max-age. why is the reason for the value of auto, "" if another is set.
func (c Config) MaxAge() (age time.Duration, why string) {
	if c.Flush.MaxAge != 0 {
		return time.Duration(c.Flush.MaxAge), ""
	}
	can, why := c.LiveReads()
	if can {
		return maxAgeLive, why
	}
	return maxAgeBlobs, why
}

// The values of tail.every: those that auto stands for, and its bounds. A reader that asks the
// ingester needs no rows, and a fifth of the rows costs a fifth of the requests.
const (
	everyLive  = 5 * time.Second
	everyRows  = time.Second
	leastEvery = time.Second
	mostEvery  = 30 * time.Second // tailindex.MostEvery: readers search no further back
)

// TailEvery returns tail.every. why is as of [Config.MaxAge].
func (c Config) TailEvery() (every time.Duration, why string) {
	if c.Tail.Every != 0 {
		return time.Duration(c.Tail.Every), ""
	}
	can, why := c.LiveReads()
	if !can {
		return everyRows, why
	}
	return everyLive, why
}

// LiveReads reports whether readers can ask this ingester for the records that are in no blob yet,
// and why. A listener on loopback serves the readers of this host. That is enough for a dir store,
// which has no others.
func (c Config) LiveReads() (can bool, why string) {
	switch {
	case c.LiveOff():
		return false, "live is off, so readers read blobs alone"
	case c.Ingest.Announce == "best-effort":
		return false, "ingest.announce is best-effort, so readers may not know of this ingester"
	case c.Ingest.Advertise != "":
		return true, "readers can ask this ingester at ingest.advertise"
	case !c.Store.Remote():
		return true, "readers of a dir store can ask this ingester at ingest.listen"
	}
	return false, "ingest.advertise is empty, so readers on other hosts cannot ask this ingester"
}
