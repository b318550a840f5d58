package lease

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"blobtail/storage/fsys"
)

// notesFile is the name of the notes in the directory of a log, which ignores it.
const notesFile = "lease"

// maxWriters bounds the processes that the notes remember. A log that was started
// more often without ever reaching the tables gets a new id when it reaches them.
const maxWriters = 64

// notes are kept next to the log: the id and the known content of the row, and the
// processes that may have written it. Each change is durable before the announcer goes
// on. Without them rows would grow without bound, for tables cannot delete one. A crash
// would also leave a second row behind that says forever that records are missing.
type notes struct {
	Format int    `json:"format"`
	ID     string `json:"id"`
	// State is Holding only while the row is known to be; "" is not known.
	State State `json:"state"`
	// Floor is a time that the floor of a Holding row is not above; zero: such a row has
	// none. Commit a960ca37 leaves the state empty next to a floor.
	Floor time.Time `json:"floor,omitzero"`
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
	Others []string  `json:"others,omitempty"`
	Loss             // that no operator has acknowledged
	Acked  time.Time `json:"acked,omitzero"` // Until of one that an operator has acknowledged
	// Ships is what the row may say.
	Ships string `json:"ships,omitempty"`
	// Lane is the last one; -1 if there was none.
	Lane int `json:"lane"`

	fs   fsys.FS
	dir  string // "": kept in memory only
	text []byte // of the file; nil: not known
}

// loadNotes reads the notes in the directory of a log. They are empty without a
// directory, and if there are none yet. An error says that there were notes and names
// their fault. It comes with empty notes.
func loadNotes(fsy fsys.FS, dir, id string) (notes, error) {
	if fsy == nil {
		fsy = fsys.OS()
	}
	fresh := notes{Format: 1, ID: cmp.Or(id, newID()), Lane: -1, fs: fsy, dir: dir}
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
	n := notes{Lane: fresh.Lane, text: bytes.TrimSuffix(text, []byte("\n"))}
	if err == nil {
		err = json.Unmarshal(text, &n)
	}
	if err != nil || n.Format != 1 || !isID(n.ID) {
		return fresh, errors.Join(fmt.Errorf("read what was announced: %s holds something else", path), err)
	}
	if !n.Floor.IsZero() {
		n.State = Holding
	}
	if n.Inode != fresh.Inode || n.Born != fresh.Born {
		// A copy. Its original may run, so no row that says Holding is its own.
		n.State, n.Writers = "", nil
	}
	n.Inode, n.Born, n.fs, n.dir = fresh.Inode, fresh.Born, fsy, dir
	return n, nil
}

// Discard removes the notes from the directory of a log that goes over to another
// store. Its row in the first store is not one of the other store. It returns the id of
// that row, or a new one if it cannot be read.
func Discard(fsy fsys.FS, dir string) (id string, err error) {
	n, _ := loadNotes(fsy, dir, "")
	if err = fsy.Remove(filepath.Join(dir, notesFile)); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return n.ID, err
}

// change changes the notes and makes the change durable. After an error the memory has
// the old notes, and the disk has the old or the new ones.
func (n *notes) change(f func(*notes)) error {
	next := *n
	next.Writers, next.Others = slices.Clone(n.Writers), slices.Clone(n.Others)
	f(&next)
	text, err := json.Marshal(next)
	if err == nil && n.dir != "" && !bytes.Equal(text, n.text) {
		n.text = nil
		err = fsys.Replace(n.fs, filepath.Join(n.dir, notesFile), append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("keep what is announced: %w", err)
	}
	next.text = text
	*n = next
	return nil
}

// say notes the claim that the row surely has.
func (n *notes) say(c claim) { n.State, n.Floor = c.state, c.time() }

// floor is the one that a Holding row has at most.
func (n *notes) floor() int64 {
	if n.Floor.IsZero() {
		return unknown
	}
	return n.Floor.UnixNano()
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

// newID draws 8 hex digits.
func newID() string { return fmt.Sprintf("%08x", rand.Uint32()) }

// isID reports whether s has the form of an ingester's id.
func isID(s string) bool { return len(s) == 8 && strings.Trim(s, "0123456789abcdef") == "" }
