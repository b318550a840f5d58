package blobfmt

// Verify checks a whole blob: the checksums and the order of its lines, its index
// and its metadata m against them, and its key. It returns all that it finds (up
// to 100), damaged spans as [*CorruptError]; nil when the blob is sound.
func Verify(key string, body []byte, m Meta) []error { panic("todo") }
