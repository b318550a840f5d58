package times

import "bytes"

// short scans 26/11/20 15:04:05 of Hadoop and Spark, and 261120 15:04:05 of MySQL and MariaDB.
// step is the length of a part. Years before 2013 may be months. With slashes the day may be first:
// of two readings the near one counts. If none is, the year is first in the form of Spark alone, and
// if the other one is not of the last year.
func (c *scan) short(step int) bool {
	first, last := two(c.s, c.at), two(c.s, c.at+2*step)
	c.year, c.month, c.day, c.dated = 2000+first, two(c.s, c.at+step), last, true
	c.at += 2*step + 2
	if first > 99 || last > 99 || c.month < 1 || c.month > 12 || !c.behindDate(false) {
		return false
	}
	guess := c.r.Guess
	if step == 2 || first == last || guess == nil || c.r.Now == 0 {
		return first >= 13
	}
	other, dayFirst := c.readShort(last, first)
	ns, ok := c.readShort(first, last)
	if ok && (!dayFirst || guess(ns, false)) {
		return true
	}
	if dayFirst && guess(other, false) {
		c.year, c.day = 2000+last, first
		return true
	}
	words := bytes.Fields(c.s[c.at:])
	spark := len(words) > 1 && bytes.HasSuffix(words[1], []byte(":")) // INFO SparkContext: up
	return ok && spark && c.r.Now-other > 366*daySec*second
}

// readShort reads a time with a year of two digits. ok is false if it is none, or too far ahead.
func (c *scan) readShort(year, day uint) (ns int64, ok bool) {
	if year < 13 || day < 1 || int64(day) > monthDays(2000+year, c.month) {
		return 0, false
	}
	c.year, c.day = 2000+year, day
	ns, ok = c.of(c.year)
	return ns, ok && ns-c.r.Now <= ahead
}
