package main

import (
	"errors"
	"net"

	"github.com/rs/zerolog"

	"blobtail/internal/config"
	"blobtail/internal/door"
	"blobtail/internal/loopback"
)

// listenAs opens an address, if the configuration lets others than this host reach it.
func listenAs(flag, address string, c config.Config) (net.Listener, error) {
	l, err := door.Listen(flag, address)
	if err != nil {
		return nil, err
	}
	if err := mayListen(c, flag, l); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// openToOthers is the warning about an address that others than this host may reach.
const openToOthers = "every host that reaches this address can send records and read those that are in no blob yet; nobody is authenticated"

// warn warns of what stored fields cost and leave unmasked, of a door that keeps no level, and if others than this host can send records
// and read them.
func warn(log zerolog.Logger, c config.Config, levels *levels, l net.Listener) {
	for _, note := range append(c.FormNotes(), levels.unanswered(c.Syslog)...) {
		log.Warn().Msg(note)
	}
	if !loopback.Listener(l) && c.Access.Tokens == "" {
		log.Warn().Str("listen", l.Addr().String()).Msg(openToOthers)
	}
}
