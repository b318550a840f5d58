package main

import (
	"context"
	"log"
	"log/slog"
	"os"
)

func slogText() {
	l := slog.New(slog.NewTextHandler(os.Stdout, nil))
	l.Info("order placed", "order", 4711, "customer", "Ada Lovelace")
	l.Log(context.Background(), slog.LevelInfo+2, "order packed", "order", 4711)
	l.Warn("stock is low", "article", "tea", "left", 3)
	l.Error("payment failed", "order", 4712, "err", charge(4712))
}

func slogJSON() {
	l := slog.New(slog.NewJSONHandler(os.Stdout, nil)).With("shop", "vienna")
	l.Info("order placed", "order", 4711)
	l.Warn("stock is low", slog.Group("article", "name", "tea", "left", 3))
	l.Error("payment failed", "order", 4712, "err", charge(4712))
	l.Log(context.Background(), slog.LevelError+4, "the till is shut")
}

func slogDefault() {
	slog.Info("order placed", "order", 4711)
	slog.Warn("stock is low", "article", "tea", "left", 3)
	slog.Error("payment failed", "order", 4712, "err", charge(4712))
}

func logText() {
	log.Printf("order %d placed", 4711)
	log.Printf("3 packets of tea are left")
	log.Fatalf("cannot open the till: %v", errDeclined)
}

func logFlags() {
	l := log.New(os.Stderr, "orders: ", log.LstdFlags|log.Lmicroseconds|log.Lshortfile|log.LUTC)
	l.Printf("order %d placed", 4711)
	l.Printf("payment of order %d failed: %v", 4712, errDeclined)
}
