package access

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"blobtail/storage/fsys"
)

// NewSecret returns a random secret of 130 bits, and its hash as the file has it.
func NewSecret() (secret, hash string) {
	secret = rand.Text()
	sum := sha256.Sum256([]byte(secret))
	return secret, hex.EncodeToString(sum[:])
}

// An Entry is a token as [Add] writes it.
type Entry struct {
	ID          string
	Hash        string // of its secret, from NewSecret
	Read, Write []string
	Role        Role
	Expires     time.Time // zero: never
}

// Text is the entry as lines of the file, indented by so many columns.
func (e Entry) Text(indent int) string {
	var b strings.Builder
	pad := strings.Repeat(" ", indent)
	fmt.Fprintf(&b, "%s- id: %s\n", pad, quoted(e.ID))
	line := func(key, value string) { fmt.Fprintf(&b, "%s  %s: %s\n", pad, key, value) }
	line("sha256", flow([]string{e.Hash}))
	if len(e.Read) > 0 {
		line("read", flow(e.Read))
	}
	if len(e.Write) > 0 {
		line("write", flow(e.Write))
	}
	if e.Role != "" {
		line("role", string(e.Role))
	}
	if !e.Expires.IsZero() {
		line("expires", e.Expires.UTC().Format(time.RFC3339))
	}
	return b.String()
}

// flow is a list in one line.
func flow(texts []string) string {
	list := make([]string, len(texts))
	for i, text := range texts {
		list[i] = quoted(text)
	}
	return "[" + strings.Join(list, ", ") + "]"
}

// quoted quotes a text, so that YAML takes it for no number and no alias.
func quoted(text string) string { return strconv.Quote(text) }

// Check returns the mistakes of an entry.
func (e Entry) Check() error {
	_, err := parse([]byte("tokens:\n" + e.Text(2)))
	if mistake, ok := errors.AsType[*mistakeError](err); ok {
		return fmt.Errorf("%s: %w", mistake.where, mistake.err)
	}
	return err
}

// ErrNoToken says that the file has no token of an id.
var ErrNoToken = errors.New("there is no such token")

// ErrExists says that a token exists, and an entry says more than its id and its secret.
var ErrExists = errors.New("the token exists; its entry in the file says what it may do, and is changed there")

// Added is the result of [Add].
type Added struct {
	Rotated bool // the token existed, and has one more secret
	Dropped bool // it had two, and the older one is not accepted any more
}

// Add writes a token to a file, which it makes if there is none. If the token exists, Add
// adds the secret to it; an entry with more than that is [ErrExists]. Comments stay, and
// so do the owner and the mode of the file. The file is the old or the new one after a
// crash. Two changes at once wait for each other.
func Add(path string, e Entry) (done Added, err error) {
	err = edit(path, true, func(text []byte, list *listing) ([]byte, error) {
		i := list.index(e.ID)
		if i < 0 {
			return list.appendEntry(text, e)
		}
		if len(e.Read)+len(e.Write) > 0 || e.Role != "" || !e.Expires.IsZero() {
			return nil, fmt.Errorf("token %s: %w", e.ID, ErrExists)
		}
		done = Added{true, list.tokens[i].Secrets() == maxSecrets}
		return list.addHash(text, i, e.Hash)
	}, func(before, after *listing) bool {
		i := after.index(e.ID)
		if i < 0 {
			return false
		}
		got := after.tokens[i].hashes
		if len(got) == 0 || hex.EncodeToString(got[len(got)-1][:]) != e.Hash {
			return false
		}
		return sameBut(before, after, e.ID)
	})
	return done, err
}

// Revoke removes a token from a file. The error is [ErrNoToken] if there is none.
func Revoke(path, id string) error {
	return edit(path, false, func(text []byte, list *listing) ([]byte, error) {
		i := list.index(id)
		if i < 0 {
			return nil, fmt.Errorf("token %s: %w", id, ErrNoToken)
		}
		if list.flow {
			return nil, errFlow
		}
		lines := linesOf(text)
		from, to := list.extent(lines, i)
		return bytes.Join(slices.Delete(lines, from, to), nil), nil
	}, func(before, after *listing) bool {
		return after.index(id) < 0 && sameBut(before, after, id)
	})
}

var (
	errFlow = errors.New("its list is written in brackets; write each entry on lines of its own, or change it by hand")
	errForm = errors.New("its form is unusual; change it by hand")
)

// edit changes the text of a file. After the change it reads the text and has check compare
// both: a change of text that it does not understand must not damage an access list.
func edit(path string, create bool, change func([]byte, *listing) ([]byte, error), check func(before, after *listing) bool) error {
	path, err := target(path)
	if err != nil {
		return err
	}
	unlock, err := lock(filepath.Dir(path))
	if err != nil {
		return unwritten(path, err)
	}
	defer unlock()
	text, err := fsys.Read(path)
	if err != nil && !(create && errors.Is(err, fs.ErrNotExist)) {
		return unread(path, err)
	}
	before, err := parse(text)
	if err == nil {
		text, err = change(text, before)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	after, err := parse(text)
	if err != nil || !check(before, after) {
		return fmt.Errorf("%s: %w", path, errForm)
	}
	return unwritten(path, replace(path, text))
}

// unwritten adds the fix to an error of changing a file of tokens.
func unwritten(path string, err error) error {
	dir := filepath.Dir(path)
	fix := (fsys.Place{Dir: dir}).Remedy(err)
	if errors.Is(err, fs.ErrNotExist) {
		fix = "correct the path, or make the directory: mkdir -p " + dir
	}
	if fix == "" {
		return err
	}
	return fmt.Errorf("%w; %s", err, fix)
}

// sameBut reports whether two listings have the same tokens but the one of an id.
func sameBut(a, b *listing, id string) bool {
	others := func(l *listing) []*Token {
		return slices.DeleteFunc(slices.Clone(l.tokens), func(t *Token) bool { return t.ID == id })
	}
	return slices.EqualFunc(others(a), others(b), func(x, y *Token) bool {
		return x.ID == y.ID && slices.Equal(x.hashes, y.hashes) && slices.Equal(x.Read, y.Read) && slices.Equal(x.Write, y.Write) &&
			x.Role == y.Role && x.Ack == y.Ack && x.Expires.Equal(y.Expires) && x.Limits == y.Limits &&
			slices.Equal(x.Certificate, y.Certificate)
	})
}

// appendEntry writes an entry behind the last one.
func (l *listing) appendEntry(text []byte, e Entry) ([]byte, error) {
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	indent := 2
	switch {
	case l.begin == 0:
		return append(append(text, "tokens:\n"...), e.Text(indent)...), nil
	case l.flow && len(l.entries) > 0:
		return nil, errFlow
	case len(l.entries) > 0:
		indent = l.entries[0].Start.Position.Column - 1
	}
	lines := linesOf(text)
	if l.flow { // "tokens: []"
		lines[l.begin-1] = []byte("tokens:\n")
	}
	end := l.begin
	if n := len(l.entries); n > 0 {
		_, end = l.extent(lines, n-1)
	}
	return bytes.Join(slices.Insert(lines, end, []byte(e.Text(indent))), nil), nil
}

// extent returns the lines of an entry, half open. Comments and empty lines behind it
// belong to the next one.
func (l *listing) extent(lines [][]byte, i int) (from, to int) {
	from, to = l.entries[i].Start.Position.Line-1, len(lines)
	if i+1 < len(l.entries) {
		to = l.entries[i+1].Start.Position.Line - 1
	}
	for to > from+1 {
		line := bytes.TrimSpace(lines[to-1])
		if len(line) > 0 && line[0] != '#' {
			break
		}
		to--
	}
	return from, to
}

// addHash adds the hash of a secret to an entry, behind the newest one that it has.
func (l *listing) addHash(text []byte, i int, hash string) ([]byte, error) {
	if l.flow {
		return nil, errFlow
	}
	list := []string{hash}
	if old := l.tokens[i].hashes; len(old) > 0 {
		list = []string{hex.EncodeToString(old[len(old)-1][:]), hash}
	}
	entry, ok := l.entries[i].Value.(ast.MapNode)
	if !ok {
		return nil, errForm
	}
	lines := linesOf(text)
	from, to := l.extent(lines, i)
	column, begin, end := 0, 0, to
	for entries := entry.MapRange(); entries.Next(); {
		at := entries.Key().GetToken().Position
		column = cmp.Or(column, at.Column)
		switch {
		case entries.Key().GetToken().Value == "sha256":
			begin = at.Line
		case begin > 0 && end == to:
			end = at.Line - 1
		}
	}
	line := []byte(strings.Repeat(" ", column-1) + "sha256: " + flow(list) + "\n")
	switch {
	case begin == 0:
		return bytes.Join(slices.Insert(lines, to, line), nil), nil
	case begin-1 == from: // "- sha256:" is its first key
		line = append(lines[from][:column-1:column-1], bytes.TrimLeft(line, " ")...)
	}
	return bytes.Join(slices.Replace(lines, begin-1, end, line), nil), nil
}

// target is the file that a path names: a link stays a link.
func target(path string) (string, error) {
	to, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	return to, err
}

// replace makes text the content of a file in one step, with the owner and the mode of the one
// before, less the rights of everybody.
func replace(path string, text []byte) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temp.Name()))
		}
	}()
	if fi, serr := os.Stat(path); serr == nil {
		err = errors.Join(keepOwner(temp, fi), temp.Chmod(fi.Mode().Perm()&^0o007))
	}
	if err == nil {
		_, err = temp.Write(text)
	}
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return err
	}
	return fsys.OS().SyncDir(filepath.Dir(path)) // or a power cut may bring a revoked token back
}
