package blobs

// Kept counts what the reader keeps of findings.
func (r *Reader) Kept() int {
	n, _ := r.findings.Size()
	return n
}
