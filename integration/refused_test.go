package integration_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"blobtail/internal/dev/check"
	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
)

// unreadyWith waits until an ingester is not ready for a reason. Its log must name the
// reason and not contradict itself.
func (p *ingester) unreadyWith(t *testing.T, reason string) {
	t.Helper()
	select {
	case <-p.unready:
	case <-p.ready: // on a busy machine, before it has tried the store
	case <-p.Exited:
		t.Fatalf("the ingester ended: %v", p.Cmd.ProcessState)
	}
	testkit.Until(t, "readyz says "+reason, func() bool {
		code, text := p.readyz(t)
		return code == http.StatusServiceUnavailable && strings.HasPrefix(text, "not ready: ") && strings.Contains(text, reason)
	})
	p.waitLog(t, "not ready: nothing can be stored")
	for _, wrong := range []string{"taken and stored as before", "until the store is reached"} {
		if strings.Contains(p.Log(), wrong) {
			t.Errorf("the log says %q", wrong)
		}
	}
}

// An ingester that starts with an empty log on a store that refuses it all accepts nothing,
// and names the reason and the fix. It becomes ready by itself when the store allows it.
func TestRefusedStore(t *testing.T) {
	t.Parallel()
	through, _, px := proxied(t)
	px.set(all(forbid))
	p := launch(t, through, t.TempDir())
	p.unreadyWith(t, "look it up: az storage account keys list")
	if code, answer, _, err := p.post("/ingest/web", []byte(two)); code != http.StatusServiceUnavailable {
		t.Errorf("POST: %d %+v, %v", code, answer, err)
	}
	px.set(healthy)
	p.readyAgain(t)
	p.mustPost("/ingest/web", []byte(two))
	p.mustFlush()
	if n := count(t, through, "web"); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
}

// An ingester with records in its log goes on accepting, as in any state of the store. But
// it says that it is not ready, so that senders with a choice take another one.
func TestRefusedStoreHolding(t *testing.T) {
	t.Parallel()
	through, direct, px := proxied(t)
	ledger, wal := &check.Ledger{}, t.TempDir()
	leaveHolding(t, through, wal, ledger)
	px.set(func(r *http.Request) fault {
		if puts(r) {
			return forbid
		}
		return none
	})
	p := launch(t, through, wal, config(t, small))
	p.unreadyWith(t, "the store takes nothing: create a test object: not authorized")
	sendFor(p, ledger, 1, 300*time.Millisecond)
	px.set(healthy)
	p.readyAgain(t)
	p.mustFlush()
	if rep := verifyLedger(t, direct, ledger); rep.Unknown != 0 || rep.Found != rep.Acked {
		t.Error(rep)
	}
}

// Credentials that are wrong from the start are named by /readyz with their fix, and the
// signature stays secret.
func TestWrongCredentials(t *testing.T) {
	t.Parallel()
	a := shared.Azurite(t)
	good, client := azureStore(t)
	if _, err := client.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	sas := func(rights string, end time.Time) string {
		token, err := a.SAS(rights, end)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	yesterday, tomorrow := time.Now().Add(-24*time.Hour), time.Now().Add(24*time.Hour)
	for name, c := range map[string]struct {
		env  []string
		want string
	}{
		"wrong key":  {a.Environ("", base64.StdEncoding.EncodeToString([]byte("wrong"))), "the key of account " + a.Account + " is refused"},
		"expired":    {a.Environ(sas("rlacwu", yesterday), ""), "the SAS expired at " + yesterday.UTC().Format(time.RFC3339) + "; make a new one"},
		"only reads": {a.Environ(sas("rl", tomorrow), ""), "the SAS has sp=rl and lacks c (create)"},
	} {
		t.Run(name, func(t *testing.T) {
			p := launch(t, place{store: good.store, env: c.env}, t.TempDir())
			p.unreadyWith(t, c.want)
			_, text := p.readyz(t)
			_, said, code := logquery(t, place{store: good.store, env: c.env}, "ls")
			if name != "only reads" && (code != 4 || !strings.Contains(said, c.want)) {
				t.Errorf("logquery: exit code %d, %s; want 4 and %q", code, said, c.want)
			}
			if strings.Contains(text+p.Log()+said, "sig=") {
				t.Error("a signature is shown")
			}
		})
	}
	_, said, code := logquery(t, place{store: "azure:nosuch", env: a.Environ("", testenv.Key)}, "ls")
	if want := "az storage container create --account-name " + a.Account + " --name nosuch"; code != 5 || !strings.Contains(said, want) {
		t.Errorf("a container that is missing: exit code %d, %s; want 5 and %q", code, said, want)
	}
	p := start(t, place{store: good.store, env: a.Environ(sas("rlacwu", tomorrow), "")}, t.TempDir())
	p.mustPost("/ingest/web", []byte(two))
	p.mustFlush()
}

// An address that is taken is named with its process and the flag. A directory of another
// user is named with its owner. Both are errors of a start.
func TestStartRefused(t *testing.T) {
	t.Parallel()
	at, root := dirStore(t)
	p := start(t, at, t.TempDir())
	listen := strings.TrimPrefix(p.listen, "http://")
	q := launch(t, at, t.TempDir(), "--listen", listen)
	<-q.Exited
	want := fmt.Sprintf("listen for records: %s is taken by ingest, process %d; --listen chooses another address", listen, p.Cmd.Process.Pid)
	if code := q.Cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(q.Log(), want) {
		t.Errorf("exit code %d, %s; want 1 and %q", code, q.Log(), want)
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil || os.Getuid() != 0 {
		t.Skip("only root with setpriv can start a process of another user")
	}
	for dir := root; dir != os.TempDir(); dir = filepath.Dir(dir) {
		if dir != root {
			_ = os.Chmod(dir, 0o755)
		}
	}
	own := t.TempDir()
	if err := syscall.Chown(own, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	o := launchBy(t, []string{setpriv, "--reuid", "65534", "--clear-groups"}, at, own)
	<-o.Exited
	want = root + " belongs to user root and this process runs as nobody; run it as root, or choose a directory that is its own"
	if code := o.Cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(o.Log(), want) {
		t.Errorf("exit code %d, %s; want 1 and %q", code, o.Log(), want)
	}
	if err := os.Chmod(root, 0o755); err != nil { // now it can be read, and not written
		t.Fatal(err)
	}
	o = launchBy(t, []string{setpriv, "--reuid", "65534", "--clear-groups"}, at, own)
	o.unreadyWith(t, want)
	theirs := t.TempDir()
	o = launchBy(t, []string{setpriv, "--reuid", "65534", "--clear-groups"}, at, theirs)
	<-o.Exited
	if want := theirs + " belongs to user root and this process runs as nobody"; !strings.Contains(o.Log(), "open the log") || !strings.Contains(o.Log(), want) {
		t.Errorf("%s; want %q", o.Log(), want)
	}
}

// Every host that reaches the listener for records can send and read. So a start beyond loopback
// needs tokens, or the operator lets everybody in with --open, and the ingester warns then.
func TestWarnsBeyondLoopback(t *testing.T) {
	t.Parallel()
	at, _ := dirStore(t)
	const warning = `"message":"every host that reaches this address can send records and read those that are in no blob yet; nobody is authenticated"`
	if p := start(t, at, t.TempDir()); strings.Contains(p.Log(), warning) {
		t.Error("it warns on loopback")
	}
	p := start(t, at, t.TempDir(), "--listen", "0.0.0.0:0", "--open")
	p.waitLog(t, warning)
}
