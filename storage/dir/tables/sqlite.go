package tables

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"blobtail/storage"
	"blobtail/storage/fsys"
	"blobtail/storage/internal/bounds"
)

const (
	dbFile    = "rows.db"
	tmpPrefix = ".tmp-" // a table that is being made
	delPrefix = ".del-" // a table that is being removed

	// The same clustered index as in an Azure table.
	schema = `CREATE TABLE rows (partition TEXT NOT NULL, row TEXT NOT NULL, props BLOB NOT NULL,
		PRIMARY KEY (partition, row)) WITHOUT ROWID`
	upsertRow = `INSERT OR REPLACE INTO rows (partition, row, props) VALUES (?, ?, ?)`
	getRow    = `SELECT props FROM rows WHERE partition = ? AND row = ?`
	scanRows  = `SELECT row, props FROM rows WHERE partition = ?1 AND row >= ?2 AND (?3 = '' OR row < ?3) ORDER BY row LIMIT ?4`

	// A row that is replaced leaves no bytes, because its records may have been erased.
	writing = "&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=secure_delete(1)&_txlock=immediate"
	// A row of the tail is some 3 KB, and is most of such a file. What does not fit its page goes
	// to pages of its own, so small pages leave less room empty: of 4 KiB each, half of the file.
	// The -wal has a thousand pages.
	making = "mode=rwc&_pragma=page_size(1024)"
	// Other processes rely on a swapped row, also after a power cut.
	swapping = "mode=rw&_pragma=busy_timeout(5000)&_pragma=synchronous(FULL)&_pragma=secure_delete(1)&_txlock=immediate"
	reading  = "mode=ro&_pragma=busy_timeout(5000)"
	// A WAL database cannot be read without writing next to it. If that is not allowed,
	// it can be read as long as no process writes to it.
	readingFrozen = "mode=ro&immutable=1"
)

// table is an open database. Calls under way when it is closed go on to their ends.
type table struct {
	path  string
	file  fs.FileInfo // identifies the file: another file may get the name
	write *sql.DB     // one connection: SQLite has one writer
	swap  *sql.DB     // another connection, with durable writes
	read  *sql.DB
	turn  chan struct{} // of a read of a sealed table
	last  atomic.Pointer[answer]
}

// openTable opens an existing database. Its connections are made when they are needed.
func openTable(path string) (*table, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, bounds.Known(err)
	}
	t := &table{path: path, file: fi, turn: make(chan struct{}, 1)}
	t.write, _ = openDB(path, "mode=rw"+writing)
	t.swap, _ = openDB(path, swapping)
	if t.read, err = openDB(path, reading); err != nil {
		return nil, err // of the text of the path alone, which is the same for all
	}
	t.write.SetMaxOpenConns(1)
	t.swap.SetMaxOpenConns(1)
	return t, nil
}

func openDB(path, query string) (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+query)
}

func (t *table) close() error { return errors.Join(t.read.Close(), t.swap.Close(), t.write.Close()) }

// isThere reports whether the table's name still means this database. Its file is open,
// so no other file can be taken for it.
func (t *table) isThere() bool {
	fi, err := os.Stat(t.path)
	return err == nil && os.SameFile(fi, t.file)
}

func (t *table) upsert(ctx context.Context, partition string, rows []storage.Row) error {
	if len(rows) == 0 {
		return nil // the table is there; a connection would wait for those who swap its rows
	}
	tx, err := t.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after Commit
	for _, r := range rows {
		props, _ := encode(r.Props)
		if _, err := tx.ExecContext(ctx, upsertRow, partition, r.Key, props); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// swapRow writes one row if the stored row of its key has the same version.
func (t *table) swapRow(ctx context.Context, partition string, row storage.Row) (string, error) {
	if err := t.leaveWAL(ctx); err != nil {
		return "", err
	}
	tx, err := t.swap.BeginTx(ctx, nil) // with the lock of writers
	if err != nil {
		return "", err
	}
	defer tx.Rollback() // does nothing after Commit
	seal, ok, err := sealOf(ctx, tx)
	if err != nil {
		return "", err
	}
	var stored []byte
	now := ""
	err = tx.QueryRowContext(ctx, getRow, partition, row.Key).Scan(&stored)
	switch {
	case err == nil:
		now = rowVersion(stored)
		seal.add(partition, row.Key, stored)
	case !errors.Is(err, sql.ErrNoRows):
		return "", err
	}
	if now != row.Version {
		return "", storage.ErrChanged
	}
	props, version := encode(row.Props)
	if _, err := tx.ExecContext(ctx, upsertRow, partition, row.Key, props); err != nil {
		return "", err
	}
	seal.add(partition, row.Key, props)
	if err := reseal(ctx, tx, seal, ok); err != nil {
		return "", err
	}
	if err := tx.Commit(); err != nil {
		return "", err
	}
	if t.inWAL(ctx) {
		_, _ = t.swap.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)") // the next swap does it again
	}
	return version, nil
}

// scan calls visit for each row until it returns false.
func (t *table) scan(ctx context.Context, partition, from, to string, limit int, props []string, visit func(storage.Row) bool) error {
	q := question{partition, from, to, limit}
	decoded := func(s stored) (bool, error) {
		row, err := s.decode(props)
		return err == nil && visit(row), err
	}
	// ask asks one database. It gives a table with a seal, or at rest, only when all rows are read.
	ask := func(db *sql.DB, visit func(stored) (bool, error)) error {
		found, ok, err := t.sealed(ctx, db, q)
		if ok || err != nil {
			return cmp.Or(err, give(found, visit))
		}
		rows, err := db.QueryContext(ctx, scanRows, partition, from, to, cmp.Or(limit, -1))
		if err != nil {
			return err
		}
		return each(rows, visit)
	}
	if found, ok := t.atRest(q, ask); ok {
		return give(found, decoded)
	}
	given := false
	err := ask(t.read, func(s stored) (bool, error) {
		given = true
		return decoded(s)
	})
	switch {
	case err == nil || given:
		return err
	case t.interrupted(err):
		return ask(t.swap, decoded) // it ends the write of a process that was killed
	case t.frozen(err):
		db, err := openDB(t.path, readingFrozen)
		if err != nil {
			return err
		}
		defer db.Close() // not kept: a writer may come
		return ask(db, decoded)
	}
	return err
}

// give calls visit for each row until it returns false.
func give(found []stored, visit func(stored) (bool, error)) error {
	for _, r := range found {
		if more, err := visit(r); !more || err != nil {
			return err
		}
	}
	return nil
}

// each calls visit for each row of an answer until it returns false.
func each(rows *sql.Rows, visit func(stored) (bool, error)) error {
	defer rows.Close()
	for rows.Next() {
		var key string
		var props sql.RawBytes
		if err := rows.Scan(&key, &props); err != nil {
			return err
		}
		if more, err := visit(stored{key, props}); !more || err != nil {
			return err
		}
	}
	return rows.Err()
}

// stored is a row as it is stored.
type stored struct {
	key   string
	props []byte
}

func (s *stored) decode(props []string) (r storage.Row, err error) {
	r = storage.Row{Key: s.key, Version: rowVersion(s.props)}
	r.Props, err = decode(s.props, props)
	return r, err
}

// A question asks for rows.
type question struct {
	partition, from, to string
	limit               int
}

// An answer has the rows of the last question to a table at rest, in file. Nobody changes it.
type answer struct {
	question
	file fs.FileInfo
	rows []stored
}

// atRest reads the rows of a small table that no process has written to for a while. It writes
// nothing. Any other read of a WAL database by a process that is alone makes the files next to
// it, which a short command feels, and which may wait for a busy disk.
//
// It takes no lock, so a writer may change pages under it. But a write goes to the -wal or the
// -journal first, and SQLite empties that only after it has written the pages to the database, which
// has a new time then. ok is false if a file shows a write; the rows are worth nothing then.
//
// By the same reason the rows of the last question are those of now while the table has been at
// rest ever since.
func (t *table) atRest(q question, ask func(*sql.DB, func(stored) (bool, error)) error) (found []stored, ok bool) {
	before := t.resting()
	if before == nil {
		t.last.Store(nil)
		return nil, false
	}
	if last := t.last.Load(); last != nil && last.question == q && same(last.file, before) {
		return last.rows, true
	}
	db, err := openDB(t.path, readingFrozen)
	if err != nil {
		return nil, false
	}
	defer db.Close()
	err = ask(db, func(s stored) (bool, error) {
		found = append(found, stored{s.key, bytes.Clone(s.props)})
		return true, nil
	})
	if after := t.resting(); err != nil || after == nil || !same(before, after) {
		return nil, false
	}
	t.last.Store(&answer{q, before, found})
	return found, true
}

// same reports whether a file is the same one, and was not written to between two looks at it. Its
// time alone does not tell: programs that copy files set it.
func same(a, b fs.FileInfo) bool {
	one, ok := fsys.StampOf(a)
	other, _ := fsys.StampOf(b)
	return ok && one == other
}

const (
	// restAge is the age from which on a file's time shows the next write, however coarse it is.
	restAge = time.Minute
	// restSize bounds the rows that are held until it is known whether they count.
	restSize = 64 << 10
)

// resting describes the database if all its rows are in the one file, and have been for a
// while; else nil.
func (t *table) resting() fs.FileInfo {
	for _, beside := range []string{"-wal", "-journal"} {
		fi, err := os.Stat(t.path + beside)
		if err == nil && fi.Size() > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	fi, err := os.Stat(t.path)
	if err != nil || fi.Size() > restSize || time.Since(fi.ModTime()) < restAge {
		return nil
	}
	return fi
}

// interrupted reports whether a write was interrupted, which a connection that only reads cannot end.
func (t *table) interrupted(err error) bool {
	se, ok := errors.AsType[*sqlite.Error](err)
	return ok && se.Code() == lib.SQLITE_READONLY_ROLLBACK
}

// frozen reports whether SQLite could not open the files next to the database, and no
// writer has any there.
func (t *table) frozen(err error) bool {
	se, ok := errors.AsType[*sqlite.Error](err)
	if !ok || se.Code()&0xff != lib.SQLITE_CANTOPEN && se.Code()&0xff != lib.SQLITE_READONLY {
		return false
	}
	_, err = os.Stat(t.path + "-wal")
	journal, jerr := os.Stat(t.path + "-journal")
	return errors.Is(err, fs.ErrNotExist) && (errors.Is(jerr, fs.ErrNotExist) || jerr == nil && journal.Size() == 0)
}

// full makes SQLite's error of a full disk one that [fsys.IsFull] knows.
func full(err error) error {
	if se, ok := errors.AsType[*sqlite.Error](err); ok && se.Code()&0xff == lib.SQLITE_FULL {
		return fmt.Errorf("%w: %w", err, syscall.ENOSPC)
	}
	return err
}

// make makes an empty table, unless another call was quicker.
func (s *databases) make(ctx context.Context, name string) error {
	if err := os.Mkdir(s.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return bounds.Known(err)
	}
	// Its maker may have been killed before its name was durable.
	if err := fsys.OS().SyncDir(filepath.Dir(s.dir)); err != nil && !errors.Is(err, fs.ErrPermission) {
		return bounds.Known(err)
	}
	tmp := filepath.Join(s.dir, tmpPrefix+rand.Text())
	if err := os.Mkdir(tmp, 0o700); err != nil {
		return bounds.Known(err)
	}
	defer os.RemoveAll(tmp) // if it was not renamed
	db, err := openDB(filepath.Join(tmp, dbFile), making)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, schema)
	if err = errors.Join(full(err), db.Close()); err != nil {
		return err
	}
	err = os.Rename(tmp, filepath.Join(s.dir, name))
	if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTEMPTY) {
		return nil
	}
	if err != nil {
		return err
	}
	return fsys.OS().SyncDir(s.dir)
}

func (s *databases) Drop(_ context.Context, name string) error {
	err := os.Rename(filepath.Join(s.dir, name), filepath.Join(s.dir, delPrefix+rand.Text()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = fsys.OS().SyncDir(s.dir)
	}
	if err != nil {
		return bounds.Known(err)
	}
	s.mu.Lock()
	s.closeStale(func(t *table) bool { return !t.isThere() })
	s.mu.Unlock()
	return s.sweep()
}

// sweep removes tables that were dropped, by this call or by one that a crash ended,
// and tables that were never finished.
func (s *databases) sweep() error {
	entries, err := os.ReadDir(s.dir)
	errs := []error{err}
	for _, e := range entries {
		fi, err := e.Info()
		if err != nil {
			continue // another sweep took it
		}
		unfinished := strings.HasPrefix(e.Name(), tmpPrefix) && time.Since(fi.ModTime()) > 24*time.Hour
		if strings.HasPrefix(e.Name(), delPrefix) || unfinished {
			errs = append(errs, os.RemoveAll(filepath.Join(s.dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}
