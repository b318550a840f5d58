// Command flood ends by glog's Fatal, which writes the calls of all goroutines. It has
// glog alone, so that these are few.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/golang/glog"
)

func main() {
	if err := flag.Set("logtostderr", "true"); err != nil {
		fmt.Fprintln(os.Stderr, "flood:", err)
		os.Exit(65)
	}
	glog.Info("order 4711 placed")
	glog.Fatal("no till is open")
}
