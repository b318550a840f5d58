package access

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"blobtail/internal/yamltext"
	"blobtail/storage/fsys"
)

// Read returns the tokens of a file:
//
//	tokens:
//	  - id: grafana               # letters, digits, "-" and "_"; at most 63
//	    sha256: [5f2c...]         # of the secrets; at most two
//	    certificate: [grafana.example.com]
//	    read: ["web", "orders-*"] # globs as in logquery
//	    write: []
//	    role: peer                # or operator
//	    ack: shipped              # disk, shipped or stored; a sender may ask for more
//	    expires: 2027-06-01T00:00:00Z
//	    limits: {bytes: 10MiB/s, requests: 100/s, services-per-hour: 50}
//
// Everything but the id and a way to identify is optional. Errors name the file, the line and the
// entry. They show no hash, because an operator may have written a secret there.
func Read(path string) ([]*Token, error) {
	list, err := read(path)
	if err != nil {
		return nil, err
	}
	return list.tokens, nil
}

func read(path string) (*listing, error) {
	text, err := fsys.Read(path)
	if err != nil {
		return nil, unread(path, err)
	}
	list, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

// unread adds the fix to an error of reading a file of tokens.
func unread(path string, err error) error {
	return fsys.WhyUnread(err, "correct the path, or make the file: ingest token new ID --write GLOB --file "+path)
}

// listing is a parsed file, with the lines of its entries for changes.
type listing struct {
	tokens  []*Token
	entries []*ast.SequenceEntryNode
	begin   int // line of the key tokens; 0: the file has none
	flow    bool
}

// token returns the place of an id; -1 if there is none.
func (l *listing) index(id string) int {
	return slices.IndexFunc(l.tokens, func(t *Token) bool { return t.ID == id })
}

// mistakeError is a mistake at a line.
type mistakeError struct {
	line  int
	where string // the entry
	err   error
}

func (e *mistakeError) Error() string {
	if e.where == "" {
		return fmt.Sprintf("line %d: %v", e.line, e.err)
	}
	return fmt.Sprintf("line %d: %s: %v", e.line, e.where, e.err)
}

func at(node ast.Node, format string, args ...any) error {
	line := 0
	if t := node.GetToken(); t != nil {
		line = t.Position.Line
	}
	return &mistakeError{line: line, err: fmt.Errorf(format, args...)}
}

// maxFile bounds a file: it holds thousands of tokens.
const maxFile = 8 << 20

// parse reads the text of a file.
func parse(text []byte) (*listing, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("the file is longer than %d bytes", maxFile)
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, errors.New(yamltext.Error(err, false)) // the lines around it may have a secret
	}
	list := new(listing)
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		root, ok := doc.Body.(ast.MapNode)
		if !ok {
			if _, comment := doc.Body.(*ast.CommentGroupNode); comment {
				continue
			}
			return nil, at(doc.Body, `want the key "tokens" with a list`)
		}
		if err := list.document(root); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// document reads the keys of the file.
func (l *listing) document(root ast.MapNode) error {
	for entries := root.MapRange(); entries.Next(); {
		key := entries.Key()
		if name := key.GetToken().Value; name != "tokens" {
			return at(key, `there is no key %.40q; the file has one, "tokens"`, name)
		}
		if l.begin != 0 {
			return at(key, `the key "tokens" is there twice`)
		}
		l.begin = key.GetToken().Position.Line
		switch value := entries.Value().(type) {
		case *ast.NullNode:
		case *ast.SequenceNode:
			l.entries, l.flow = value.Entries, value.IsFlowStyle
			for i, node := range value.Values {
				if err := l.add(node, i); err != nil {
					return err
				}
			}
		default:
			return at(value, "tokens: want a list")
		}
	}
	return nil
}

// add reads an entry.
func (l *listing) add(node ast.Node, i int) error {
	token, err := newToken(node)
	if err == nil {
		err = l.unique(node, token)
	}
	if err == nil {
		l.tokens = append(l.tokens, token)
		return nil
	}
	where := fmt.Sprintf("tokens[%d]", i)
	if token != nil && token.ID != "" {
		where = fmt.Sprintf("token %.63s", token.ID)
	}
	if mistake, ok := errors.AsType[*mistakeError](err); ok {
		mistake.where = where
	}
	return err
}

// unique refuses an id or a certificate that an entry before has.
func (l *listing) unique(node ast.Node, token *Token) error {
	for _, other := range l.tokens {
		if other.ID == token.ID {
			return at(node, "there are two tokens with this id")
		}
		for _, name := range token.Certificate {
			if slices.ContainsFunc(other.Certificate, func(have string) bool { return foldName(have) == foldName(name) }) {
				return at(node, "certificate: token %s has %q too", other.ID, name)
			}
		}
	}
	return nil
}

// newToken reads the keys of an entry. With an error it returns the part that it has read.
func newToken(node ast.Node) (*Token, error) {
	entry, ok := node.(ast.MapNode)
	if !ok {
		return nil, at(node, "want the keys %s", strings.Join(keys(), ", "))
	}
	token := new(Token)
	var id ast.Node
	for entries := entry.MapRange(); entries.Next(); { // first, for the messages
		if entries.Key().GetToken().Value == "id" {
			id = entries.Value()
			text, err := scalar(id)
			if err != nil {
				return token, err
			}
			if !validID(text) {
				return token, at(id, "id: want letters, digits, %q and %q, at most 63, a letter or digit first", "-", "_")
			}
			token.ID = text
		}
	}
	if id == nil {
		return token, at(node, "it has no id")
	}
	for entries := entry.MapRange(); entries.Next(); {
		name := entries.Key().GetToken().Value
		if !slices.Contains(keys(), name) {
			return token, at(entries.Key(), "there is no key %.40q; want %s", name, strings.Join(keys(), ", "))
		}
		if err := token.set(name, entries.Value()); err != nil {
			mistake, ok := errors.AsType[*mistakeError](err)
			if ok {
				mistake.err = fmt.Errorf("%s: %w", name, mistake.err)
			}
			return token, err
		}
	}
	token.read, token.write = newPatterns(token.Read), newPatterns(token.Write)
	if len(token.hashes)+len(token.Certificate) == 0 {
		return token, at(id, "it has neither sha256 nor certificate, so nobody can use it")
	}
	return token, nil
}

func keys() []string {
	return []string{"id", "sha256", "certificate", "read", "write", "role", "ack", "expires", "limits"}
}

// set reads the value of a key. Its errors do not name the key.
func (t *Token) set(key string, value ast.Node) (err error) {
	if _, null := value.(*ast.NullNode); null && key != "id" {
		return nil
	}
	switch key {
	case "sha256":
		t.hashes, err = hashes(value)
	case "certificate":
		t.Certificate, err = texts(value, func(name string) error {
			if name == "" {
				return errors.New("want a URI, a DNS name or a common name of a certificate")
			}
			return nil
		})
	case "read":
		t.Read, err = globs(value)
	case "write":
		t.Write, err = globs(value)
	case "role":
		var text string
		text, err = scalar(value)
		if t.Role = Role(text); err == nil && !slices.Contains([]Role{"", Peer, Operator}, t.Role) {
			err = at(value, "%.40q: want %s or %s", text, Peer, Operator)
		}
	case "ack":
		var text string
		if text, err = scalar(value); err == nil && t.Ack.UnmarshalText([]byte(text)) != nil {
			err = at(value, "%.40q: want disk, shipped or stored", text)
		}
	case "expires":
		t.Expires, err = moment(value)
	case "limits":
		t.Limits, err = limits(value)
	}
	return err
}

// scalar returns the text of a value.
func scalar(node ast.Node) (string, error) {
	switch n := node.(type) {
	case *ast.LiteralNode:
		return strings.TrimSpace(n.Value.Value), nil
	case *ast.StringNode:
		return n.Value, nil
	case *ast.IntegerNode, *ast.FloatNode:
		return n.GetToken().Value, nil // of 64 hexadecimal digits, too
	}
	return "", at(node, "want one text")
}

// texts returns the items of a list that check accepts.
func texts(node ast.Node, check func(string) error) ([]string, error) {
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		return nil, at(node, "want a list")
	}
	var out []string
	for i, item := range list.Values {
		text, err := scalar(item)
		if err == nil {
			if err = check(text); err != nil {
				err = at(item, "[%d]: %w", i, err)
			}
		}
		if err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, nil
}

func hashes(node ast.Node) (out [][sha256.Size]byte, err error) {
	_, err = texts(node, func(text string) error {
		var sum [sha256.Size]byte
		if n, err := hex.Decode(sum[:], []byte(text[:min(len(text), 2*sha256.Size)])); err != nil || n != len(sum) || len(text) != 2*len(sum) {
			return errors.New("want 64 hexadecimal digits, the SHA-256 of the secret")
		}
		if len(out) == maxSecrets {
			return fmt.Errorf("want at most %d: the old secret and the new one", maxSecrets)
		}
		out = append(out, sum)
		return nil
	})
	return out, err
}

// maxGlobs bounds the globs of a list, in bytes: ingesters send them to each other in a header.
const maxGlobs = 4096

func globs(node ast.Node) ([]string, error) {
	size := 0
	return texts(node, func(glob string) error {
		if size += len(glob) + 1; size > maxGlobs {
			return fmt.Errorf("want at most %d bytes of globs; shorten the list by globs such as web-*", maxGlobs)
		}
		if !validGlob(glob) {
			return fmt.Errorf("%.80q: want a service or a glob in lower case, such as web or web-*", glob)
		}
		return nil
	})
}

// moment reads a time with its zone, or a day in UTC.
func moment(node ast.Node) (time.Time, error) {
	text, err := scalar(node)
	if err != nil {
		return time.Time{}, err
	}
	t, ok := ParseExpires(text)
	if !ok {
		return time.Time{}, at(node, "%.40q: want a time such as 2027-06-01T00:00:00Z", text)
	}
	return t, nil
}

// ParseExpires reads the end of a token, as a file has it: a time with its zone, or a day in UTC,
// at the beginning of which the token ends. ok is false for any other text.
func ParseExpires(text string) (t time.Time, ok bool) {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// limits reads the section of limits.
func limits(node ast.Node) (l Limits, err error) {
	section, ok := node.(ast.MapNode)
	if !ok {
		return l, at(node, "want bytes, requests, services-per-hour")
	}
	for entries := section.MapRange(); entries.Next(); {
		name := entries.Key().GetToken().Value
		text, err := scalar(entries.Value())
		if err != nil {
			return l, err
		}
		amount, second := strings.CutSuffix(text, "/s")
		amount = strings.TrimSpace(amount)
		want := ""
		switch name {
		case "bytes":
			if err := l.Bytes.UnmarshalText([]byte(amount)); err != nil || !second || l.Bytes <= 0 {
				want = "want bytes in a second, such as 10MiB/s"
			}
		case "requests":
			l.Requests, err = strconv.ParseFloat(amount, 64)
			if err != nil || !second || !(l.Requests >= 0.001 && l.Requests <= math.MaxInt32) {
				want = "want requests in a second, such as 100/s"
			}
		case "services-per-hour":
			l.Services, err = strconv.Atoi(text)
			if err != nil || l.Services < 1 || l.Services > maxServices {
				want = fmt.Sprintf("want 1 to %d", maxServices)
			}
		default:
			return l, at(entries.Key(), "there is no key %.40q; want bytes, requests, services-per-hour", name)
		}
		if want != "" {
			return l, at(entries.Value(), "%s: %.40q: %s", name, text, want)
		}
	}
	return l, nil
}

// linesOf cuts a text into lines with their ends.
func linesOf(text []byte) [][]byte { return bytes.SplitAfter(text, []byte("\n")) }
