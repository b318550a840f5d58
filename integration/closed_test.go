package integration_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/blobfmt"
	"blobtail/blobwriter"
	"blobtail/catalog/closed"
	"blobtail/catalog/horizon"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/storagetest"
)

// A vault is a directory store of 12 services and 10 days, which are closed. A day of web has a late
// blob, and the hours of cache were compacted. Its methods change it beside all programs.
type vault struct {
	t      *testing.T
	at     place
	root   string
	public string // file of the public key
	flag   string // --config
	day    horizon.Day
}

// A slice is a batch of records of an hour.
type slice struct {
	service string
	at      time.Time
	n       byte // tells it from the others
	records int
	pin     []byte
}

func (s *slice) ID() [16]byte {
	sum := sha256.Sum256(fmt.Append(nil, s.service, s.at, s.n))
	return [16]byte(sum[:])
}
func (s *slice) Service() string   { return s.service }
func (s *slice) Period() time.Time { return s.at }
func (s *slice) Attempts() int     { return 0 }
func (s *slice) Pin() []byte       { return s.pin }
func (s *slice) Walk(pin []byte)   { s.pin = pin }

func (s *slice) Each(_ context.Context, f func(line []byte, t int64, origin record.Origin, index uint32) error) error {
	for i := range s.records {
		at := s.at.Add(time.Duration(i)*10*time.Minute + time.Duration(s.n)*time.Second).UnixNano()
		line := record.AppendTime([]byte(`{"ts":"`), at)
		line = fmt.Appendf(line, `","level":"info","service":%q,"msg":"record","pad":"%d"}`+"\n", s.service, at)
		if err := f(line, at, record.Origin(s.ID()), uint32(i)); err != nil {
			return err
		}
	}
	return nil
}

// newVault makes the store by the writer of the ingester and the commands of retention.
func newVault(t *testing.T) *vault {
	t.Helper()
	at, root := dirStore(t)
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	e := newEstate(t, at, "default: 90d")
	v := &vault{t: t, at: at, root: root, day: e.day(6), public: filepath.Join(t.TempDir(), "public.pem")}
	key := filepath.Join(t.TempDir(), "key.pem")
	var public bytes.Buffer
	if errs, code := ran(t, exec.Command(filepath.Join(shared.bin, "retention"), "key", key), &public); code != 0 {
		t.Fatalf("retention key exits %d: %s", code, errs)
	}
	if err := os.WriteFile(v.public, public.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	e.flag = config(t, fmt.Sprintf("tail: {prefix: %s}\nclose: {key: %s}\n", e.prefix, key))
	v.flag = e.flag
	for ago := range 10 {
		start := e.day(3 + ago).Start()
		for n := range 10 {
			v.write(&slice{service: fmt.Sprintf("other%d", n), at: start.Add(15 * time.Hour), records: 2})
		}
		for _, hour := range []time.Duration{3, 15, 16} {
			for n := range byte(2) {
				v.write(&slice{service: "web", at: start.Add(hour * time.Hour), n: n, records: 4})
				v.write(&slice{service: "cache", at: start.Add(hour * time.Hour), n: n, records: 4})
			}
		}
	}
	e.must(0, "close")
	v.write(&slice{service: "web", at: v.day.Start().Add(15 * time.Hour), n: 9, records: 1}) // late
	e.must(0, "compact", "--service", "cache")
	e.must(0, "compact", "--service", "cache", "--grace", "0s")
	e.must(0, "close")
	return v
}

func (v *vault) write(s *slice) {
	v.t.Helper()
	w := blobwriter.New(blobsOfPlace(v.t, v.at), blobwriter.Options{}, nil)
	s.pin = w.Plan(s.Service(), s.Period())
	if err := w.Write(v.t.Context(), s); err != nil {
		v.t.Fatal(err)
	}
}

// copy copies the store.
func (v *vault) copy(t *testing.T) *vault {
	t.Helper()
	to := filepath.Join(t.TempDir(), "store")
	if out, err := exec.Command("cp", "-al", v.root, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return &vault{t: t, at: place{store: "dir:" + to}, root: to, public: v.public, flag: v.flag, day: v.day}
}

// key is that of an object of the day. Objects are files.
func (v *vault) key(service, name string) string {
	return strings.TrimSuffix(closed.PartPrefix(service, v.day), "_closed.") + name
}

func (v *vault) remove(keys ...string) {
	v.t.Helper()
	for _, key := range keys {
		err := errors.Join(os.Chmod(filepath.Join(v.root, key), 0o700), os.RemoveAll(filepath.Join(v.root, key)))
		if err != nil {
			v.t.Fatal(err)
		}
	}
}

func (v *vault) move(from, to string) {
	v.t.Helper()
	if err := os.Rename(filepath.Join(v.root, from), filepath.Join(v.root, to)); err != nil {
		v.t.Fatal(err)
	}
}

// rewrite stores a blob anew, with right checksums and its old batch, but without its first record.
func (v *vault) rewrite(key string) {
	v.t.Helper()
	storagetest.Edit(v.t, blobsOfPlace(v.t, v.at), key, func(o *storage.Blob, body []byte) []byte {
		was, err := blobfmt.ParseMeta(o.Metadata)
		enc, failed := blobfmt.NewEncoder(blobfmt.EncoderOptions{})
		if err = errors.Join(err, failed); err != nil {
			v.t.Fatal(err)
		}
		var lines [][]byte
		for frame, err := range blobfmt.NewDecoder(1).Walk(key, body) {
			if err != nil {
				v.t.Fatal(err)
			}
			lines = slices.AppendSeq(lines, bytes.Lines(bytes.Clone(frame.Lines)))
		}
		for n, line := range lines[1:] {
			at, _ := record.LineTime(line)
			err = errors.Join(err, enc.Add(line, at, record.Origin{1}, uint32(n)))
		}
		body, meta, failed := enc.Finish(was.Batch)
		if err = errors.Join(err, failed); err != nil {
			v.t.Fatal(err)
		}
		o.Metadata = meta.Map()
		return bytes.Clone(body)
	})
}

// verify fails the test unless the command ends with a code, and says a text.
func (v *vault) verify(code int, says string) {
	v.t.Helper()
	_, errs, got := answered(v.t, v.at, "verify", "--public-key", v.public)
	if got != code || !strings.Contains(errs, says) {
		v.t.Errorf("verify exits %d, want %d with %q:\n%.2000s", got, code, says, errs)
	}
}

// reads asks for a service and the day in every way, also through a server: each answer has to be
// incomplete and to name what lacks, or each has to be complete.
func (v *vault) reads(service, key string, complete bool) {
	v.t.Helper()
	s := serve(v.t, v.at)
	through := place{store: v.at.store, env: []string{"BLOBTAIL_SERVER=" + s.url}}
	hour := v.span(15*time.Hour, 16*time.Hour)
	for _, args := range [][]string{
		{service}, {service, "-n", "5"}, {"*", "-n", "5"}, {service, "--first", "100"}, {service, "--count"}, {"*", "--count"},
		{"hist", service}, {"hist", "*"}, {"top", "msg", service}, {"patterns", service}, {"fields", service},
	} {
		v.told(complete, key, v.at, append(args, hour...)...)
		if args[len(args)-1] == service {
			v.told(complete, key, through, append(args, hour...)...)
		}
	}
	spans := [][]string{
		v.span(0, 24*time.Hour), v.span(-50*time.Hour, 50*time.Hour), {"--from", "-900h"}, v.span(12*time.Hour, 20*time.Hour), nil,
	}
	for i, args := range [][]string{{service}, {service[:2] + "*", "-n", "10000"}, {"*", "--count"}, {"hist", "*"}, {"*", "-n", "10000"}} {
		args = append(args, spans[i]...)
		v.told(complete, key, v.at, args...)
		v.told(complete, key, through, args...)
	}
	for _, r := range everyRoute(v.day.Start().Add(23*time.Hour), key, "none") { // of this day alone
		if r.fixed || r.stored || strings.Contains(r.path, "none") {
			continue
		}
		path := strings.NewReplacer("web", service).Replace(r.path)
		code, body, err := s.get(path, r.headers...)
		if r.lists && code == 200 && bytes.Contains(body, []byte(service)) && regexp.MustCompile("series|/values").MatchString(path) {
			continue // it has names of services alone
		}
		if got := claims(code, body, err); got != complete || !complete && err == nil && !bytes.Contains(body, []byte(key)) {
			v.t.Errorf("%s %v claims %v, want %v: %d, %v, %.300s", path, r.headers, got, complete, code, err, body)
		}
	}
}

// span are the flags of a range, counted from the start of the day.
func (v *vault) span(from, to time.Duration) []string {
	at := func(d time.Duration) string { return v.day.Start().Add(d).Format(time.RFC3339) }
	return []string{"--from", at(from), "--to", at(to)}
}

// told fails the test unless a command says that its answer is complete or not, and says a text.
func (v *vault) told(complete bool, says string, at place, args ...string) {
	v.t.Helper()
	_, errs, code := answered(v.t, at, args...)
	found := !strings.Contains(errs, "0 records in that range")
	if code > 3 || code == 2 || code != 3 != complete || code == 1 && found || !strings.Contains(errs, says) {
		v.t.Errorf("logquery %s of %s, %s: exit %d, want whole %v, and %q: %.1000s",
			strings.Join(args, " "), at.store, at.env, code, complete, says, errs)
	}
}

// Whatever is done to a closed store by hand, verify exits 3 and names it. If a blob that its account
// has is missing, so does each read that touches it.
func TestClosedByHand(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	v.verify(0, "signed by")
	v.reads("web", "", true)
	target := v.key("web", "1500/000001.log")
	made := storagetest.KeysOf(t, blobsOfPlace(t, v.at), v.key("cache", "1500/"))
	parts := storagetest.KeysOf(t, blobsOfPlace(t, v.at), v.key("web", "_closed."))
	if len(made) != 1 || len(parts) != 2 {
		t.Fatalf("compacted to %v; parts %v", made, parts)
	}
	for name, c := range map[string]struct {
		do      func(v *vault)
		named   string
		service string // that reads lack something of; "": of none
		// accepted is a loss that can be accepted, and nothing is wrong then.
		accepted bool
	}{
		"a blob removed":  {func(v *vault) { v.remove(target) }, target, "web", true},
		"an hour removed": {func(v *vault) { v.remove(v.key("web", "1500")) }, target, "web", true},
		"a day's blobs removed": {func(v *vault) {
			v.remove(v.key("web", "0300"), v.key("web", "1500"), v.key("web", "1600"))
		}, v.key("web", ""), "web", true},
		"a day removed":         {func(v *vault) { v.remove(v.key("web", "")) }, v.key("web", "_closed.*"), "web", false},
		"a compacted blob":      {func(v *vault) { v.remove(made[0]) }, made[0], "cache", true},
		"under another service": {func(v *vault) { v.move(target, v.key("cache", "1500/000001.log")) }, target[len("web"):], "web", false},
		"the newest part": {func(v *vault) {
			v.remove(v.key("web", "1500/000003.log"), parts[1])
		}, v.key("web", "_closed.*"), "", false},
		"two blobs swapped": {func(v *vault) {
			v.move(target, "x")
			v.move(v.key("web", "1600/000001.log"), target)
			v.move("x", v.key("web", "1600/000001.log"))
		}, v.key("web", "1"), "web", false}, // the one or the other
		"an older part":          {func(v *vault) { v.move(parts[0], parts[1]) }, parts[0], "web", false},
		"a blob rewritten right": {func(v *vault) { v.rewrite(target) }, target, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := v.copy(t)
			c.do(v)
			v.verify(3, c.named)
			if c.service == "" {
				return
			}
			v.reads(c.service, c.named, false)
			if strings.HasPrefix(name, "under ") {
				v.reads("cache", c.named, false) // it must not show what is not its own
			}
			if !c.accepted {
				return
			}
			out, errs, code := retain(t, v.at, "accept-loss", c.service, v.day.String(), v.flag)
			if code != 0 || !strings.Contains(out, c.named) {
				t.Errorf("retention accept-loss exits %d: %s%s", code, out, errs)
			}
			for _, args := range [][]string{{c.service}, {"*", "-n", "10000"}, {"hist", c.service}, {"*", "--count"}} {
				v.told(true, "known to be lost", v.at, append(args, v.span(0, 24*time.Hour)...)...)
			}
			v.verify(0, "signed by")
		})
	}
}
