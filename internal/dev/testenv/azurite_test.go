package testenv_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"testing"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
)

var env testenv.Env

func TestMain(m *testing.M) { os.Exit(env.Run(m)) }

// One emulator serves all tests, and answers on both endpoints.
func TestAzurite(t *testing.T) {
	a := env.Azurite(t)
	if again := env.Azurite(t); again != a {
		t.Error("a second one was started")
	}
	for _, u := range []string{a.BlobURL, a.TableURL} {
		resp, err := http.Get(u)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
}

// The emulator does not outlive a test process that is killed.
func TestAzuriteDiesWithUs(t *testing.T) {
	if os.Getenv("TESTENV_CHILD") != "" {
		fmt.Println("\nhttp://" + env.Azurite(t).Emulator)
		select {}
	}
	env.Azurite(t) // or skip
	child := exec.Command(os.Args[0], "-test.run", "^TestAzuriteDiesWithUs$")
	child.Env = append(os.Environ(), "TESTENV_CHILD=1", "TMPDIR="+t.TempDir())
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var host string
	for lines := bufio.NewScanner(out); host == "" && lines.Scan(); {
		if u, err := url.Parse(lines.Text()); err == nil {
			host = u.Host
		}
	}
	dial := func() error {
		c, err := net.Dial("tcp", host)
		if err == nil {
			c.Close()
		}
		return err
	}
	if err := dial(); err != nil {
		t.Errorf("the child's emulator does not answer: %v", err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	child.Wait()
	testkit.Until(t, "the emulator ends with its parent", func() bool { return dial() != nil })
}
