package bill

import (
	"math"
	"time"

	"blobtail/internal/units"
)

// Flush has the settings that decide when a batch becomes a blob, as package config has them.
type Flush struct {
	Size   units.Size     `yaml:"size" json:"size"`
	Min    units.Size     `yaml:"min" json:"min"`
	Age    units.Duration `yaml:"age" json:"age"`
	MaxAge units.Duration `yaml:"max-age" json:"max_age"`
}

// period is the slice of time of a blob's name. A batch has records of one period only.
const period = time.Hour

// A pair is one service at one ingester. Each pair fills a batch of its own.
type pair struct {
	records float64 // a second
	line    float64 // bytes of a line
}

// wait is the time from the first record of a batch to its cut: by size, by age once it has
// flush.min, or by max-age.
func (f Flush) wait(p pair) time.Duration {
	rate := p.records * p.line
	filled := func(size units.Size) float64 {
		if rate <= 0 {
			return math.Inf(1)
		}
		return float64(size) / rate
	}
	s := min(filled(f.Size), max(time.Duration(f.Age).Seconds(), filled(f.Min)), time.Duration(f.MaxAge).Seconds())
	return time.Duration(s * float64(time.Second))
}

// puts is how many blobs a pair makes in a day. The last batch of each hour is a part of one:
// a batch ends with its period. A pair makes no more blobs than it has records.
func (f Flush) puts(p pair) float64 {
	if p.records <= 0 {
		return 0
	}
	cycle := f.wait(p).Seconds() + 1/p.records // to the first record of the next batch
	hour := period.Seconds()
	return 24 * min(p.records*hour, math.Ceil(hour/cycle))
}

// tick is how often an ingester looks for batches that are due, and for rows of the tail.
const tick = time.Second

// putsWithin bounds the number of blobs of a pair within a measurement. The batches that are open
// at its ends may fall within it or not.
func (f Flush) putsWithin(p pair, window time.Duration) (least, most float64) {
	wait := f.wait(p).Seconds()
	late := wait + tick.Seconds() + 1/p.records
	return math.Floor(window.Seconds() / late), math.Ceil(window.Seconds() / wait)
}

// rows is how many rows of the tail a pair writes in some time.
func rows(p pair, every, window time.Duration) float64 {
	return min(p.records*window.Seconds(), window.Seconds()/every.Seconds())
}

// rowsWithin bounds the rows of a pair within a measurement. A row is written a little later than it
// is due, if it has to wait for the one before.
func rowsWithin(p pair, every, window time.Duration) (least, most float64) {
	n := rows(p, every, window)
	return math.Floor(0.95 * n), math.Ceil(n) + 1
}

// heartbeat is how often an ingester writes its row, see internal/lease.
const heartbeat = 10 * time.Second

// tailBytes is the size of the rows of a pair in some time.
func tailBytes(p pair, every, window time.Duration) float64 {
	records := p.records * window.Seconds()
	_, bytes := tailUse(int64(records), int64(max(1, window/every)), p.line)
	return float64(bytes)
}
