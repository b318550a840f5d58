package interop_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

// python returns a ship function that runs the handlers of Python's logging.
func python(handler string) func(*run) map[string]bool {
	return func(r *run) map[string]bool {
		r.t.Helper()
		cmd := r.command("python3", filepath.Join(shared.root, "integration", "interop", "clients", "logging_handlers.py"))
		cmd.Env = append(cmd.Env, "INTEROP_URL="+r.url(), "INTEROP_RECORDS="+r.file, "INTEROP_SERVICE="+service, "INTEROP_HANDLER="+handler,
			fmt.Sprint("INTEROP_PAUSE=", r.pause().Milliseconds()))
		if err := r.waitFor(cmd, 4*time.Minute); err != nil {
			r.t.Fatalf("%s: %v\n%.2000s", handler, err, r.output.String())
		}
		return nil
	}
}

// pythonClients are the handlers of Python's logging. They tell nobody of an answer, and look at none.
func pythonClients() []*client {
	version := versionOf("python3")
	only := map[fault]string{restart: "it looks at no answer", full: "it looks at no answer", lost: "it looks at no answer"}
	created := func(s *sent) want {
		w := ms(s)
		w.to += time.Millisecond.Nanoseconds()
		return w
	}
	return []*client{
		{name: "Python HTTPHandler, POST", version: version, wire: "`/ingest`, a form", ship: python("POST"), want: created, without: only},
		{name: "Python HTTPHandler, GET", version: version, wire: "`/ingest`, a query", ship: python("GET"), want: created, maxLen: 4000, without: only},
		{name: "Python SysLogHandler", version: version, wire: "syslog over TCP, ended by NUL", ship: python("syslog"), want: arrival,
			raw: true, textOnly: true, without: only},
	}
}

// TestNoSyslog sends what is no syslog: pickle of Python, by its SocketHandler.
func TestNoSyslog(t *testing.T) {
	if shared.mode != "quick" && shared.mode != "all" {
		t.Skip("BLOBTAIL_INTEROP is neither quick nor all")
	}
	r := newRun(t, &client{raw: true, name: "Python SocketHandler", version: versionOf("python3")}, plain)
	r.c.version(t) // or skip
	r.i = newIngester(t, r.config)
	r.p = newProxy(t, r.i.syslog, false)
	python("socket")(r)
	r.i.flush()
	stored, rejected := r.i.read("*"), r.i.read("_*")
	if n := bytes.Count(rejected, []byte("\n")); len(stored) > 0 || n == 0 || !bytes.Contains(rejected, []byte("SysLogHandler")) {
		t.Errorf("stored %.500s, rejected %.2000s", stored, rejected)
	}
}
