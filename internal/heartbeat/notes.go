package heartbeat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"blobtail/internal/fsys"
)

// notesFile is the name of the notes in the directory of a log, which ignores it.
const notesFile = "lease"

// maxWriters bounds the processes that the notes remember. A log that was started
// more often without ever reaching the tables gets a new id when it reaches them.
const maxWriters = 64

// notes are kept next to the log: the known content of the row, and the processes that
// may have written it. Each change is durable before the announcer goes on.
type notes struct {
	Format int    `json:"format"`
	ID     string `json:"id"`
	// State is Holding only while the row is known to be; "" is not known.
	State State `json:"state"`
	// Writers are the processes that may have written the row. The first is the last
	// one known to have done so.
	Writers []string `json:"writers"`
	// Announced says that the row was written at least once.
	Announced bool `json:"announced"`
	// Inode is that of the directory. A copy of the log has another one. It must not
	// rely on the row of the first log, nor assume that the row is its own.
	Inode uint64 `json:"inode"`
	// Born is when the directory was made, Unix nanoseconds: the roots of two volumes
	// have one inode number.
	Born int64 `json:"born"`
	// Others are the ingesters with rows that may matter to a read, as last listed. If
	// the table loses its rows, nothing else names them.
	Others []string `json:"others,omitempty"`
	// LostSince and LostUntil are a [Loss] that no operator has acknowledged. Acked is
	// the Until of one that an operator has acknowledged.
	LostSince time.Time `json:"lost_since,omitzero"`
	LostUntil time.Time `json:"lost_until,omitzero"`
	Acked     time.Time `json:"acked,omitzero"`

	fs     fsys.FS
	dir    string // "": kept in memory only
	unsure bool   // a change failed, so the file may have it
}

// loadNotes reads the notes in the directory of a log. They are empty without a
// directory, and if there are none yet. An error says that there were notes and names
// their fault. It comes with empty notes.
func loadNotes(fsy fsys.FS, dir, id string) (n notes, err error) {
	if fsy == nil {
		fsy = fsys.OS()
	}
	fresh := notes{Format: 1, ID: id, fs: fsy, dir: dir}
	if dir == "" {
		return fresh, nil
	}
	info, err := fsy.Stat(dir)
	if err != nil {
		return fresh, fmt.Errorf("read what was announced: %w", err)
	}
	fresh.Inode, fresh.Born = fsys.Identity(dir, info)
	path := filepath.Join(dir, notesFile)
	text, err := fsys.ReadFile(fsy, path)
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &n)
	}
	if err != nil || n.Format != 1 || !isID(n.ID) {
		return fresh, errors.Join(fmt.Errorf("read what was announced: %s holds something else", path), err)
	}
	if n.Inode != fresh.Inode || n.Born != fresh.Born {
		// A copy. Its original may run, so no row that says Holding is its own.
		n.State, n.Writers = "", nil
	}
	n.Inode, n.Born, n.fs, n.dir = fresh.Inode, fresh.Born, fsy, dir
	return n, nil
}

// Discard removes the identity and the notes from the directory of a log that goes over
// to another store. Its row in the first store is not one of the other store.
func Discard(fsy fsys.FS, dir string) error {
	var errs []error
	for _, name := range []string{notesFile, file} {
		if err := fsy.Remove(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// change changes the notes and makes the change durable. After an error the memory has
// the old notes, and the disk has the old or the new ones.
func (n *notes) change(f func(*notes)) error {
	next := *n
	next.Writers, next.Others = slices.Clone(n.Writers), slices.Clone(n.Others)
	f(&next)
	if !n.unsure && slices.Equal(next.Writers, n.Writers) && slices.Equal(next.Others, n.Others) && next.ID == n.ID && next.State == n.State && next.Announced == n.Announced &&
		next.LostSince.Equal(n.LostSince) && next.LostUntil.Equal(n.LostUntil) && next.Acked.Equal(n.Acked) {
		return nil
	}
	if n.dir != "" {
		text, err := json.Marshal(next)
		if err == nil {
			err = fsys.Replace(n.fs, filepath.Join(n.dir, notesFile), append(text, '\n'))
		}
		if err != nil {
			n.unsure = true
			return fmt.Errorf("keep what is announced: %w", err)
		}
	}
	*n = next
	n.unsure = false
	return nil
}

// mayWrite notes that a process may write the row from now on.
func (n *notes) mayWrite(process string) error {
	return n.change(func(n *notes) {
		if slices.Contains(n.Writers, process) {
			return
		}
		if len(n.Writers) == maxWriters {
			n.Writers = slices.Delete(n.Writers, 1, 2)
		}
		n.Writers = append(n.Writers, process)
	})
}

func (n *notes) loss() Loss { return Loss{n.LostSince, n.LostUntil} }

// isID reports whether s has the form of an ingester's id.
func isID(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == 8
}
