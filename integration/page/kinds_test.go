package page_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"blobtail/catalog/horizon"
	"blobtail/storage/dir"
)

// stamp is a time as the API has it.
func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000000000Z") }

// span tells the stories a range of time, as the fragment of the page has it.
func (w *world) span(from, to time.Time) { w.facts["from"], w.facts["to"] = stamp(from), stamp(to) }

// emptyWorld has a server, and no record.
func emptyWorld(w *world) error { return errors.Join(w.ingest(), w.serve()) }

// shopWorld has 100,000 records of five services up to a minute ago, 50 records of one ns, and
// a line that was rejected.
func shopWorld(w *world) error {
	if err := errors.Join(w.ingest(), w.serve()); err != nil {
		return err
	}
	to := time.Now().Add(-time.Minute).Truncate(time.Minute)
	c := newShop(100_000, to.Add(-50*time.Minute), 50*time.Minute)
	for c.next() {
	}
	tie := to.Add(-10*time.Minute + 123456789)
	for n := range 50 {
		c.add(tie, "info", "ties", fmt.Sprintf(`"msg":"tie %02d of 50","n":%d`, n, n))
	}
	c.add(tie, "info", "deep", `"msg":"a record with parts","http":{"request":{"method":"GET","path":"/basket","size":12},"status":502},`+
		`"tags":["red","green"],"big":12345678901234567890,"ratio":0.1,"empty":"","none":null,"ok":true,"with \"quotes\" and 'these'":"it's \"quoted\" $HOME \\ back"`)
	for n := range 30 { // new in the last ten minutes
		c.add(to.Add(time.Duration(n-40)*10*time.Second), "error", "stock", fmt.Sprintf(`"msg":"upstream orders-%d refused the connection after %d ms"`, n%7, 100+n*13))
	}
	w.span(to.Add(-50*time.Minute), to)
	c.tell(w.facts)
	w.facts["tie"] = stamp(tie)
	if _, err := post(w.ingesters[0].listen+"/ingest/web", []byte(`{"ts":"2026-13-45T99:00:00Z","level":7,"msg":`+"\n"), ""); err != nil && !strings.Contains(err.Error(), "422") && !strings.Contains(err.Error(), "400") {
		return err
	}
	return w.fill(c.lines.Bytes())
}

// millionWorld has a million records of one service.
func millionWorld(w *world) error {
	if err := errors.Join(w.ingest(), w.serve()); err != nil {
		return err
	}
	to := time.Now().Add(-time.Minute).Truncate(time.Minute)
	from := to.Add(-50 * time.Minute)
	const records = 1_000_000
	var lines bytes.Buffer
	for n := range records {
		level := "info"
		if n%50 == 0 {
			level = "error"
		}
		fmt.Fprintf(&lines, `{"ts":"%s","level":"%s","service":"bulk","msg":"item %d is done","n":%d,"shard":%d}`+"\n",
			stamp(from.Add(time.Duration(n)*3*time.Millisecond)), level, n, n, n%16)
		if lines.Len() > 8<<20 {
			if err := w.ingesters[0].send(lines.Bytes()); err != nil {
				return err
			}
			lines.Reset()
		}
	}
	w.span(from, to)
	w.facts["records"] = records
	return w.fill(lines.Bytes())
}

// liveWorld has an ingester and a server that stories end and start again, and a few records.
func liveWorld(w *world) error {
	if err := errors.Join(w.ingest("--flush-age", "2s", "--flush-min", "1"), w.serve()); err != nil {
		return err
	}
	return w.ingesters[0].send(fmt.Appendf(nil, `{"ts":"%s","level":"info","service":"flow","msg":"before it all","n":-1}`+"\n", stamp(time.Now().Add(-time.Second))))
}

// few are records of a service up to a time.
func few(service string, n int, to time.Time) []byte {
	var lines bytes.Buffer
	for i := range n {
		fmt.Fprintf(&lines, `{"ts":"%s","level":"info","service":"%s","msg":"%s record %d","n":%d}`+"\n",
			stamp(to.Add(-time.Duration(n-i)*time.Second)), service, service, i, i)
	}
	return lines.Bytes()
}

// formsWorld has lines of a program that no logger writes. The operator has said in four lines of the
// server's configuration what is where in them.
func formsWorld(w *world) error {
	err := os.WriteFile(filepath.Join(w.dir, "forms.yaml"), []byte(`forms:
  - services: [shop*]
    form: |-
      <user> bought <item> for <price> (<status>) in <took_ms> ms
`), 0o600)
	if err := errors.Join(err, w.ingest(), w.serve("--config", filepath.Join(w.dir, "forms.yaml"))); err != nil {
		return err
	}
	to := time.Now().Add(-time.Minute).Truncate(time.Minute)
	var lines bytes.Buffer
	for n := range 300 {
		status := 200
		if n%10 == 0 {
			status = 503
		}
		fmt.Fprintf(&lines, `{"ts":"%s","service":"shop-eu",`, stamp(to.Add(time.Duration(n-300)*time.Second)))
		fmt.Fprintf(&lines, `"msg":"user%d bought item-%d for %d (%d) in %d ms"}`+"\n", n%3, n%7, n, status, n%50)
	}
	fmt.Fprintf(&lines, `{"ts":"%s","service":"shop-eu","msg":"the shop opens"}`+"\n", stamp(to.Add(-301*time.Second)))
	w.span(to.Add(-10*time.Minute), to)
	return w.fill(lines.Bytes())
}

// deadWorld has an ingester that was killed while it held 30 records.
func deadWorld(w *world) error {
	if err := errors.Join(w.ingest(), w.ingest(), w.serve()); err != nil {
		return err
	}
	now := time.Now()
	if err := errors.Join(w.fill(few("web", 100, now.Add(-time.Minute))), w.ingesters[1].send(few("web", 30, now))); err != nil {
		return err
	}
	w.facts["held"] = 30
	return w.ingesters[1].End(syscall.SIGKILL)
}

// damagedWorld has a blob of the service web that cannot be read.
func damagedWorld(w *world) error {
	if err := errors.Join(w.ingest(), w.serve()); err != nil {
		return err
	}
	now := time.Now()
	if err := errors.Join(w.fill(few("web", 2000, now.Add(-time.Minute))), w.fill(few("db", 100, now.Add(-time.Minute)))); err != nil {
		return err
	}
	n, err := w.damage("web")
	if err == nil && n == 0 {
		err = errors.New("no blob to damage")
	}
	return err
}

// expiredWorld has a service whose days until yesterday have expired.
func expiredWorld(w *world) error {
	if err := errors.Join(w.ingest(), w.serve()); err != nil {
		return err
	}
	now := time.Now()
	if err := errors.Join(w.fill(few("web", 100, now.Add(-time.Minute))), w.fill(few("web", 100, now.Add(-50*time.Hour)))); err != nil {
		return err
	}
	store, err := dir.Open(w.store(), dir.Options{Create: true})
	if err != nil {
		return err
	}
	ctx, cancel := patience()
	defer cancel()
	w.span(now.Add(-72*time.Hour), now)
	return horizon.Publish(ctx, store, "web", horizon.DayOf(now.Add(-24*time.Hour)))
}

// oldWorld has records of two days ago in several small blobs, which compaction makes one of.
func oldWorld(w *world) error {
	if err := errors.Join(w.ingest(), w.serve()); err != nil {
		return err
	}
	at := time.Now().Add(-50 * time.Hour).Truncate(time.Hour).Add(30 * time.Minute)
	for i := range 4 {
		if err := w.fill(few("web", 200, at.Add(time.Duration(i)*time.Minute))); err != nil {
			return err
		}
	}
	w.span(at.Add(-30*time.Minute), at.Add(30*time.Minute))
	return nil
}

// tokensWorld has a server that wants tokens, behind a proxy that keeps all that passes. One token
// may read the service web, and no byte of vault.
func tokensWorld(w *world) error {
	w.tokens = filepath.Join(w.dir, "tokens.yaml")
	made := make(map[string]string)
	for id, flags := range map[string]string{"sender": "--write '*'", "webonly": "--read web", "all": "--read '*' --read '_*'", "peers": "--peer"} {
		ctx, cancel := patience()
		out, err := shell(ctx, w.dir, "ingest token new "+id+" --file "+w.tokens+" "+flags)
		cancel()
		if err != nil || out.Code != 0 {
			return fmt.Errorf("ingest token new: %w %+v", err, out)
		}
		made[id] = strings.TrimSpace(out.Stdout)
	}
	if err := w.ingest("--tokens", w.tokens); err != nil {
		return err
	}
	w.ingesters[0].token = made["sender"]
	if err := w.serve("--tokens", w.tokens); err != nil {
		return err
	}
	now := time.Now()
	var vault bytes.Buffer
	for i := range 200 {
		fmt.Fprintf(&vault, `{"ts":"%s","level":"error","service":"vault","msg":"xyzzy the safe is open %d","frobozz":"plugh-%d","zorkmid":%d}`+"\n", stamp(now.Add(-time.Duration(i)*time.Second)), i, i, i)
	}
	if err := w.fill(append(few("web", 300, now.Add(-time.Second)), vault.Bytes()...)); err != nil {
		return err
	}
	// Some are in no blob yet.
	if err := w.ingesters[0].send(append(few("web", 20, now), bytes.ReplaceAll(vault.Bytes(), []byte("open"), []byte("shut"))...)); err != nil {
		return err
	}
	w.facts["tokens"] = made
	w.facts["needles"] = []string{"vault", "xyzzy", "plugh", "zorkmid", "frobozz"}
	return w.record()
}

// incidentWorld is that of `make try`, without new records.
func incidentWorld(w *world, flags ...string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(shared.bin, "try"), "./internal/dev/try")
	cmd.Dir, cmd.Env = shared.root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build try: %w: %s", err, out)
	}
	w.server = &process{name: "try", dir: w.dir, args: append([]string{"-bin", shared.bin, "-json", "-free", "-rate", "0", "-records", "100000"}, flags...)}
	if err := w.server.start(); err != nil {
		return err
	}
	if err := json.Unmarshal(w.server.first, &w.facts); err != nil {
		return err
	}
	w.url = w.facts["serve"].(string)
	return nil
}
