package main

import (
	"os"

	"go.etcd.io/etcd/client/pkg/v3/logutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	kjson "k8s.io/component-base/logs/json"
	ctrl "sigs.k8s.io/controller-runtime/pkg/log/zap"
)

func zapProduction() {
	l := must(zap.NewProduction())
	l.Info("order placed", zap.Int("order", 4711))
	l.Warn("stock is low", zap.String("article", "tea"), zap.Int("left", 3))
	l.Error("payment failed", zap.Int("order", 4712), zap.Error(charge(4712)))
	l.DPanic("a basket without an order")
}

func zapProductionConsole() {
	config := zap.NewProductionConfig()
	config.Encoding = "console"
	l := must(config.Build())
	l.Info("order placed", zap.Int("order", 4711))
	l.Warn("stock is low", zap.String("article", "tea"), zap.Int("left", 3))
	l.Error("payment failed", zap.Int("order", 4712), zap.Error(errDeclined))
}

func zapDevelopment() {
	l := must(zap.NewDevelopment())
	l.Debug("basket opened")
	l.Info("order placed", zap.Int("order", 4711))
	l.Error("payment failed", zap.Int("order", 4712), zap.Error(errDeclined))
	l.Info("order placed", zap.Int("order", 4713))
}

func zapDevelopmentWarn() {
	l := must(zap.NewDevelopment())
	l.Info("order placed", zap.Int("order", 4711))
	l.Warn("stock is low", zap.String("article", "tea"), zap.Int("left", 3))
	l.Info("order placed", zap.Int("order", 4713))
}

func etcd() {
	l := must(logutil.CreateDefaultZapLogger(zapcore.InfoLevel))
	l.Info("order placed", zap.Int("order", 4711))
	l.Warn("apply request took too long", zap.String("took", "1.2s"))
	l.Error("payment failed", zap.Error(errDeclined))
}

func kubernetesJSON() {
	l, control := kjson.NewJSONLogger(0, zapcore.Lock(os.Stderr), nil, nil)
	l.Info("order placed", "order", 4711)
	l.Error(charge(4712), "payment failed", "order", 4712)
	control.Flush()
}

func controllerJSON() {
	l := ctrl.New().WithName("shop").WithName("payments")
	l.Info("order placed", "order", 4711)
	l.Error(charge(4712), "payment failed", "order", 4712)
}

func controllerConsole() {
	l := ctrl.New(ctrl.UseDevMode(true)).WithName("payments")
	l.V(1).Info("basket opened")
	l.Info("order placed", "order", 4711)
	l.Error(charge(4712), "payment failed", "order", 4712)
}
