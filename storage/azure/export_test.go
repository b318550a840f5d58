package azure

import "blobtail/storage"

// ScanPage reads a page without the SDK. It returns false for a page that is left to the SDK.
func ScanPage(body []byte) (blobs []storage.Blob, dirs []string, next string, ok bool) {
	p, ok := scanPage(body)
	return p.blobs, p.dirs, p.next, ok
}
