package integration_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"blobtail/internal/cli"
	"blobtail/internal/dev/testkit"
)

// A file of settings that the user of a process may not read is named with that user, its owner and
// mode, and the command that lets the user in: for each command and each kind of file. A port that
// the user may not open has the ways to it.
func TestUnreadableSettings(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can start a process of another user")
	}
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.Mkdir(at("closed"), 0o700), os.WriteFile(at("closed/key.pem"), nil, 0o644), os.Symlink("closed/key.pem", at("link.pem")),
		os.Mkdir(at("store"), 0o777), os.Chmod(at("store"), 0o777)); err != nil {
		t.Fatal(err)
	}
	openTo(t, at("store"))
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"root": 0o600, "group": 0o600, "open.pem": 0o644} {
		if err := errors.Join(os.WriteFile(at(name), nil, 0o600), os.Chmod(at(name), mode)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Chown(at("group"), 0, 65534), os.WriteFile(at("own"), nil, 0o200), os.Chown(at("own"), 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	const me = ", and this process runs as user nobody; "
	root := at("root") + " belongs to root:root and has the mode 0600" + me + "run as root: chgrp nogroup " + at("root") + " && chmod g+r " + at("root")
	group := at("group") + " belongs to root:nogroup and has the mode 0600" + me + "run as root: chmod g+r " + at("group")
	own := at("own") + " belongs to nobody:nogroup and has the mode 0200" + me + "run: chmod u+r " + at("own")
	closed := at("closed") + " belongs to root:root and has the mode 0700" + me + "copy the file to a directory that this user may read, or run as root: chgrp nogroup " +
		at("closed") + " && chmod g+x " + at("closed")
	// As /etc/blobtail: the group of another user is there for that user.
	if err := errors.Join(os.Mkdir(at("daemons"), 0o750), os.WriteFile(at("daemons/blobtail.yaml"), nil, 0o640), os.Chown(at("daemons"), 0, 1)); err != nil {
		t.Fatal(err)
	}
	ofGroup := at("daemons") + " belongs to root:daemon and has the mode 0750" + me + "run it as a user of the group daemon (runuser -u USER -- COMMAND), or copy the file to a directory that user nobody may read"
	port := "user nobody may not open port 1: those below 1024 are for root; take one from 1024 on, or run as root: setcap cap_net_bind_service=+ep " + shared.bin
	store := "--store=dir:" + at("store")
	for _, c := range []struct {
		want string
		code int
		args []string
	}{
		{root, cli.Failed, []string{"ingest", "check-config", "--tokens", at("root")}},
		{group, cli.Failed, []string{"ingest", "check-config", "--tokens", at("group")}},
		{own, cli.Failed, []string{"ingest", "check-config", "--tokens", at("own")}},
		{root, cli.Failed, []string{"ingest", "token", "list", "--file", at("root")}},
		{root, cli.Failed, []string{"ingest", "token", "revoke", "x", "--file", at("root")}},
		{root, cli.Usage, []string{"ingest", "--config", at("root")}},
		{ofGroup, cli.Usage, []string{"ingest", "check", "--config", at("daemons/blobtail.yaml")}},
		{closed, cli.Failed, []string{"ingest", "check-config", "--tls-cert", at("open.pem"), "--tls-key", at("closed/key.pem")}},
		{closed, cli.Failed, []string{"ingest", "check-config", "--tls-cert", at("open.pem"), "--tls-key", at("link.pem")}},
		{root, cli.Failed, []string{"ingest", store, "--wal", at("store/log"), "--admin", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--tokens", at("root")}},
		{port, cli.Failed, []string{"ingest", store, "--wal", at("store/log"), "--admin", "127.0.0.1:0", "--listen", "127.0.0.1:1"}},
		{root, cli.Usage, []string{"logquery", "serve", store, "--tokens", at("root")}},
		{closed, cli.Usage, []string{"logquery", "serve", store, "--tls-cert", at("open.pem"), "--tls-key", at("link.pem")}},
		{port, cli.Usage, []string{"logquery", "serve", store, "--listen", "127.0.0.1:1"}},
		{root, cli.Usage, []string{"logquery", "ls", store, "--token-file", at("root")}},
		{root, cli.Usage, []string{"logquery", "ls", store, "--config", at("root")}},
		{root, cli.Usage, []string{"retention", "plan", store, "--config", at("root")}},
	} {
		if first, err := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start"); c.want == port && (err != nil || strings.TrimSpace(string(first)) != "1024") {
			t.Logf("each user may open a low port here: %s", first)
			continue
		}
		cmd := exec.Command(filepath.Join(shared.bin, c.args[0]), c.args[1:]...)
		cmd.Env, cmd.Dir = testkit.Environ(), "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(out), c.want) {
			t.Errorf("%v: exit %d: %s\nwant %d and %s", c.args, code, out, c.code, c.want)
		}
	}
}
