package main

import (
	"errors"
	"flag"

	"github.com/golang/glog"
	"google.golang.org/grpc/grpclog"
	"k8s.io/klog/v2"
)

// lines is an error with a text of two lines.
func lines() error { return errors.New("card declined\nthe bank asks for a call") }

func klogText() {
	klog.Info("order 4711 placed")
	klog.InfoS("order placed", "order", 4711, "customer", "Ada Lovelace")
	klog.Warningf("only %d packets of tea are left", 3)
	klog.ErrorS(lines(), "payment failed", "order", 4712)
	klog.Error("the till is shut")
	klog.Fatal("no till is open")
}

func glogText() {
	defer glog.Flush()
	must(0, flag.Set("logtostderr", "true"))
	glog.Info("order 4711 placed")
	glog.Warningf("only %d packets of tea are left", 3)
	glog.Errorf("payment failed: %v", charge(4712))
}

func grpcText() {
	l := grpclog.Component("shop")
	l.Info("order 4711 placed")
	l.Warning("only 3 packets of tea are left")
	l.Errorf("payment failed: %v", charge(4712))
}
