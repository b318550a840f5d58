package heartbeat

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

// Identity is kept next to the log of an ingester, so that it finds its row and its
// lane again after a restart. Otherwise rows would grow without bound, for tables
// cannot delete one. A crash would also leave a second row behind that says forever
// that records are missing.
type Identity struct {
	ID   string // 8 hex digits, the key of the row
	Lane int    // the last one; -1 if there was none
}

// file is its name in the directory of the log, which ignores it.
const file = "ingester"

// identity is the whole of the file: the id and the lane.
const identity = `^([0-9a-f]{8}) ([0-9]{1,2}|-1)\n$`

// newID draws 8 hex digits.
func newID() string {
	var b [4]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// LoadIdentity reads the identity in the directory of a log. If it is missing, or
// cannot be read, it draws a new id and returns that. An error names the fault, and can
// be ignored.
func LoadIdentity(dir string) (Identity, error) {
	fresh := Identity{ID: newID(), Lane: -1}
	text, err := os.ReadFile(filepath.Join(dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, nil
	}
	if err != nil {
		return fresh, fmt.Errorf("read who this ingester is: %w", err)
	}
	m := regexp.MustCompile(identity).FindSubmatch(text)
	if m == nil {
		return fresh, fmt.Errorf("read who this ingester is: %s holds something else", filepath.Join(dir, file))
	}
	lane, err := strconv.Atoi(string(m[2]))
	return Identity{ID: string(m[1]), Lane: lane}, err
}

// Save keeps it in the directory of a log. It need not survive a power cut, so
// nothing is fsynced.
func (i Identity) Save(dir string) error {
	tmp := filepath.Join(dir, "."+file+".tmp")
	err := os.WriteFile(tmp, fmt.Appendf(nil, "%s %d\n", i.ID, i.Lane), 0o600)
	if err == nil {
		err = os.Rename(tmp, filepath.Join(dir, file))
	}
	if err != nil {
		return fmt.Errorf("keep who this ingester is: %w", err)
	}
	return nil
}
