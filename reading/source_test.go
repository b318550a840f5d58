package reading_test

import (
	"testing"

	"blobtail/internal/access"
	"blobtail/reading"
	"blobtail/reading/readingtest"
)

// A store passes the tests of a source.
func TestSource(t *testing.T) {
	readingtest.Run(t, func(t *testing.T, h *readingtest.House, read ...string) reading.Source {
		var token *access.Token
		if len(read) > 0 {
			token = tokenOf(t, read...)
		}
		return h.Reader().For(token)
	})
}
