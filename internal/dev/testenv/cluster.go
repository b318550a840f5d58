package testenv

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// StartCluster starts n servers with JetStream in this process, as [StartNATS] does, that are one
// cluster. Each can be stopped and started again.
func StartCluster(t testing.TB, n int) (servers []*NATS) {
	t.Helper()
	var routes []*url.URL
	ports, err := FreePorts(n)
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range ports {
		routes = append(routes, &url.URL{Scheme: "nats", Host: "127.0.0.1:" + port})
	}
	for i, r := range routes {
		port, _ := strconv.Atoi(r.Port())
		servers = append(servers, StartNATS(t, func(o *server.Options) {
			o.ServerName = fmt.Sprintf("test-%d", i)
			o.Cluster = server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: port}
			o.Routes = routes
		}))
	}
	for begun := time.Now(); !led(servers); time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > startTimeout {
			t.Fatal("the NATS servers have no leader in time")
		}
	}
	return servers
}

// led reports whether one of the servers leads them all.
func led(servers []*NATS) bool {
	return slices.ContainsFunc(servers, func(n *NATS) bool {
		return n.server.JetStreamIsLeader() && len(n.server.JetStreamClusterPeers()) == len(servers)
	})
}

// Soon is a context for a request that a cluster may not answer while it elects a leader. The test
// makes it again.
func Soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	t.Cleanup(cancel)
	return ctx
}
