package tailindex

// Held is the memory of a writer in bytes.
func Held(w *Writer) int64 { return w.Stats().Held }
