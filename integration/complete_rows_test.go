package integration_test

import (
	"context"
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"blobtail/internal/dev/testkit"
	"blobtail/internal/lease"
	"blobtail/storage"
)

// editRow changes the row of an ingester in the table, in any format.
func editRow(t testing.TB, at place, id string, change func(props map[string]any)) {
	t.Helper()
	tables, end := tablesOf(t, at)
	defer end()
	var found []storage.Row
	for row, err := range tables.Scan(t.Context(), lease.Table, lease.Partition, "", "", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(row.Key, id) {
			found = append(found, row)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d rows of ingester %s, want 1", len(found), id)
	}
	change(found[0].Props)
	if err := tables.Upsert(t.Context(), lease.Table, lease.Partition, found); err != nil {
		t.Fatal(err)
	}
}

// times returns the properties of a row that are times.
func times(props map[string]any) map[string]time.Time {
	found := map[string]time.Time{}
	for name, v := range props {
		text, _ := v.(string)
		if when, err := time.Parse(rowTime, text); err == nil {
			found[name] = when
		}
	}
	return found
}

// rowTime is the format of times in rows.
const rowTime = "2006-01-02T15:04:05.000000000Z"

// age makes the row of a dead or hanging ingester older. It moves all times of the
// row back by the given duration, except the floor, which is a time of records.
func age(t testing.TB, at place, id string, by time.Duration) {
	t.Helper()
	editRow(t, at, id, func(props map[string]any) {
		found := times(props)
		for name, when := range found {
			if name != "floor" {
				props[name] = when.Add(-by).Format(rowTime)
			}
		}
		if len(found) == 0 {
			t.Fatalf("the row of ingester %s has no times: %v", id, props)
		}
	})
}

// fallsSilent makes the row of an ingester that is dead, hangs or cannot write it as old as
// after a minute of silence. A long run waits for the minute.
func fallsSilent(t testing.TB, at place, id string) {
	t.Helper()
	if _, long := torture(t); long {
		time.Sleep(silence)
		return
	}
	age(t, at, id, silence)
}

// lockRows holds the write lock of the table of ingesters until free is called.
func lockRows(t testing.TB, root string) (free func()) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(root, ".tables", lease.Table, "rows.db")+"?_pragma=busy_timeout(20000)")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	done := false
	free = func() {
		if !done {
			done = true
			_, _ = conn.ExecContext(context.WithoutCancel(t.Context()), "ROLLBACK") // closing does it too
			conn.Close()
			db.Close()
		}
	}
	t.Cleanup(free)
	return free
}

// frozen makes a disk of smallDisk read-only or writable.
func frozen(t testing.TB, disk, size string, yes bool) {
	t.Helper()
	flags := uintptr(syscall.MS_REMOUNT)
	if yes {
		flags |= syscall.MS_RDONLY
	}
	if err := syscall.Mount("tmpfs", disk, "tmpfs", flags, "size="+size); err != nil {
		t.Fatalf("remount %s: %v", disk, err)
	}
}

// crowd fills a disk up to a small rest, in one step.
func crowd(t testing.TB, path string, leave int64) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var fs syscall.Statfs_t
	if err := syscall.Fstatfs(int(f.Fd()), &fs); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Fallocate(int(f.Fd()), 0, 0, int64(fs.Bavail)*int64(fs.Bsize)-leave); err != nil {
		t.Fatal(err)
	}
}

// runIngest runs a command of ingest that ends by itself.
func runIngest(t testing.TB, at place, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(shared.bin, "ingest"), append(args, "--store", at.store)...)
	cmd.Env, cmd.Dir = append(testkit.Environ(), at.env...), t.TempDir()
	var out strings.Builder
	stderr, code = ran(t, cmd, &out)
	return out.String(), stderr, code
}

// forgets runs ingest forget, wants it to succeed, and wants its output to contain a
// text.
func forgets(t testing.TB, at place, whom string, args ...string) {
	t.Helper()
	out, errs, code := runIngest(t, at, append([]string{"forget"}, args...)...)
	if code != 0 || strings.TrimSpace(out+errs) == "" || !strings.Contains(out, whom) {
		t.Errorf("ingest forget %s exits %d and says %q, %q; want 0 and a word of %q", strings.Join(args, " "), code, out, errs, whom)
	}
}

// cloneDir copies a directory of files, as cp -a does.
func cloneDir(t testing.TB, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cp -a %s %s: %v\n%s", from, to, err, out)
	}
}

// bind mounts a directory over another one.
func bind(t testing.TB, from, over string) {
	t.Helper()
	if err := syscall.Mount(from, over, "", syscall.MS_BIND, ""); err != nil {
		t.Skipf("nothing can be mounted here, which takes root: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(over, syscall.MNT_DETACH) }) // it may be unmounted
}

// unbind lazily unmounts the mount of bind.
func unbind(t testing.TB, over string) {
	t.Helper()
	if err := syscall.Unmount(over, syscall.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
}

// blobsBelow returns the paths of all blobs of a dir store.
func blobsBelow(t testing.TB, root string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".log") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}
