package tables

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"blobtail/storage"
)

// The rows that are swapped are the truth about something: a row that vanishes, or an older one in its
// place, would make a read look complete that is not. A -wal does that: SQLite ends its recovery at
// the first frame with a wrong checksum, and says nothing. So such a table keeps its state in the one
// file, with a rollback journal, and has a seal: the sum of all of its rows, which each read compares.
//
// A write of commit a960ca37, which knows no seal, removes it. The next swap makes it again.
const (
	makeSeal = `CREATE TABLE IF NOT EXISTS seal (sum BLOB NOT NULL);
		CREATE TRIGGER IF NOT EXISTS inserted AFTER INSERT ON rows BEGIN DELETE FROM seal; END;
		CREATE TRIGGER IF NOT EXISTS updated AFTER UPDATE ON rows BEGIN DELETE FROM seal; END;
		CREATE TRIGGER IF NOT EXISTS deleted AFTER DELETE ON rows BEGIN DELETE FROM seal; END`
	getSeal = `SELECT sum FROM seal`
	setSeal = `INSERT INTO seal (sum) VALUES (?)`
	allRows = `SELECT partition, row, props FROM rows ORDER BY partition, row`
)

// A sum is that of some rows, in any order: each row adds itself, and takes itself away again.
type sum [sha256.Size]byte

func (s *sum) add(partition, row string, props []byte) {
	var b []byte
	for _, part := range []string{partition, row, string(props)} {
		b = append(binary.AppendUvarint(b, uint64(len(part))), part...)
	}
	one := sha256.Sum256(b)
	subtle.XORBytes(s[:], s[:], one[:])
}

// asker is a *sql.DB or a *sql.Tx.
type asker interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// sealOf returns the seal of a table; false if it has none.
func sealOf(ctx context.Context, db asker) (s sum, ok bool, err error) {
	var stored []byte
	err = db.QueryRowContext(ctx, getSeal).Scan(&stored)
	if errors.Is(err, sql.ErrNoRows) || err != nil && strings.Contains(err.Error(), "no such table: seal") {
		return s, false, nil
	}
	return sum(append(stored, s[:]...)[:len(s)]), err == nil, err
}

// eachRow calls visit for each row of a table, and returns the sum of all.
func eachRow(ctx context.Context, db asker, visit func(partition, row string, props []byte)) (s sum, err error) {
	rows, err := db.QueryContext(ctx, allRows)
	if err != nil {
		return s, err
	}
	defer rows.Close()
	for rows.Next() {
		var partition, row string
		var props sql.RawBytes
		if err := rows.Scan(&partition, &row, &props); err != nil {
			return s, err
		}
		s.add(partition, row, props)
		visit(partition, row, props)
	}
	return s, rows.Err()
}

// sealed answers a question to a table with a seal. It reads all rows and compares the seal. It holds
// none of SQLite's locks when it returns, because the writer waits for these. The reads of a process
// come one after another: SQLite has one lock for all of them, and lets a further one share it although
// a writer waits, so reads that overlap would never let a writer of another process in.
func (t *table) sealed(ctx context.Context, db *sql.DB, q question) (found []stored, ok bool, err error) {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	tx, err := db.BeginTx(ctx, nil) // the seal and the rows are of one moment
	if err != nil {
		return nil, false, err
	}
	defer tx.Rollback()
	want, ok, err := sealOf(ctx, tx)
	if !ok || err != nil {
		return nil, false, err
	}
	got, err := eachRow(ctx, tx, func(partition, row string, props []byte) {
		wanted := partition == q.partition && row >= q.from && (q.to == "" || row < q.to)
		if wanted && (q.limit == 0 || len(found) < q.limit) {
			found = append(found, stored{row, bytes.Clone(props)})
		}
	})
	if err == nil && got != want {
		err = fmt.Errorf("%s: %w: its rows are not those that were written; start all ingesters of this store, give up those with lost disks, and move the directory of the file away: ingesters make it again", t.path, storage.ErrDamaged)
	}
	return found, err == nil, err
}

// reseal changes the seal for a row that was written in a transaction. The seal before it is seal; no
// seal: that of all rows.
func reseal(ctx context.Context, tx *sql.Tx, seal sum, ok bool) (err error) {
	if !ok {
		if _, err := tx.ExecContext(ctx, makeSeal); err != nil {
			return err
		}
		if seal, err = eachRow(ctx, tx, func(string, string, []byte) {}); err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, setSeal, seal[:])
	return err
}

// inWAL reports whether the table has a -wal. SQLite alone may open the file: whoever closes it takes
// away the locks that the connections of this process have on it.
func (t *table) inWAL(ctx context.Context) bool {
	var mode string
	err := t.swap.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode)
	return err == nil && mode == "wal"
}

// leaveWAL gives the table a rollback journal. That waits until no other process has it open: until
// then the rows are moved to the one file after each swap.
func (t *table) leaveWAL(ctx context.Context) error {
	if t.inWAL(ctx) {
		for _, db := range []*sql.DB{t.read, t.write} { // their idle connections have it open
			db.SetMaxIdleConns(-1)
			db.SetMaxIdleConns(1)
		}
		if _, err := t.swap.ExecContext(ctx, "PRAGMA busy_timeout = 100"); err != nil {
			return err
		}
		defer t.swap.ExecContext(ctx, "PRAGMA busy_timeout = 5000")
	}
	var mode string
	err := t.swap.QueryRowContext(ctx, "PRAGMA journal_mode = TRUNCATE").Scan(&mode)
	if err != nil && t.inWAL(ctx) {
		return nil // others have it open
	}
	return err
}
