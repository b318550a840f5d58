package rig

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"syscall"
	"time"
)

// Server is a running logquery serve.
type Server struct {
	Process
	Base string // its URL
	log  bytes.Buffer
}

// Serve starts logquery serve for a store on a free port, and waits until it is ready.
func Serve(ctx context.Context, logquery string, env []string, store string) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		return nil, err
	}
	v := &Server{Base: "http://" + address}
	v.cmd = exec.CommandContext(ctx, logquery, "--store", store, "serve", "--listen", address)
	v.cmd.Env, v.cmd.Stderr = env, &v.log
	v.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // the main thread, to which main is locked
	if err := v.cmd.Start(); err != nil {
		return nil, err
	}
	for range 200 {
		if r, err := http.Get(v.Base + "/ready"); err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return v, nil
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	v.Kill()
	return nil, fmt.Errorf("logquery serve is not ready: %s", v.log.String())
}
