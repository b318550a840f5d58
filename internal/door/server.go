package door

import (
	stdlog "log"
	"net/http"
	"time"

	"github.com/rs/zerolog"
)

// NewServer returns a server with the limits of sockets: 5 s and 64 KiB for the header of a
// request, a minute without requests. It drops the tails of the guard on its shutdown.
func (s *Reads) NewServer(h http.Handler, log zerolog.Logger) *http.Server {
	// A stranger makes a line with each handshake that fails.
	quiet := log.Sample(&zerolog.BurstSampler{Burst: 5, Period: time.Second})
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          stdlog.New(quiet.With().Str("level", "warn").Logger(), "", 0),
	}
	srv.RegisterOnShutdown(s.DropTails)
	return srv
}
