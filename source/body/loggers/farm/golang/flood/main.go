// Command flood ends by glog's Fatal, which writes the calls of all goroutines. It has
// glog alone, so that these are few.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/golang/glog"
)

func main() {
	if err := flag.Set("logtostderr", "true"); err != nil {
		fmt.Fprintln(os.Stderr, "flood:", err)
		os.Exit(65)
	}
	glog.Info("order 4711 placed")
	time.Sleep(100 * time.Millisecond) // the runtime's own goroutines rest
	glog.Fatal("no till is open")
}
