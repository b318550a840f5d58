package form

import "blobtail/reading"

const (
	// Parts is the route of parts of joint answers, which are in gob. Raise the number with each change of
	// what a [reading.Joint] means, or of a [reading.Part].
	Parts = "parts/1"
	// Portable is the media type of a part.
	Portable = "application/octet-stream"
)

// Part is what a stretch of time adds to an answer.
type Part struct {
	End
	Of *reading.Part
}
