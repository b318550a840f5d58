// Package progress counts the work of a long command while it runs, for a person that waits.
//
// A command makes a [Counter] and gives it to the packages that work. They count; package
// internal/cli draws the line on the terminal. A nil Counter works, and counts nothing.
package progress

import "sync/atomic"

// A Counter counts the things that a command works on: blobs, or services. Any number of
// goroutines may use it. The zero value is ready.
type Counter struct{ found, done, all, bytes, allBytes atomic.Int64 }

// Find counts a blob that was listed. How many there are is not known by then.
func (c *Counter) Find() {
	if c != nil {
		c.found.Add(1)
	}
}

// Expect adds things to be done, with their bytes.
func (c *Counter) Expect(n int, bytes int64) {
	if c != nil {
		c.all.Add(int64(n))
		c.allBytes.Add(bytes)
	}
}

// Finish counts things that are done.
func (c *Counter) Finish(n int, bytes int64) {
	if c != nil {
		c.done.Add(int64(n))
		c.bytes.Add(bytes)
	}
}

// Found is how many blobs were listed.
func (c *Counter) Found() int64 { return c.found.Load() }

// Things returns how many things are done, and how many there are.
func (c *Counter) Things() (done, all int64) { return c.done.Load(), c.all.Load() }

// Bytes are those of the finished things, and of all.
func (c *Counter) Bytes() (done, all int64) { return c.bytes.Load(), c.allBytes.Load() }
