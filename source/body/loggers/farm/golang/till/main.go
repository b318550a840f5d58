// Command till ends as programs of Go end: by a panic, or by an error that no one
// recovers from. It has the standard library alone, so that nothing else runs beside.
package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/debug"
	"sync"
	"time"
)

var errDeclined = errors.New("card declined")

func main() {
	ends := map[string]func(){
		"go-fatal-deadlock": deadlock,
		"go-fatal-map":      twoHands,
		"go-fatal-stack":    overflow,
		"go-http-panic":     serve,
		"go-log-panic":      logPanic,
		"go-panic":          index,
		"go-panic-again":    unchanged,
		"go-panic-nil":      noBasket,
		"go-panic-wrapped":  again,
		"go-sigquit":        quit,
	}
	if len(os.Args) != 2 || ends[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: till ROW")
		os.Exit(64)
	}
	ends[os.Args[1]]()
}

type basket struct{ articles []string }

func (b *basket) add(article string) { b.articles = append(b.articles, article) }

// find returns no basket.
func find(int) *basket { return nil }

func price(articles []string, i int) { fmt.Println(articles[i]) }

func index() {
	fmt.Fprintln(os.Stderr, "order 4711 placed")
	articles := []string{"tea", "milk"}
	price(articles, len(articles))
}

func noBasket() { find(4711).add("tea") }

func again() {
	defer func() {
		if r := recover(); r != nil {
			panic(fmt.Errorf("order 4712 is half done: %w", r.(error)))
		}
	}()
	panic(fmt.Errorf("charge order 4712: %w", errDeclined))
}

// unchanged passes a panic on, as handlers do that only want to see it.
func unchanged() {
	defer func() {
		if r := recover(); r != nil {
			panic(r)
		}
	}()
	panic(errors.Join(fmt.Errorf("charge order 4712: %w", errDeclined), errors.New("the basket is kept")))
}

// twoHands write into one map.
func twoHands() {
	stock := map[int]int{}
	for hand := range 2 {
		go func() {
			for {
				stock[0] = hand
			}
		}()
	}
	select {}
}

func overflow() {
	time.Sleep(100 * time.Millisecond) // the runtime's own goroutines rest
	debug.SetMaxStack(1 << 14)
	fmt.Println(endless(1))
}

func endless(n int) int { return endless(n+1) + 1 }

// quit waits for a signal.
func quit() {
	fmt.Fprintln(os.Stderr, "order 4711 placed")
	time.Sleep(time.Minute)
}

func deadlock() {
	var till sync.Mutex
	till.Lock()
	till.Lock()
}

func logPanic() {
	log.Printf("order %d placed", 4711)
	log.Panicf("payment of order %d failed: %v", 4712, errDeclined)
}

func serve() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		log.Printf("%s %s", r.Method, r.URL.Path)
		panic("no till is open")
	}))
	if resp, err := server.Client().Get(server.URL + "/orders/4711"); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	server.Close()
}
