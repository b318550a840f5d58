package deploy

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
	"blobtail/source/natssource"
)

// TestComposeNATS ensures that compose makes the stream with the command that the
// ingester itself advises, and runs the server that the tests run against.
func TestComposeNATS(t *testing.T) {
	c := composed(t)
	_, err := natssource.Open(t.Context(), natssource.Options{
		URL: testenv.StartNATS(t).URL, Stream: "LOGS", Consumer: "blobtail"})
	if err == nil {
		t.Fatal("there is a stream")
	}
	_, advised, _ := strings.Cut(err.Error(), "make it: ")
	if got := strings.Join(strings.Fields(string(c.Services["stream"].Command)), " "); !strings.HasSuffix(got, "|| "+advised) {
		t.Errorf("compose runs\n%s\nthe ingester advises\n%s", got, advised)
	}
	version := regexp.MustCompile(`nats-io/nats-server/v2 v(\S+)`).FindStringSubmatch(read(t, "../go.mod"))
	if want := "nats:" + version[1] + "-alpine"; c.Services["nats"].Image != want {
		t.Errorf("compose has %s, the tests run against %s", c.Services["nats"].Image, want)
	}
	if got := c.Services["ingest"].DependsOn["stream"].Condition; got != "service_completed_successfully" {
		t.Errorf("the ingester starts before the stream is there: %q", got)
	}
}

// cluster starts the three servers of nats/cluster.conf in this process, with
// directories and ports of the test.
func cluster(t *testing.T) []*server.Server {
	t.Helper()
	ports := routePorts(t)
	var servers []*server.Server
	for i := range 3 {
		name := fmt.Sprintf("nats-%d", i+1)
		t.Setenv("NATS_NAME", name)
		o, err := server.ProcessConfigFile("nats/cluster.conf")
		if err != nil {
			t.Fatal(err)
		}
		if o.ServerName != name || !o.SyncAlways || len(o.Routes) != 3 {
			t.Errorf("%s: name %q, sync always %v, routes %v", name, o.ServerName, o.SyncAlways, o.Routes)
		}
		for j, r := range o.Routes {
			if want := fmt.Sprintf("nats://nats-%d:6222", j+1); r.String() != want {
				t.Errorf("route %v, want %s", r, want)
			}
			o.Routes[j] = &url.URL{Scheme: "nats", Host: "127.0.0.1:" + strconv.Itoa(ports[j])}
		}
		o.Host, o.Port, o.HTTPPort, o.HTTPHost = "127.0.0.1", server.RANDOM_PORT, 0, ""
		o.Cluster.Host, o.Cluster.Port = "127.0.0.1", ports[i]
		o.StoreDir, o.NoSigs, o.NoLog, o.JetStreamMaxStore = t.TempDir(), true, true, 60<<30
		s, err := server.NewServer(o)
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		servers = append(servers, s)
	}
	for _, s := range servers {
		if !s.ReadyForConnections(testkit.Patience) {
			t.Fatal("the servers are not ready in time")
		}
	}
	return servers
}

func routePorts(t *testing.T) []int {
	t.Helper()
	var ports []int
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// TestCluster ensures that the configuration of the servers fits that of the stream,
// and that an ingester accepts both.
func TestCluster(t *testing.T) {
	servers := cluster(t)
	conn, err := nats.Connect(servers[0].ClientURL(), nats.Timeout(testkit.Patience))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	var c jetstream.StreamConfig
	if err := json.Unmarshal([]byte(read(t, "nats/stream-partitions.json")), &c); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the servers elect a leader and make the stream", func() bool {
		_, err := js.CreateStream(t.Context(), c)
		return err == nil
	})
	s, err := natssource.Open(t.Context(), natssource.Options{
		URL: servers[1].ClientURL(), Stream: "LOGS", Consumer: "blobtail", Partitions: []int{0, 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	var consumer jetstream.Consumer
	testkit.Until(t, "the consumer has a leader", func() bool {
		consumer, err = js.Consumer(t.Context(), "LOGS", "blobtail-1")
		return err == nil
	})
	if info := consumer.CachedInfo(); len(info.Cluster.Replicas) != 2 {
		t.Errorf("the consumer has the replicas %+v, want 2 beside its leader", info.Cluster.Replicas)
	}
}

// TestPartitionedStream ensures that the stream in partitions differs from the other one in its
// transform alone, which is that of docs/operate/partitions.md, and that twenty ingesters can take it: each
// partition goes to two.
func TestPartitionedStream(t *testing.T) {
	var plain, apart jetstream.StreamConfig
	for name, c := range map[string]*jetstream.StreamConfig{"nats/stream.json": &plain, "nats/stream-partitions.json": &apart} {
		if err := json.Unmarshal([]byte(read(t, name)), c); err != nil {
			t.Fatal(err)
		}
	}
	transform := apart.SubjectTransform
	page := read(t, "../docs/operate/partitions.md")
	if transform == nil || !strings.Contains(page, fmt.Sprintf("'%s'", transform.Source)) ||
		!strings.Contains(page, fmt.Sprintf("'%s'", transform.Destination)) {
		t.Fatalf("the page has another transform than %+v", transform)
	}
	if plain.SubjectTransform = transform; !reflect.DeepEqual(plain, apart) {
		t.Errorf("%+v\n%+v", plain, apart)
	}
	n := testenv.StartNATS(t)
	_, js := n.Connect()
	apart.Replicas, apart.MaxBytes = 1, 1<<20
	if _, err := js.CreateStream(t.Context(), apart); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		o := natssource.Options{URL: n.URL, Stream: "LOGS", Consumer: "blobtail", Share: natssource.Share{Ordinal: i, Ingesters: 20}}
		s, err := natssource.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		s.Close(t.Context())
	}
	stream, err := js.Stream(t.Context(), "LOGS")
	if err != nil {
		t.Fatal(err)
	}
	if got := stream.CachedInfo().State.Consumers; got != 41 {
		t.Errorf("%d consumers, want one for each partition and one for the rest", got)
	}
}
