package door

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"blobtail/internal/loopback"
)

// Rules are the known facts of a listener. The zero value allows this host only.
type Rules struct {
	Flag string // of the address, as "--listen"
	Own  string // an address that only this host reaches, as "127.0.0.1:8514"

	Tokens bool // there is a file of tokens
	Sealed bool // TLS is on the listener, or nothing secret passes it
	Proxy  bool // a proxy in front ends TLS
	Open   bool // the operator lets everybody in

	// Opens says that the command has the flag --open. Then the ways out name it.
	Opens bool
}

// MayListen returns the reason not to serve an address that others than this host reach,
// with the ways out.
func (r Rules) MayListen(l net.Listener) error {
	if loopback.Listener(l) {
		return nil
	}
	return r.MayServe(l.Addr().String())
}

// MayServe is MayListen for an address that others than this host reach.
func (r Rules) MayServe(address string) error {
	everybody, safe := "", ""
	if r.Opens {
		everybody, safe = ", or let everybody in with --open", ", or --open if the network is safe"
	}
	switch {
	case r.Open:
		return nil
	case !r.Tokens:
		return fmt.Errorf("%s %s is open to other hosts, and there are no tokens; make a file of tokens with `ingest token new` and give it as --tokens FILE, or listen on this host only (%s %s)%s",
			r.Flag, address, r.Flag, r.Own, everybody)
	case !r.Sealed && !r.Proxy:
		return errors.New(r.Flag + " " + address + " is open to other hosts, and tokens would pass the network in the clear; give --tls-cert and --tls-key, or --behind-proxy if a proxy ends TLS" + safe)
	}
	return nil
}

// Addressed gives requests the address of the client of the proxy in front. The proxy appends
// it to the header, so the entries before it may be lies.
func Addressed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if all := r.Header.Values("X-Forwarded-For"); len(all) > 0 {
			last := all[len(all)-1]
			last = strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])
			if last != "" {
				r.RemoteAddr = net.JoinHostPort(forwarded(last), "0")
			}
		}
		next.ServeHTTP(w, r)
	})
}

// forwarded is the address in an entry of X-Forwarded-For. Some proxies add the port, and
// brackets. An entry that cannot be read stands for itself, cut: the proxy's own address
// would make one host of all its clients.
func forwarded(entry string) string {
	host := entry
	if h, _, err := net.SplitHostPort(entry); err == nil {
		host = h
	} else if inner, ok := strings.CutPrefix(entry, "["); ok {
		host = strings.TrimSuffix(inner, "]")
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.String()
	}
	const most = 64
	return strings.ToValidUTF8(entry[:min(most, len(entry))], "?")
}

// Reload calls the functions again at each SIGHUP, until ctx ends. failed gets their errors.
// Without functions SIGHUP ends a process with a terminal, as it ends other programs when that
// goes away. To a service it is a reload, with nothing to read.
func Reload(ctx context.Context, failed func(error), again ...func() error) {
	if len(again) == 0 && hasTerminal() {
		return
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	defer signal.Stop(signals)
	for {
		select {
		case <-signals:
		case <-ctx.Done():
			return
		}
		for _, read := range again {
			if err := read(); err != nil {
				failed(err)
			}
		}
	}
}

// hasTerminal reports whether the process has a controlling terminal.
func hasTerminal() bool {
	tty, err := os.Open("/dev/tty")
	if err == nil {
		_ = tty.Close()
	}
	return err == nil
}
