// Package testenv starts servers for the tests: NATS in this process, and Azurite,
// the emulator of Azure Storage. Azurite comes from node_modules in the root of the
// repository (npm ci), serves on loopback, keeps its data in memory, and ends with
// the test binary. Requests to it pass through a queue in the test binary (queue.go).
package testenv

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Azurite is an account of a running emulator.
type Azurite struct {
	// Account is its name. Every account has the same key, [Key].
	Account string
	// ConnectionString is for clients of both services.
	ConnectionString string
	// BlobURL and TableURL are the endpoints of the account.
	BlobURL, TableURL string
	// Emulator is the address of the emulator's blob service behind the queue.
	Emulator string
	// Certificate is the file with the certificate of a secure emulator, "" for others.
	Certificate string
}

// Key is that of every account. It is public.
const Key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

const (
	accounts     = 250              // of an emulator
	startTimeout = 60 * time.Second // a busy host needs 5 s
	startTries   = 3                // a port may be taken between the choice and the start
)

// Env runs the tests of one package and owns their shared servers.
//
//	var env testenv.Env
//
//	func TestMain(m *testing.M) { os.Exit(env.Run(m)) }
type Env struct {
	mu    sync.Mutex
	ports *ports              // once the emulator runs
	tests map[string]*Azurite // by the name of a test
	err   error
	stop  func()

	secure     *ports // once the emulator with HTTPS runs
	secured    int    // its accounts in use
	stopSecure func()
}

// Run runs the tests, then stops the servers that they started.
func (e *Env) Run(m *testing.M) int {
	code := m.Run()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, stop := range []func(){e.stop, e.stopSecure} {
		if stop != nil {
			stop()
		}
	}
	return code
}

// Azurite returns an account of the emulator, and starts the emulator for the first test
// that asks. A test and its subtests share an account, so each must use a container of
// its own ([Name]) and table names of its own. If Node or Azurite is missing, the test
// is skipped, except in CI, where it fails.
//
// A request costs the emulator time in proportion to the blobs in its account, so that
// tests with one account for all would slow each other down.
func (e *Env) Azurite(t testing.TB) *Azurite {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	test, _, _ := strings.Cut(t.Name(), "/")
	if a := e.tests[test]; a != nil {
		return a
	}
	if e.ports == nil && e.err == nil {
		e.ports, e.stop, e.err = startAzurite(nil)
	}
	var missing *missingError
	switch {
	case errors.As(e.err, &missing) && os.Getenv("CI") == "":
		t.Skip(e.err)
	case e.err != nil:
		t.Fatal(e.err)
	}
	return e.join(test, e.ports)
}

// Alone gives a test an emulator of its own, until the test ends. It is for a test that
// keeps the emulator busy for long: other tests would wait for theirs.
func (e *Env) Alone(t testing.TB) {
	t.Helper()
	ports, stop, err := startAzurite(nil)
	if _, missing := errors.AsType[*missingError](err); missing {
		return // [Env.Azurite] reports it
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.join(t.Name(), ports)
}

// Start starts an emulator for a program that is not a test, and returns n of its
// accounts. The caller stops it.
func Start(n int) (all []*Azurite, stop func(), err error) {
	ports, stop, err := startAzurite(nil)
	if err != nil {
		return nil, nil, err
	}
	for i := range min(n, accounts) {
		all = append(all, account(accountName(i), ports))
	}
	return all, stop, nil
}

// join gives a test an account of an emulator.
func (e *Env) join(test string, p *ports) *Azurite {
	if e.tests == nil {
		e.tests = map[string]*Azurite{}
	}
	e.tests[test] = account(accountName(len(e.tests)%accounts), p)
	return e.tests[test]
}

func accountName(n int) string { return fmt.Sprintf("account%d", n) }

// ports are where the services are reached: blobs and tables through the queue, and the
// emulator's blob service itself.
type ports struct {
	blob, table, emulator string
	pair                  *keyPair // nil: over HTTP
}

func account(name string, p *ports) *Azurite {
	const host = "127.0.0.1:"
	scheme := "http"
	if p.pair != nil {
		scheme = "https"
	}
	a := &Azurite{Account: name, BlobURL: scheme + "://" + host + p.blob + "/" + name, TableURL: scheme + "://" + host + p.table + "/" + name, Emulator: host + p.emulator}
	a.ConnectionString = fmt.Sprintf("DefaultEndpointsProtocol=%s;AccountName=%s;AccountKey=%s;BlobEndpoint=%s;TableEndpoint=%s;",
		scheme, name, Key, a.BlobURL, a.TableURL)
	if p.pair != nil {
		a.Certificate = p.pair.certificate
	}
	return a
}

// Getenv returns the variables with which storage/azure finds the emulator.
func (a *Azurite) Getenv(name string) string {
	if name == "AZURE_STORAGE_CONNECTION_STRING" {
		return a.ConnectionString
	}
	return ""
}

// SAS returns a SAS of the account for blobs and tables, with these rights (such as "rl"),
// valid until end.
func (a *Azurite) SAS(rights string, end time.Time) (string, error) {
	return AccountSAS(a.Account, Key, rights, "https,http", end)
}

// AccountSAS returns a SAS of any account for blobs and tables, signed by its key. protocols are
// "https" or "https,http".
func AccountSAS(account, key, rights, protocols string, end time.Time) (string, error) {
	secret, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		return "", err
	}
	const services, resources, version = "bt", "sco", "2019-12-12"
	until := end.UTC().Format(time.RFC3339)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(strings.Join([]string{account, rights, services, resources, "", until, "", protocols, version, ""}, "\n")))
	return url.Values{
		"sv": {version}, "ss": {services}, "srt": {resources}, "sp": {rights}, "se": {until}, "spr": {protocols},
		"sig": {base64.StdEncoding.EncodeToString(mac.Sum(nil))},
	}.Encode(), nil
}

// ContainerSAS returns a SAS of one container, with these rights, valid until end. It is good
// for no table.
func (a *Azurite) ContainerSAS(container, rights string, end time.Time) (string, error) {
	key, err := base64.StdEncoding.DecodeString(Key)
	if err != nil {
		return "", err
	}
	const version = "2021-12-02"
	until := end.UTC().Format(time.RFC3339)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(strings.Join([]string{rights, "", until, "/blob/" + a.Account + "/" + container, "", "", "", version, "c", "", "", "", "", "", "", ""}, "\n")))
	return url.Values{
		"sv": {version}, "sr": {"c"}, "sp": {rights}, "se": {until}, "sig": {base64.StdEncoding.EncodeToString(mac.Sum(nil))},
	}.Encode(), nil
}

// Environ returns the variables with which storage/azure finds the emulator by the SAS or by the
// key. One of the two is "".
func (a *Azurite) Environ(sas, key string) []string {
	return []string{
		"AZURE_STORAGE_ACCOUNT=" + a.Account, "AZURE_STORAGE_SAS_TOKEN=" + sas, "AZURE_STORAGE_KEY=" + key,
		"AZURE_STORAGE_BLOB_ENDPOINT=" + a.BlobURL, "AZURE_STORAGE_TABLE_ENDPOINT=" + a.TableURL,
	}
}

// Name returns a fresh name that a container, a table or a part of one may have:
// lower-case letters and digits.
func Name(prefix string) string { return strings.ToLower(prefix + rand.Text()[:12]) }

// missingError reports that a part of the environment is not installed.
type missingError struct{ what string }

func (e *missingError) Error() string {
	return e.what + " is missing; with Node installed, run: npm ci --ignore-scripts"
}

// startAzurite starts an emulator; with a pair it serves HTTPS.
func startAzurite(pair *keyPair) (p *ports, stop func(), err error) {
	root, err := repository()
	if err != nil {
		return nil, nil, err
	}
	script := filepath.Join(root, "node_modules", "azurite", "dist", "src", "azurite.js")
	if _, err := os.Stat(script); err != nil {
		return nil, nil, &missingError{"Azurite"}
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, nil, &missingError{"Node"}
	}
	for try := 1; ; try++ {
		p, stop, err = launch(node, script, pair)
		if err == nil || try == startTries {
			return p, stop, err
		}
	}
}

// repository finds the directory of go.mod at or above the working directory, which
// for a test is that of its package.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod at or above the working directory")
		}
		dir = parent
	}
}

func launch(node, script string, pair *keyPair) (*ports, func(), error) {
	free, err := FreePorts(3)
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "azurite-") // it writes a few files even when its data is in memory
	if err != nil {
		return nil, nil, err
	}
	// azblob speaks a newer version of the protocol than Azurite knows. The queue
	// service cannot be switched off, so it gets a port.
	ctx, cancel := context.WithCancel(context.Background())
	args := []string{script, "--inMemoryPersistence", "--silent", "--disableTelemetry", "--skipApiVersionCheck",
		"--blobPort", free[0], "--queuePort", free[1], "--tablePort", free[2]}
	if pair != nil {
		args = append(args, "--cert", pair.certificate, "--key", pair.key, "--oauth", "basic")
	}
	cmd := exec.CommandContext(ctx, node, args...)
	cmd.Dir = dir
	var all strings.Builder
	for n := range accounts {
		all.WriteString(accountName(n) + ":" + Key + ";")
	}
	cmd.Env = append(os.Environ(), "AZURITE_ACCOUNTS="+all.String())
	var q *queue
	stop := func() {
		if q != nil {
			q.stop()
		}
		cancel()
		cmd.Wait()
		os.RemoveAll(dir)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = start(cmd)
	}
	if err == nil {
		err = waitFor(out, "Azurite Table service is successfully listening")
	}
	if err == nil && pair == nil {
		q, err = newQueue(free[0], free[2])
	}
	switch {
	case err != nil:
		stop()
		return nil, nil, fmt.Errorf("start Azurite: %w", err)
	case pair != nil:
		return &ports{blob: free[0], table: free[2], emulator: free[0], pair: pair}, stop, nil
	}
	return &ports{blob: q.ports[0], table: q.ports[1], emulator: free[0]}, stop, nil
}

// start starts a child that dies with this process, however the process ends. The
// kernel ties the child to the thread that starts it, so that thread is kept.
func start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		started <- cmd.Start()
		select {} // the thread must outlive the child
	}()
	return <-started
}

// waitFor reads lines until one holds text, and goes on reading forever, so that a
// full pipe never blocks the child.
func waitFor(out interface{ Read([]byte) (int, error) }, text string) error {
	found := make(chan error, 1)
	go func() {
		lines := bufio.NewScanner(out)
		var seen []string
		ready := false
		for lines.Scan() {
			if ready {
				continue
			}
			seen = append(seen, lines.Text())
			if ready = strings.Contains(lines.Text(), text); ready {
				found <- nil
			}
		}
		if !ready {
			found <- fmt.Errorf("it ended early: %s", strings.Join(seen, "; "))
		}
	}()
	select {
	case err := <-found:
		return err
	case <-time.After(startTimeout):
		return errors.New("it is not ready in time")
	}
}

// FreePorts returns ports of loopback that nobody listens at, for programs that listen a moment later. They
// are below those that systems give to clients, which might take one in that moment.
func FreePorts(n int) (ports []string, err error) {
	for tries := 0; len(ports) < n; tries++ {
		port := strconv.Itoa(20_000 + mathrand.IntN(12_000))
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			if tries > 1000 {
				return nil, err
			}
			continue
		}
		defer l.Close() // all at the end, so that the ports differ
		ports = append(ports, port)
	}
	return ports, nil
}
