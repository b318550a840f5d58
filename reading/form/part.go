package form

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"blobtail/reading"
)

const (
	// Parts is the route of parts of answers, for askers of the same version: that of the bytes of a
	// [reading.Part], and of all that they depend on. Raise the number with each change of these.
	Parts = "parts/1"
	// Portable is the media type of a part.
	Portable = "application/octet-stream"
	// mostPart is the most bytes that a part has.
	mostPart = 64 << 20
)

// Part is what a slice of time adds to an answer. Its bytes are a line with its end, and those of the part.
type Part struct {
	End
	Of *reading.Part
}

// Encode are the bytes of a part. An error says that there are too many.
func (p *Part) Encode() ([]byte, error) {
	head, err := json.Marshal(&p.End)
	data := append(append(head, '\n'), p.Of.Encode()...)
	if len(data) > mostPart {
		err = fmt.Errorf("the part of this slice has %d bytes, more than %d; ask for a shorter slice", len(data), mostPart)
	}
	return data, err
}

// Decode reads the answer to a joint.
func (p *Part) Decode(data []byte, j *reading.Joint) (err error) {
	head, state, ok := bytes.Cut(data, []byte("\n"))
	if !ok || len(data) > mostPart {
		return errors.New("it is no part of an answer, or a longer one than there may be")
	}
	if err = json.Unmarshal(head, &p.End); err == nil {
		p.Of, err = j.Decode(state)
	}
	return err
}
