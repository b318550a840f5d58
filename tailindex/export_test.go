package tailindex

// Held is the memory of a writer in bytes.
func Held(w *Writer) int64 { return w.Stats().Held }

// Process distinguishes this writer's rows from those of its peers.
func (w *Writer) Process() string { return w.o.Process }
