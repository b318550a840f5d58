package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"blobtail/buffer/wal"
	"blobtail/internal/certs"
	"blobtail/internal/cli"
	"blobtail/internal/clockskew"
	"blobtail/internal/config"
	"blobtail/internal/count"
	"blobtail/internal/door"
	"blobtail/internal/lease"
	"blobtail/internal/loopback"
	"blobtail/internal/openstore"
	"blobtail/internal/storeid"
	"blobtail/internal/trial"
	"blobtail/source/natssource"
	"blobtail/storage"
	"blobtail/storage/fsys"
)

// checkWait bounds each check.
const checkWait = 15 * time.Second

// checking checks whether an ingester with a configuration could work, and prints one line
// for each check.
type checking struct {
	c        config.Config
	stdout   io.Writer
	problems int
	unsaid   error // of a line that could not be written
}

// check prints the obstacles to the start of an ingester. It leaves nothing in the store but one
// row of a table.
func check(ctx context.Context, c config.Config, stdout io.Writer) error {
	k := &checking{c: c, stdout: stdout}
	k.report("configuration", "sound", nil)
	k.access()
	k.store(ctx)
	good, err := k.logDir()
	k.report("log directory", good, err)
	temp, err := fsys.Temp()
	k.report("temporary", temp+" can be written; logquery puts records there that it cannot hold", err)
	holder := wal.Holder(c.WALDir())
	for _, l := range []struct{ name, flag, address string }{
		{"records", "--listen", c.Ingest.Listen}, {"operators", "--admin", c.Ingest.Admin}, {"syslog", "--syslog", c.Syslog.Listen},
	} {
		if l.address == "" {
			continue
		}
		good, err := address(l.flag, l.address, holder, c)
		if l.flag == "--syslog" && err == nil {
			err = syslogSound(c) // its certificates
		}
		k.report(l.name, good, err)
	}
	if c.NATS.URL != "" {
		ctx, cancel := context.WithTimeout(ctx, checkWait)
		defer cancel()
		o, err := natsOptions(c.NATS)
		if err == nil {
			err = natssource.Check(ctx, o)
		}
		k.report("NATS", "stream "+c.NATS.Stream+" can be used", err)
	}
	switch {
	case k.unsaid != nil:
		return k.unsaid
	case k.problems > 0:
		return errSaid
	}
	return nil
}

// checkConfig returns the reasons why an ingester would not start, or clients would refuse
// its certificates, as far as they are known without the store and without an open address.
func checkConfig(c config.Config) error {
	secure, err := openSecurity(c, zerolog.Nop(), new(count.Registry))
	reasons := []error{err}
	if err == nil {
		reasons = append(reasons, sound(secure.certs), advertised(c, secure.certs))
	}
	if c.Syslog.Listen != "" {
		reasons = append(reasons, syslogSound(c))
	}
	for _, l := range []struct{ flag, address string }{{"--listen", c.Ingest.Listen}, {"--admin", c.Ingest.Admin}} {
		if beyondHost(l.address) {
			reasons = append(reasons, mayServe(c, l.flag, l.address))
		}
	}
	return errors.Join(reasons...)
}

// note notes the rules that match no service of the store, or that it cannot be listed, what the levels
// of acknowledgement cost, and which door does not keep them. That is no fault of the configuration.
func note(c config.Config, console cli.Console) {
	ctx, cancel := context.WithTimeout(context.Background(), checkWait)
	defer cancel()
	services := func(yield func(string, error) bool) {
		store, err := openstore.OpenWith(ctx, c.Store, false, openstore.Options{Reads: true})
		if err != nil {
			yield("", err)
			return
		}
		defer store.Close()
		for name, err := range store.Blobs.Dirs(ctx, "") {
			if !yield(name, store.Explained(err)) {
				return
			}
		}
	}
	notes, err := c.Unmatched(services)
	if err != nil {
		console.Note("it is not known whether each rule matches a service: %v", err)
	}
	notes = append(notes, c.FormNotes()...)
	if l, err := newLevels(c); err == nil { // or checkConfig has said why not
		costs, err := l.costs(c, services)
		if err != nil {
			console.Note("it is not known how many services wait until they are stored: %v", err)
		}
		notes = append(append(notes, costs...), l.unanswered(c.Syslog)...)
	}
	for _, note := range notes {
		console.Note("%s", note)
	}
}

// sound returns the reason why certificates are of no use now; nil without any.
func sound(files *certs.Certs) error {
	if files == nil {
		return nil
	}
	return files.Sound(time.Now())
}

// syslogSound returns the reason why syslog could not be accepted.
func syslogSound(c config.Config) error {
	_, files, err := syslogOptions(c.Syslog, zerolog.Nop())
	if err != nil {
		return err
	}
	return sound(files)
}

// beyondHost reports whether others than this host surely reach an address. A name is not
// looked up.
func beyondHost(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return err == nil
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && !ip.IsLoopback()
}

// access reads the files of tokens and certificates, if there are any.
func (k *checking) access() {
	secure, err := openSecurity(k.c, zerolog.Nop(), new(count.Registry))
	switch {
	case err != nil:
		k.report("access", "", err)
	case secure.tokens != nil:
		k.report("access", k.c.Access.Tokens+" can be read", nil)
	}
	if err == nil && secure.certs != nil {
		k.report("TLS", k.c.TLS.Cert+" can be used", sound(secure.certs))
		if at := k.c.Ingest.Advertise; at != "" {
			k.report("advertise", at+" has the name of the certificate", advertised(k.c, secure.certs))
		}
	}
}

// report prints the result of a check.
func (k *checking) report(name, good string, err error) {
	state, text := "ok", good
	if err != nil {
		k.problems++
		state, text = "problem", err.Error()
	}
	if _, err := fmt.Fprintf(k.stdout, "%-8s %-13s  %s\n", state, name, cli.SafeLine(text)); err != nil && k.unsaid == nil {
		k.unsaid = err
	}
}

// store checks the store. If it cannot be opened there is one line for all of it.
func (k *checking) store(ctx context.Context) {
	spec := k.c.Store
	if owner, other := fsys.Owner(spec.Dir()); spec.Dir() != "" && other && os.Geteuid() == 0 {
		// Root may do anything, and its files would be out of reach for the owner.
		k.report("store", "", fmt.Errorf("%s belongs to user %s; run the ingester and this check as %s", spec.Dir(), owner, owner))
		return
	}
	// A directory that this check made would perhaps belong to the wrong user.
	store, err := openstore.Open(ctx, spec, spec.Remote())
	if errors.Is(err, storage.ErrNotExist) && !spec.Remote() {
		parent, err := writableParent(spec.Dir())
		k.report("store", fmt.Sprintf("there is none at %s yet; the ingester makes it in %s", spec.Dir(), parent), err)
		return
	}
	if err != nil {
		k.report("store", "", err)
		return
	}
	defer store.Close()
	each := func(name, good string, do func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(ctx, checkWait)
		defer cancel()
		err := do(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("%w; there is no answer within %s: check the name of the store, and the network from here to it", err, checkWait)
		}
		k.report(name, good, store.Explained(err))
		return err
	}
	err = each("blobs", "objects can be created, read and listed in "+spec.String(), func(ctx context.Context) error { return trial.Blobs(ctx, store.Blobs) })
	if err != nil && !errors.Is(err, storage.ErrUnauthorized) && !errors.Is(err, storage.ErrNotExist) {
		return // it cannot be reached, or its disk fails
	}
	each("tables", "rows can be written and read", func(ctx context.Context) error { return k.tables(ctx, store.Tables) })
	if err == nil {
		each("identity", "the log belongs to this store, or to none yet", func(ctx context.Context) error { return k.identity(ctx, store.Blobs) })
	}
	each("clock", "right", func(ctx context.Context) error { return k.clock(ctx, store.Blobs) })
}

// tables tries the tables. Those of a directory can be dropped at once, and are. Azure takes
// a while for that, and an ingester needs no right to drop tables there.
func (k *checking) tables(ctx context.Context, tables storage.TableStore) error {
	err := cmp.Or(lease.Older(ctx, tables, k.c.Store.Name()), trial.Tables(ctx, tables))
	if err == nil && !k.c.Store.Remote() {
		err = tables.Drop(ctx, trial.Table)
	}
	return err
}

// identity compares the store with the one that the log belongs to.
func (k *checking) identity(ctx context.Context, blobs storage.BlobStore) error {
	bound, err := storeid.LoadBinding(fsys.OS(), k.c.WALDir())
	if err != nil {
		return err
	}
	id, err := storeid.Read(ctx, blobs)
	if err != nil || bound.ID == "" || bound.ID == id {
		return err
	}
	return fmt.Errorf("the log %s belongs to the store %s (id %s), and %s is another one (id %s); start with that store, or use another --wal",
		k.c.WALDir(), bound.Spec, bound.ID, k.c.Store, id)
}

// clock compares the clock of this host with the store's.
func (k *checking) clock(ctx context.Context, blobs storage.BlobStore) error {
	const allowed = time.Minute // the ingester allows more: minutes are fixed before they become hours
	begun := time.Now()
	there, err := storage.Now(ctx, blobs, begun)
	if err != nil {
		return err
	}
	if skew := begun.Add(time.Since(begun) / 2).Sub(there); skew.Abs() > allowed {
		return clockskew.TooFar(skew, allowed)
	}
	return nil
}

// logDir checks the directory of the log, and its disk.
func (k *checking) logDir() (good string, err error) {
	dir := k.c.WALDir()
	if pid := wal.Holder(dir); pid != 0 {
		return fmt.Sprintf("%s is in use by process %d; a second ingester needs its own --wal", dir, pid), nil
	}
	owner, other := fsys.Owner(dir)
	if other && os.Geteuid() == 0 {
		return "", fmt.Errorf("%s belongs to user %s; run the ingester and this check as %s", dir, owner, owner)
	}
	parent, err := writableParent(dir)
	switch {
	case err != nil:
		return "", err
	case diskFull(parent, k.c.Log.DiskFull):
		return "", fmt.Errorf("the disk of %s is filled to log.disk-full (%d%%) and records would be refused; make room, or choose another disk with --wal", dir, k.c.Log.DiskFull)
	case parent != dir:
		return fmt.Sprintf("%s is missing; the ingester makes it in %s", dir, parent), nil
	}
	return dir + " can be written", nil
}

// writableParent returns a directory, or its nearest parent that exists, and tries to write
// to it.
func writableParent(dir string) (string, error) {
	at := filepath.Clean(dir)
	fi, err := os.Stat(at)
	for errors.Is(err, fs.ErrNotExist) && filepath.Dir(at) != at {
		at = filepath.Dir(at)
		fi, err = os.Stat(at)
	}
	if err == nil && !fi.IsDir() {
		return at, fmt.Errorf("%s is no directory; choose another path", at)
	}
	if err == nil {
		err = fsys.TryFile(at)
	}
	if fix := (fsys.Place{Dir: dir}).Remedy(err); err != nil && fix != "" {
		err = fmt.Errorf("%w; %s", err, fix)
	}
	return at, err
}

// address checks whether an address can be opened. The ingester with this log may have it
// open already: holder is its process, 0 if none runs.
func address(flag, address string, holder int, c config.Config) (good string, err error) {
	l, err := door.Listen(flag, address)
	if taken, ok := errors.AsType[*door.TakenError](err); ok && holder != 0 && taken.PID == holder {
		return fmt.Sprintf("%s is open in the ingester of this log, process %d", address, holder), nil
	}
	if err != nil {
		return "", err
	}
	defer l.Close()
	if flag == "--syslog" {
		return address + " is free", nil // the configuration names the senders
	}
	if err := mayListen(c, flag, l); err != nil {
		return "", err
	}
	if !loopback.Listener(l) && flag == "--listen" && c.Access.Tokens == "" {
		return fmt.Sprintf("%s is free; %s", address, openToOthers), nil
	}
	return address + " is free", nil
}
