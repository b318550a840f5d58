package main

import (
	"os"

	apex "github.com/apex/log"
	apexjson "github.com/apex/log/handlers/json"
	"github.com/apex/log/handlers/logfmt"
	"github.com/apex/log/handlers/text"
	charm "github.com/charmbracelet/log"
	kit "github.com/go-kit/log"
	"github.com/go-kit/log/level"
	"github.com/hashicorp/go-hclog"
	"github.com/nats-io/nats-server/v2/logger"
	phuslu "github.com/phuslu/log"
	"github.com/prometheus/common/promslog"
	"github.com/zeromicro/go-zero/core/logx"
)

func hclogText() {
	l := hclog.New(&hclog.LoggerOptions{Name: "shop", Level: hclog.Debug})
	l.Debug("basket opened")
	l.Named("orders").Info("order placed", "order", 4711, "customer", "Ada Lovelace")
	l.Warn("stock is low", "article", "tea", "left", 3)
	l.Error("payment failed", "order", 4712, "error", lines())
	l.Info("order placed", "order", 4713)
}

func hclogJSON() {
	l := hclog.New(&hclog.LoggerOptions{Name: "shop", JSONFormat: true})
	l.Info("order placed", "order", 4711)
	l.Warn("stock is low", "article", "tea", "left", 3)
	l.Error("payment failed", "order", 4712, "error", charge(4712))
}

func kitLogfmt() {
	l := kit.With(kit.NewLogfmtLogger(os.Stderr), "ts", kit.DefaultTimestampUTC, "caller", kit.DefaultCaller)
	kitOrders(l)
}

func kitJSON() {
	l := kit.With(kit.NewJSONLogger(os.Stderr), "ts", kit.DefaultTimestamp, "caller", kit.DefaultCaller)
	kitOrders(l)
}

func kitOrders(l kit.Logger) {
	_ = level.Info(l).Log("msg", "order placed", "order", 4711)
	_ = level.Warn(l).Log("msg", "stock is low", "article", "tea", "left", 3)
	_ = level.Error(l).Log("msg", "payment failed", "order", 4712, "err", charge(4712))
	_ = l.Log("msg", "the shop is shut")
}

func charmText() {
	charm.SetLevel(charm.DebugLevel)
	charm.Debug("basket opened")
	charm.Info("order placed", "order", 4711)
	charm.Warn("stock is low", "article", "tea", "left", 3)
	charm.Error("payment failed", "order", 4712, "err", lines())
	charm.Fatal("no till is open")
}

func charmJSON() {
	charm.SetFormatter(charm.JSONFormatter)
	charm.Info("order placed", "order", 4711)
	charm.Error("payment failed", "order", 4712, "err", charge(4712))
}

func phusluJSON() {
	phuslu.Info().Int("order", 4711).Msg("order placed")
	phuslu.Warn().Str("article", "tea").Msg("stock is low")
	phuslu.Error().Err(charge(4712)).Msg("payment failed")
	phuslu.Fatal().Msg("no till is open")
}

func phusluConsole() {
	l := phuslu.Logger{Caller: 1, Writer: &phuslu.ConsoleWriter{ColorOutput: true, Writer: os.Stderr}}
	l.Info().Int("order", 4711).Msg("order placed")
	l.Warn().Str("article", "tea").Msg("stock is low")
	l.Error().Err(errDeclined).Msg("payment failed")
}

func apexText() {
	apex.SetHandler(text.New(os.Stderr))
	apexOrders()
}

func apexJSON() {
	apex.SetHandler(apexjson.New(os.Stderr))
	apexOrders()
}

func apexLogfmt() {
	apex.SetHandler(logfmt.New(os.Stderr))
	apexOrders()
}

func apexOrders() {
	apex.WithField("order", 4711).Info("order placed")
	apex.WithField("article", "tea").Warn("stock is low")
	apex.WithError(charge(4712)).Error("payment failed")
	apex.Fatal("no till is open")
}

func natsServer() {
	l := logger.NewStdLogger(true, true, true, false, true)
	l.Noticef("Listening for orders on %s", "192.0.2.10:4222")
	l.Warnf("only %d packets of tea are left", 3)
	l.Errorf("payment failed: %v", charge(4712))
	l.Debugf("basket opened")
	l.Tracef("<<- [PING]")
	l.Fatalf("no till is open")
}

func prometheus() {
	l := promslog.New(&promslog.Config{})
	l.Info("order placed", "order", 4711)
	l.Warn("stock is low", "article", "tea", "left", 3)
	l.Error("payment failed", "order", 4712, "err", charge(4712))
}

func zeroJSON() { zeroOrders() }

func zeroPlain() {
	logx.MustSetup(logx.LogConf{ServiceName: "shop", Mode: "console", Encoding: "plain"})
	zeroOrders()
}

func zeroOrders() {
	logx.DisableStat()
	logx.Infow("order placed", logx.Field("order", 4711))
	logx.Slow("the bank answered after 2 s")
	logx.Error("payment failed: card declined")
	logx.Alert("no till is open")
}
