package main

import (
	"context"
	"errors"
	stdlog "log"
	"os"
	"time"

	"github.com/go-logr/stdr"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutlog"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"
	gorm "gorm.io/gorm/logger"
)

func stdrText() {
	l := stdr.New(stdlog.New(os.Stderr, "", stdlog.LstdFlags|stdlog.Lshortfile))
	l.Info("order placed", "order", 4711)
	l.WithName("payments").Error(charge(4712), "payment failed", "order", 4712)
}

func gormText() {
	ctx := context.Background()
	l := gorm.Default
	l.Warn(ctx, "stock of %s is low", "tea")
	l.Error(ctx, "payment failed: %v", charge(4712))
	l.Trace(ctx, time.Now().Add(-time.Millisecond), func() (string, int64) {
		return "SELECT * FROM `orders` WHERE id = 4712", 0
	}, errors.New("record not found"))
	l.Trace(ctx, time.Now().Add(-300*time.Millisecond), func() (string, int64) {
		return "SELECT * FROM `baskets`", 7
	}, nil)
}

func otelStdout() {
	ctx := context.Background()
	exporter := must(stdoutlog.New())
	provider := sdklog.NewLoggerProvider(
		sdklog.WithProcessor(sdklog.NewSimpleProcessor(exporter)),
		sdklog.WithResource(resource.NewSchemaless(attribute.String("service.name", "shop"))))
	l := provider.Logger("orders")
	for _, said := range []struct {
		severity log.Severity
		text     string
	}{
		{log.SeverityInfo, "order placed"},
		{log.SeverityWarn2, "stock is low"},
		{log.SeverityError, "payment failed"},
	} {
		var r log.Record
		r.SetTimestamp(time.Now())
		r.SetSeverity(said.severity)
		r.SetSeverityText(said.severity.String())
		r.SetBody(attribute.StringValue(said.text))
		r.AddAttributes(attribute.Int("order", 4711))
		l.Emit(ctx, r)
	}
	_ = provider.Shutdown(ctx)
}
