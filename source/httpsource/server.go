package httpsource

import (
	stdlog "log"
	"net/http"
	"time"

	"github.com/rs/zerolog"
)

// NewServer makes a server for h with the limits that a listener open to clients
// needs. Bodies have their own pace, see [Options]. Answers have no time limit:
// waiting for a blob may take minutes. The caller sets no address; it listens, serves
// and shuts down.
func NewServer(h http.Handler, log zerolog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       90 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          stdlog.New(log.With().Str("level", "warn").Logger(), "", 0),
	}
}
