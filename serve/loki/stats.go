package loki

import (
	"strconv"
	"time"

	"blobtail/reading"
)

// appendStats appends the statistics of a query, for people.
func (c *call) appendStats(dst []byte, sum *reading.Outcome, entries int, begun time.Time) []byte {
	took := max(time.Since(begun).Seconds(), 1e-6)
	lines, size := max(sum.Records, int64(entries)), max(sum.Decoded, sum.Bytes)
	dst = append(dst, `"stats":{"summary":{"bytesProcessedPerSecond":`...)
	dst = strconv.AppendInt(dst, int64(float64(size)/took), 10)
	dst = append(dst, `,"linesProcessedPerSecond":`...)
	dst = strconv.AppendInt(dst, int64(float64(lines)/took), 10)
	dst = append(dst, `,"totalBytesProcessed":`...)
	dst = strconv.AppendInt(dst, size, 10)
	dst = append(dst, `,"totalLinesProcessed":`...)
	dst = strconv.AppendInt(dst, lines, 10)
	dst = append(dst, `,"execTime":`...)
	dst = strconv.AppendFloat(dst, took, 'f', 6, 64)
	dst = append(dst, `,"totalEntriesReturned":`...)
	dst = strconv.AppendInt(dst, int64(entries), 10)
	return append(dst, "}}"...)
}
