package main

import (
	"github.com/containerd/log"
	"github.com/sirupsen/logrus"
)

func logrusText() {
	logrus.WithField("order", 4711).Info("order placed")
	logrus.WithFields(logrus.Fields{"article": "tea", "left": 3}).Warn("stock is low")
	logrus.WithError(charge(4712)).Error("payment failed\nand the basket is kept")
	logrus.Fatal("no till is open")
}

func logrusJSON() {
	logrus.SetFormatter(&logrus.JSONFormatter{})
	logrus.WithField("order", 4711).Info("order placed")
	logrus.WithField("article", "tea").Warn("stock is low")
	logrus.WithError(charge(4712)).Error("payment failed")
	logrus.Fatal("no till is open")
}

func logrusTerminal() {
	logrus.SetFormatter(&logrus.TextFormatter{ForceColors: true})
	logrus.SetLevel(logrus.DebugLevel)
	logrus.Debug("basket opened")
	logrus.WithField("order", 4711).Info("order placed")
	logrus.WithField("article", "tea").Warn("stock is low")
	logrus.WithError(errDeclined).Error("payment failed")
	logrus.Fatal("no till is open")
}

func containerdText() {
	if err := log.SetFormat(log.TextFormat); err != nil {
		panic(err)
	}
	log.L.WithField("order", 4711).Info("order placed")
	log.L.WithError(errDeclined).Warn("payment failed, trying again")
	log.L.WithError(charge(4711)).Error("payment failed")
}
