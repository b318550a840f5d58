package tailindex

// Held is what a writer holds of memory.
func Held(w *Writer) int64 { return w.bytes.Load() }
