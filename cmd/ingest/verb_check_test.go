package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit/certstest"
	"blobtail/storage/azure"
)

// checked runs `ingest check` and returns its exit code and its lines by name.
func checked(t *testing.T, args ...string) (code int, lines map[string]string) {
	t.Helper()
	var out, err bytes.Buffer
	code = command(append([]string{"check"}, args...), &out, &err)
	if err.Len() > 0 {
		t.Errorf("stderr: %s", err.String())
	}
	lines = map[string]string{}
	for line := range strings.Lines(out.String()) {
		// STATE NAME  TEXT; a name may have a blank.
		if len(line) < 24 {
			t.Fatalf("line %q", line)
		}
		lines[strings.TrimSpace(line[9:24])] = strings.TrimSpace(line[:9]) + ": " + strings.TrimSpace(line[24:])
	}
	return code, lines
}

// expect compares lines with the beginning of those that are wanted.
func expect(t *testing.T, lines, want map[string]string) {
	t.Helper()
	for name, text := range want {
		if !strings.HasPrefix(lines[name], text) {
			t.Errorf("%s: %q, want %q", name, lines[name], text)
		}
	}
}

// anywhere returns the flags for two addresses that the system chooses.
func anywhere() []string { return []string{"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"} }

// A directory that is not there yet is not made. One that is, is left as it was.
func TestCheckDir(t *testing.T) {
	root := filepath.Join(t.TempDir(), "deep", "store")
	args := append(anywhere(), "--store", "dir:"+root)
	code, lines := checked(t, args...)
	expect(t, lines, map[string]string{
		"configuration": "ok: sound", "store": "ok: there is none at " + root + " yet; the ingester makes it in ",
		"log directory": "ok: " + root + "/.wal is missing", "records": "ok: 127.0.0.1:", "operators": "ok: 127.0.0.1:",
	})
	if _, err := os.Stat(filepath.Dir(root)); code != cli.OK || !os.IsNotExist(err) {
		t.Errorf("exit code %d, %v", code, err)
	}
	if err := os.MkdirAll(root+"/.wal", 0o700); err != nil {
		t.Fatal(err)
	}
	code, lines = checked(t, args...)
	expect(t, lines, map[string]string{
		"blobs": "ok: objects can be created, read and listed in dir:" + root, "tables": "ok: ", "clock": "ok: ", "identity": "ok: ",
		"log directory": "ok: " + root + "/.wal can be written",
	})
	if code != cli.OK {
		t.Errorf("exit code %d", code)
	}
	for _, dir := range []string{root, root + "/.wal", root + "/.tables"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Error(err)
		}
		for _, e := range entries {
			if name := e.Name(); name != ".wal" && name != ".tables" {
				t.Errorf("the check leaves %s/%s", dir, name)
			}
		}
	}
}

// Each problem of a host has its line with the fix, and the others are checked all the same.
func TestCheckProblems(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	mine := fmt.Sprintf(", process %d; --listen chooses another address", os.Getpid())
	code, lines := checked(t, "--listen", l.Addr().String(), "--admin", "192.0.2.1:1", "--store", "dir:"+file, "--wal", file+"/wal",
		"--nats", "nats://127.0.0.1:1")
	expect(t, lines, map[string]string{
		"configuration": "ok", "store": "problem: open store " + file + ": it is a file; dir:PATH names a directory",
		"log directory": "problem: ", "records": "problem: " + l.Addr().String() + " is taken by ", "operators": "problem: listen tcp 192.0.2.1:1",
		"NATS": "problem: no connection to NATS at ",
	})
	if code != cli.Failed || !strings.HasSuffix(lines["records"], mine) || !strings.HasSuffix(lines["NATS"], "start it, or correct --nats (nats.url)") {
		t.Errorf("exit code %d; %v", code, lines)
	}
	args := append(anywhere(), "--store", "dir:"+dir)
	args[1] = "0.0.0.0:0"
	if code, lines := checked(t, args...); code != cli.Failed || !strings.Contains(lines["records"], "is open to other hosts, and there are no tokens; make a file of tokens") {
		t.Errorf("beyond loopback without tokens: %d, %v", code, lines)
	}
	if code, lines := checked(t, append(args, "--open")...); code != cli.OK || !strings.HasSuffix(lines["records"], "is free; "+openToOthers) {
		t.Errorf("beyond loopback: %d, %v", code, lines)
	}
	if code := command([]string{"check", "--period", "7m"}, &bytes.Buffer{}, &bytes.Buffer{}); code != cli.Usage {
		t.Errorf("a configuration that is not sound: %d", code)
	}
}

// A certificate that has ended is no sound one, that of the listener for records and that of
// syslog.
func TestCheckCertificates(t *testing.T) {
	a, dir := certstest.New(t), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	certstest.Write(t, at("ended.pem"), at("ended.key"), a.Server("localhost", -time.Minute))
	certstest.Write(t, at("good.pem"), at("good.key"), a.Server("localhost", time.Hour))
	conf := at("blobtail.yaml")
	for _, c := range []struct {
		records, syslog string
		code            int
	}{{"good", "good", cli.OK}, {"ended", "good", cli.Failed}, {"good", "ended", cli.Failed}} {
		text := fmt.Sprintf("tls: {cert: %[1]s/%[2]s.pem, key: %[1]s/%[2]s.key}\nsyslog: {listen: \"127.0.0.1:0\", cert: %[1]s/%[3]s.pem, key: %[1]s/%[3]s.key}\n", dir, c.records, c.syslog)
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, said bytes.Buffer
		code := command([]string{"check-config", "--config", conf}, &out, &said)
		if code != c.code || code != cli.OK && (strings.Contains(out.String(), "sound") || !strings.Contains(said.String(), at("ended.pem")+": it ended at 20")) {
			t.Errorf("%+v: %d %s%s", c, code, &out, &said)
		}
		code, lines := checked(t, append(anywhere(), "--store", "dir:"+at("store"), "--config", conf)...)
		want := map[string]string{"TLS": "ok: ", "syslog": "ok: "}
		if c.records == "ended" {
			want["TLS"] = "problem: certificate " + at("ended.pem") + ": it ended at 20"
		}
		if c.syslog == "ended" {
			want["syslog"] = "problem: certificate " + at("ended.pem") + ": it ended at 20"
		}
		if code != c.code {
			t.Errorf("%+v: check exits %d: %v", c, code, lines)
		}
		expect(t, lines, want)
	}
}

// An address that is announced and that the certificate does not have is a problem: readers and
// other ingesters refuse the ingester there.
func TestCheckAdvertised(t *testing.T) {
	a, dir := certstest.New(t), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	certstest.Write(t, at("tls.pem"), at("tls.key"), a.Server("logs-a.example.com", time.Hour))
	secure := append(anywhere(), "--store", "dir:"+at("store"), "--tls-cert", at("tls.pem"), "--tls-key", at("tls.key"))
	for _, c := range []struct {
		args []string
		want string // of the problem; "": there is none
	}{
		{[]string{"--advertise", "https://logs-a.example.com:8514"}, ""},
		{[]string{"--advertise", "https://10.0.0.4:8514", "--server-name", "logs-a.example.com"}, ""},
		{[]string{"--advertise", "https://10.0.0.4:8514", "--behind-proxy"}, ""},
		{[]string{"--advertise", "https://10.0.0.4:8514"}, "its certificate is for logs-a.example.com, and not for 10.0.0.4, so readers and other ingesters refuse it"},
		{[]string{"--advertise", "https://logs-b.example.com:8514"}, "and not for logs-b.example.com"},
		{[]string{"--advertise", "http://logs-a.example.com:8514"}, "the listener for records speaks TLS; write https://logs-a.example.com:8514"},
		{[]string{"--ca", at("none.pem")}, "open " + at("none.pem") + ": no such file or directory; correct the path"},
		{[]string{"--tls-ca", at("tls.key")}, at("tls.key") + ": it has no certificate in PEM but a private key"},
	} {
		var out, said bytes.Buffer
		code := command(append(append([]string{"check-config"}, secure...), c.args...), &out, &said)
		if (code == cli.OK) != (c.want == "") || !strings.Contains(said.String(), c.want) {
			t.Errorf("check-config %v: %d %s%s", c.args, code, &out, &said)
		}
		code, lines := checked(t, append(slices.Clone(secure), c.args...)...)
		text := lines["advertise"] + lines["access"]
		if (code == cli.OK) != (c.want == "") || !strings.Contains(text, c.want) {
			t.Errorf("check %v: %d %v", c.args, code, lines)
		}
	}
}

// A directory for temporary files that cannot be used is a problem.
func TestCheckTemporary(t *testing.T) {
	args := append(anywhere(), "--store", "dir:"+filepath.Join(t.TempDir(), "store"))
	t.Setenv("TMPDIR", t.TempDir())
	_, lines := checked(t, args...)
	expect(t, lines, map[string]string{"temporary": "ok: " + os.Getenv("TMPDIR") + " can be written"})
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	code, lines := checked(t, args...)
	expect(t, lines, map[string]string{"temporary": "problem: no temporary file can be written to " + os.Getenv("TMPDIR") + ": no such file or directory; make it, or set TMPDIR"})
	if code != cli.Failed {
		t.Errorf("exit code %d", code)
	}
}

// The check names the owner of a directory of another user. Root could write there, and the owner
// could not read the files.
func TestCheckOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	store, wal := t.TempDir(), t.TempDir()
	for _, dir := range []string{store, wal} {
		if err := syscall.Chown(dir, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	code, lines := checked(t, append(anywhere(), "--store", "dir:"+store, "--wal", wal)...)
	expect(t, lines, map[string]string{
		"store":         "problem: " + store + " belongs to user nobody; run the ingester and this check as nobody",
		"log directory": "problem: " + wal + " belongs to user nobody; run the ingester and this check as nobody",
	})
	if entries, err := os.ReadDir(store); code != cli.Failed || err != nil || len(entries) > 0 {
		t.Errorf("exit code %d; %v, %v", code, entries, err)
	}
}

// damaged is a SAS with another signature of the same length. The parts of a SAS are sorted, so
// that others may follow the signature.
func damaged(sas string) string {
	begin, rest, _ := strings.Cut(sas, "sig=")
	first := 1
	if rest[0] == '%' {
		first = 3
	}
	if rest[0] == 'A' {
		return begin + "sig=B" + rest[first:]
	}
	return begin + "sig=A" + rest[first:]
}

// cutShort is a SAS with the beginning of its signature.
func cutShort(sas string) string {
	begin, rest, _ := strings.Cut(sas, "sig=")
	_, others, _ := strings.Cut(rest, "&")
	whole, _, _ := strings.Cut(rest, "%") // a character in three is not cut
	return begin + "sig=" + whole[:min(len(whole), 20)] + "AA&" + others
}

// A server of NATS without JetStream is named with the flag that starts it.
func TestCheckNATS(t *testing.T) {
	n := testenv.StartNATS(t, func(o *server.Options) { o.JetStream = false })
	code, lines := checked(t, append(anywhere(), "--store", "dir:"+t.TempDir(), "--nats", n.URL)...)
	if want := "problem: the server at " + n.URL + " runs without JetStream: start it with -js"; code != cli.Failed || !strings.HasPrefix(lines["NATS"], want) {
		t.Errorf("exit %d, %q, want %q", code, lines["NATS"], want)
	}
}

// Credentials of Azure that are wrong are named with their fix, for blobs and for tables.
func TestCheckAzure(t *testing.T) {
	a := env.Azurite(t)
	container := testenv.Name("c")
	yesterday, tomorrow := time.Now().Add(-24*time.Hour), time.Now().Add(24*time.Hour)
	sas := func(rights string, end time.Time) string {
		token, err := a.SAS(rights, end)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	made, err := azure.Open(container, azure.Options{Getenv: a.Getenv})
	if err != nil {
		t.Fatal(err)
	}
	if err := made.EnsureContainer(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, container, sas, key string
		code                      int
		want                      map[string]string
	}{
		{"key", testenv.Name("new"), "", testenv.Key, cli.OK, map[string]string{"blobs": "ok: ", "tables": "ok: ", "identity": "ok: ", "clock": "ok: "}},
		{"SAS of an ingester", container, sas("rlacwu", tomorrow), "", cli.OK, map[string]string{"blobs": "ok: ", "tables": "ok: ", "clock": "ok: "}},
		{"wrong key", container, "", base64.StdEncoding.EncodeToString([]byte("wrong")), cli.Failed, map[string]string{
			"blobs": "problem: ~the key of account " + a.Account + " is refused", "tables": "problem: ~the key of account " + a.Account + " is refused", "clock": "ok: "}},
		{"expired", container, sas("rlacwu", yesterday), "", cli.Failed, map[string]string{
			"blobs": "problem: ~the SAS expired at " + yesterday.UTC().Format(time.RFC3339), "tables": "problem: ~the SAS expired at "}},
		{"damaged signature", container, damaged(sas("rlacwu", tomorrow)), "", cli.Failed, map[string]string{
			"blobs": "problem: ~the signature of the SAS is wrong: copy the SAS whole, in quotes: its ", "tables": "problem: ~the signature of the SAS is wrong: copy the SAS whole"}},
		{"cut signature", container, cutShort(sas("rlacwu", tomorrow)), "", cli.Failed, map[string]string{
			"blobs": "problem: ~the signature of the SAS is wrong: it has ", "tables": "problem: ~ characters, and must have 44"}},
		{"only reads", container, sas("rl", tomorrow), "", cli.Failed, map[string]string{
			"blobs": "problem: create a test object: ~the SAS has sp=rl and lacks c (create)", "tables": "problem: ~the SAS has sp=rl and lacks a (add)"}},
		{"changes no row", container, sas("rlacw", tomorrow), "", cli.Failed, map[string]string{
			"blobs": "ok: ", "tables": "problem: ~the SAS has sp=rlacw and lacks u (update)"}},
		{"adds no row", container, sas("rlcwu", tomorrow), "", cli.Failed, map[string]string{
			"blobs": "ok: ", "tables": "problem: ~the SAS has sp=rlcwu and lacks a (add)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, v := range a.Environ(c.sas, c.key) {
				name, value, _ := strings.Cut(v, "=")
				t.Setenv(name, value)
			}
			code, lines := checked(t, append(anywhere(), "--store", "azure:"+c.container, "--wal", t.TempDir())...)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			for name, want := range c.want {
				begin, fix, _ := strings.Cut(want, "~")
				if !strings.HasPrefix(lines[name], begin) || !strings.Contains(lines[name], fix) || strings.Contains(strings.ReplaceAll(lines[name], "its sig= ends", ""), "sig=") {
					t.Errorf("%s: %q, want %q", name, lines[name], want)
				}
			}
		})
	}
	for b, err := range made.List(t.Context(), "", "") {
		t.Errorf("the checks leave %s, %v", b.Key, err)
	}
}

// The command reads the output of print-config as the same configuration, with any texts in it.
func TestPrintConfigAnyText(t *testing.T) {
	parts := []string{"$", "$$", "${HOME}", `"`, "'", `\`, `\n`, "\n", "\t", " ", ":", ": ", "#", "-", "~", "null", "{", "]", ",", "a", "é", "日本", "\u0085", "\u2028", "\x07"}
	r := rand.New(rand.NewPCG(1, 2))
	draw := func() (text string) {
		for range 1 + r.IntN(5) {
			text += parts[r.IntN(len(parts))]
		}
		if strings.HasPrefix(text, "~") { // no path begins so
			return "./" + text
		}
		return text
	}
	path := filepath.Join(t.TempDir(), "c.yaml")
	for range 200 {
		c := config.Default()
		c.Ingest.WAL, c.Access.Tokens, c.TLS.Cert, c.TLS.Key = draw(), draw(), draw(), draw()
		if err := c.Store.UnmarshalText([]byte("dir:/x/" + draw())); err != nil {
			t.Fatal(err)
		}
		want, err := c.YAML()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		if code := command([]string{"print-config", "--config", path}, &out, &errs); code != cli.OK || out.String() != string(want) {
			t.Fatalf("exit %d, %s\n%s\nwant\n%s", code, &errs, &out, want)
		}
	}
}
