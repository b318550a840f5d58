package tailindex

import "encoding/binary"

// Held is the memory of a writer in bytes.
func Held(w *Writer) int64 { return w.Stats().Held }

// Process distinguishes this writer's rows from those of its peers.
func (w *Writer) Process() string { return w.o.Process }

// Sealed is a body with its checksum.
func Sealed(body []byte) []byte {
	return binary.LittleEndian.AppendUint32(append([]byte(nil), body...), checksum(body))
}

// Apart keeps the numbers of a text apart, and joins both again.
func Apart(text string) (string, bool) {
	if !separable([]byte(text)) {
		return "", false
	}
	rest, numbers := separate([]byte(text))
	joined, err := together(rest, numbers, len(text))
	if err != nil {
		return err.Error(), true
	}
	return string(joined), true
}
