package main

import (
	"os"
	"time"

	"github.com/rs/zerolog"
	"github.com/rs/zerolog/log"
)

func zerologJSON() {
	log.Info().Int("order", 4711).Msg("order placed")
	log.Warn().Str("article", "tea").Int("left", 3).Msg("stock is low")
	log.Error().Err(charge(4712)).Int("order", 4712).Msg("payment failed")
	log.Log().Msg("the shop is shut")
	log.Fatal().Msg("no till is open")
}

func zerologUnixMs() {
	zerolog.TimeFieldFormat = zerolog.TimeFormatUnixMs
	log.Debug().Msg("basket opened")
	log.Info().Int("order", 4711).Msg("order placed")
	log.Error().Err(errDeclined).Msg("payment failed")
}

func zerologConsole() {
	l := log.Output(zerolog.ConsoleWriter{Out: os.Stderr})
	l.Debug().Msg("basket opened")
	l.Info().Int("order", 4711).Msg("order placed")
	l.Warn().Str("article", "tea").Msg("stock is low")
	l.Error().Err(errDeclined).Int("order", 4712).Msg("payment failed")
}

func zerologConsoleRFC3339() {
	l := log.Output(zerolog.ConsoleWriter{Out: os.Stderr, NoColor: true, TimeFormat: time.RFC3339})
	l.Trace().Msg("basket opened")
	l.Info().Int("order", 4711).Msg("order placed")
	l.Error().Err(errDeclined).Int("order", 4712).Msg("payment failed")
	l.Fatal().Msg("no till is open")
}
