package newest

import "blobtail/query"

// Blobs is the reader of blobs that the tests gave it.
func (r *Reader) Blobs() *query.Reader { return r.o.Blobs }
