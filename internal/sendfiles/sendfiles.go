// Package sendfiles sends the lines of files to an ingester, each once.
//
// Before each request the place in the file is made durable, with the end of what is sent: a sender that
// was killed sends the same bytes again with the same Idempotency-Key, and the ingester and each reader
// know the repeat. A file is known by its beginning, so it may be renamed and packed meanwhile.
package sendfiles

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/xxh3"

	"blobtail/internal/progress"
	"blobtail/internal/trust"
	"blobtail/record"
	"blobtail/storage/fsys"
)

const (
	lookEvery = 250 * time.Millisecond // is how often a followed file is looked at
	lateFor   = 5 * time.Second        // is how long the writer of a file that was renamed may pause
	chunkSize = 1 << 20                // is the text of a request
	lineSize  = 16 << 20               // is that of one with a longer line
	headSize  = 16 << 10               // is how much of the beginning of a file tells it from others
)

// Options are the settings of [Run].
type Options struct {
	To       *url.URL                         // the ingester
	Trust    *trust.Trust                     // of To
	Token    string                           // "": none
	Service  string                           // of all lines; "": their own, else a file's name up to its first dot
	Places   string                           // the directory of the places in files
	Follow   bool                             // go on with what is appended, also after rotations
	Rate     int64                            // bytes of text a second at most; 0: no bound
	Progress *progress.Counter                // of files and their bytes
	Note     func(format string, args ...any) // tells a person what the sender waits for
}

// Sent is what the ingester has taken. Its JSON is an answer of the native protocol.
type Sent struct {
	Accepted, Rejected, Expired int64
	Bytes                       int64 `json:"-"`
	Error                       string
}

type sender struct {
	Options
	client http.Client
	paths  []string
	places []*place
	text   *bufio.Reader // of the file that is being read
	sent   Sent
	over   bool // the ingester takes nothing from this sender
}

// Run sends files with absolute paths; "-" is stdin, of which no place is kept. A file that cannot be
// read or is refused does not keep the others from being sent, nor followed. Run tries a request until
// the ingester takes it, or ctx ends.
func Run(ctx context.Context, o Options, paths []string) (_ Sent, err error) {
	s := &sender{Options: o, paths: paths, text: bufio.NewReaderSize(nil, lineSize)}
	s.client.Timeout = 2 * time.Minute
	s.client.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: o.Trust.Config()}
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	lock, err := s.load()
	if err != nil {
		return s.sent, err
	}
	defer lock.Close()
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			s.Progress.Expect(1, info.Size())
		} else if o.Follow {
			s.Note("%v: it is sent when it is there", err)
		}
	}
	for noted := make(map[string]string); ; wait(ctx, lookEvery) {
		for _, path := range paths {
			failed := s.look(ctx, path)
			if s.Progress.Finish(1, 0); ctx.Err() != nil {
				return s.sent, ctx.Err()
			}
			if text := fmt.Sprint(failed); s.Follow && !s.over {
				if failed != nil && text != noted[path] {
					s.Note("%s", text)
				}
				noted[path], failed = text, nil
			}
			err = errors.Join(err, failed)
		}
		if err != nil || !o.Follow {
			return s.sent, err
		}
	}
}

// look sends what a file has got. A followed one of which nothing was sent is new after a rotation, so
// those that had its name go before it, from the newest one on of which something was sent. A file that
// is sent under its own name is none of them.
func (s *sender) look(ctx context.Context, name string) error {
	todo := []string{name}
	knows := byPath(func(f *file) bool { return s.find(f) != nil })
	if s.Follow && !knows(name) {
		todo = append(todo, slices.DeleteFunc(rotated(name), byPath(func(f *file) bool {
			p := s.find(f)
			return slices.Contains(s.paths, f.Name()) || p != nil && p.Path == f.Name()
		}))...)
		todo = todo[:max(slices.IndexFunc(todo, knows), 0)+1]
	}
	for _, path := range slices.Backward(todo) {
		before := s.sent.Bytes
		late, err := s.file(ctx, name, path)
		if err != nil && !(s.Follow && errors.Is(err, fs.ErrNotExist)) {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err != nil || late || s.sent.Bytes > before {
			return nil // by now the paths may be those of other files
		}
	}
	return nil
}

// file sends what is left of a file that has a name, or had it and may get more late.
func (s *sender) file(ctx context.Context, name, path string) (late bool, err error) {
	f, err := open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	p := cmp.Or(s.find(f), new(place))
	if p.done {
		return false, nil
	}
	if s.text.Reset(f.text); !f.ends && p.Sent > 0 {
		_, err = f.Seek(p.Sent, io.SeekStart)
		s.text.Reset(f)
	} else {
		_, _ = io.CopyN(io.Discard, s.text, p.Sent) // whose error the next read has too
	}
	if err != nil {
		return false, err
	}
	p.Path, p.Inode = name, inode(f.info)
	before := p.Sent
	late = path != name && time.Since(f.info.ModTime()).Abs() < lateFor
	err = s.rest(ctx, f, p, name, f.ends || path != name && !late)
	if _, more := s.text.Peek(1); !s.Follow && err == nil && more == nil {
		wait(ctx, time.Second) // for the rest of a line that is being written
		err = s.rest(ctx, f, p, name, true)
	}
	if p.done = p.done || f.ends && err == nil; !s.Follow && err == nil && before > 0 && p.Sent == before {
		s.Note("%s was sent before; to send it again, remove %s", path, s.placeFile(p))
	}
	return late, err
}

// rest sends what is left of a text. last says that the line at its end is whole without a line feed.
func (s *sender) rest(ctx context.Context, f *file, p *place, name string, last bool) error {
	for changed := false; ctx.Err() == nil; changed = true {
		text, err := s.next(int(p.Next-p.Sent), last)
		if len(text) == 0 && changed {
			return errors.Join(err, s.keep(f, p, nil))
		} else if len(text) == 0 {
			return err
		}
		if p.Next == p.Sent {
			p.Next, p.At, p.Service = p.Sent+int64(len(text)), f.info.ModTime(), s.service(name, f.head)
		}
		if err := s.keep(f, p, text); err != nil {
			return err
		}
		if err := s.post(ctx, p, text); err != nil {
			return err
		}
		_, _ = s.text.Discard(len(text))
		p.Sent = p.Next
		s.sent.Bytes += int64(len(text))
		at, _ := f.Seek(0, io.SeekCurrent)
		s.Progress.Finish(0, at-f.seen)
		if f.seen = at; s.Rate > 0 {
			wait(ctx, time.Duration(int64(len(text))*int64(time.Second)/s.Rate))
		}
	}
	return ctx.Err()
}

// next returns the text of a request: n bytes, or whole lines if that is 0.
func (s *sender) next(n int, last bool) ([]byte, error) {
	for size := cmp.Or(n, chunkSize); ; size *= 2 {
		text, err := s.text.Peek(size)
		lines := bytes.LastIndexByte(text, '\n') + 1
		switch {
		case n > 0 && err == nil, n == 0 && last && errors.Is(err, io.EOF):
			return text, nil
		case n == 0 && err != nil && lines > 0:
			return text[:lines], nil
		case errors.Is(err, io.EOF):
			return nil, nil
		case err != nil:
			return nil, err
		}
		for lines > 0 { // one that begins with a blank belongs to the one before
			if lines = bytes.LastIndexByte(text[:lines-1], '\n') + 1; lines > 0 && !bytes.ContainsAny(text[lines:lines+1], " \t\r\n") {
				return text[:lines], nil
			}
		}
		if size == lineSize {
			return text, nil
		}
	}
}

// service is that of the lines of a file with a name; "": each names its own.
func (s *sender) service(name string, head []byte) string {
	var own struct{ Service string }
	if s.Service == "" && json.NewDecoder(bytes.NewReader(head)).Decode(&own) == nil && own.Service != "" {
		return ""
	}
	base, _, _ := strings.Cut(filepath.Base(name), ".")
	return record.FoldService(cmp.Or(s.Service, base))
}

// wait waits, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// post sends the text at a place until the ingester takes it.
func (s *sender) post(ctx context.Context, p *place, text []byte) error {
	again, err := s.once(ctx, p, text)
	for try := 1; err != nil && again > 0 && ctx.Err() == nil; try++ {
		if try == 2 {
			s.Note("waiting for the ingester: %v", err)
		}
		wait(ctx, again)
		again, err = s.once(ctx, p, text)
	}
	if p.done = err != nil && again == 0 && !s.over; p.done {
		err = fmt.Errorf("bytes %d to %d of its text: %w; cut them out, or send what is behind them alone: "+
			"tail -c +%d FILE | ingest send --service %s -", p.Sent+1, p.Next, err, p.Next+1, cmp.Or(p.Service, "NAME"))
	}
	return err
}

// once sends a request. It returns after what time to try again; 0: that is of no use.
func (s *sender) once(ctx context.Context, p *place, text []byte) (again time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.To.JoinPath("ingest", p.Service).String(), bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Idempotency-Key", p.key())
	if s.Token != "" {
		r.Header.Set("Authorization", "Bearer "+s.Token)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		if err, s.over = s.Trust.Explain(err, s.To); s.over {
			return 0, err
		}
		return time.Second, err
	}
	defer resp.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	var a Sent
	ours := json.Unmarshal(said, &a) == nil && bytes.Contains(said, []byte(`"accepted"`)) // and not a stranger's
	if ours && (resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusBadRequest && a.Rejected > 0) {
		s.sent.Accepted += a.Accepted
		s.sent.Rejected += a.Rejected // which are kept too
		s.sent.Expired += a.Expired
		return 0, nil
	}
	s.over = resp.StatusCode < 400 || slices.Contains([]int{http.StatusUnauthorized, http.StatusNotFound}, resp.StatusCode)
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= http.StatusInternalServerError {
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		again = time.Duration(max(seconds, 1)) * time.Second
	}
	return again, fmt.Errorf("the ingester answers %s: %.1000s", resp.Status, cmp.Or(a.Error, string(bytes.TrimSpace(said))))
}

// A file is one that is being read.
type file struct {
	*os.File
	info os.FileInfo
	ends bool          // it is packed, or stdin: it does not grow
	text *bufio.Reader // its text
	head []byte        // the beginning of that
	seen int64         // how much of it was counted as progress
}

func open(path string) (f *file, err error) {
	f = &file{File: os.Stdin}
	if path != "-" {
		if f.File, err = os.Open(path); err != nil {
			return nil, errors.Unwrap(err) // without the path
		}
	}
	if f.info, err = f.Stat(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r := bufio.NewReader(f)
	var text io.Reader = r
	f.ends = true
	switch magic, _ := r.Peek(4); {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		text, err = gzip.NewReader(r)
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		text, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
	case bytes.HasPrefix(magic, []byte("BZh")), bytes.Equal(magic, []byte("\xfd7zX")):
		err = errors.New("it is packed, but not by gzip or zstd: unpack it")
	default:
		f.ends = f.File == os.Stdin
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	f.text = bufio.NewReaderSize(text, headSize)
	f.head, _ = f.text.Peek(headSize)
	f.head = bytes.Clone(f.head)
	return f, nil
}

// inode is the number of a file on its host.
func inode(info os.FileInfo) string {
	s := info.Sys().(*syscall.Stat_t)
	return fmt.Sprint(s.Dev, ":", s.Ino)
}

// A place is how far a file was sent. It stays with the file when that is renamed or packed.
type place struct {
	ID          string
	Path, Inode string       // the name that it was sent under, and its inode then
	Head        xxh3.Uint128 // the hash of the first Size bytes: of all that was sent, at most headSize
	Size        int
	// Sent is the end of what an ingester has taken, Next that of a request whose answer is not known,
	// both in bytes of the text. That is sent again with the same bytes, key and service.
	Sent, Next int64
	Service    string
	At         time.Time // in the key, for lines without a time
	done       bool      // no more can come
}

// key is the Idempotency-Key of a request: a UUIDv7.
func (p *place) key() string {
	sum := xxh3.HashString128(fmt.Sprintf("%s %d", p.ID, p.Sent)).Bytes()
	id := binary.BigEndian.AppendUint64(nil, uint64(max(p.At.UnixMilli(), 0))<<16)
	id = append(id[:6], sum[:10]...)
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	return fmt.Sprintf("%x", id)
}

// load reads the places in the directory, and keeps other processes from it.
func (s *sender) load() (lock io.Closer, err error) {
	if err = fsys.MakeDir(fsys.OS(), s.Places); err == nil {
		lock, err = fsys.OS().Lock(s.Places)
	}
	if errors.Is(err, fsys.ErrLocked) {
		err = fmt.Errorf("another ingest send works with %s: wait for it, or name all files in one command", s.Places)
	}
	names, _ := filepath.Glob(s.placeFile(&place{ID: "*"}))
	for _, name := range names {
		p := new(place)
		text, failed := os.ReadFile(name)
		if failed = cmp.Or(failed, json.Unmarshal(text, p)); failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w; if you remove it, its file is sent anew", name, failed))
		}
		s.places = append(s.places, p)
	}
	return lock, err
}

// placeFile is the path of a place.
func (s *sender) placeFile(p *place) string { return filepath.Join(s.Places, p.ID+".json") }

// keep makes a place durable, before the text behind it is sent. Stdin has none.
func (s *sender) keep(f *file, p *place, text []byte) error {
	if p.ID == "" {
		p.ID = rand.Text()
		s.places = append(s.places, p)
	}
	if f.File == os.Stdin {
		return nil
	}
	if p.Size < headSize {
		if int(p.Next) > len(f.head) { // it has grown since it was opened
			f.head = append(f.head[:p.Sent], text...)
		}
		p.Size = min(int(p.Next), headSize)
		p.Head = xxh3.Hash128(f.head[:p.Size])
	}
	line, err := json.Marshal(p)
	return cmp.Or(err, fsys.Replace(fsys.OS(), s.placeFile(p), line))
}

// find returns the place of a file, by its inode or, if that has gone, its beginning; nil: it was never
// sent.
func (s *sender) find(f *file) (found *place) {
	for _, p := range s.places {
		if p.Inode == inode(f.info) && !f.ends && f.info.Size() < p.Sent { // emptied: its text is in a copy at most
			p.Inode = ""
		}
		switch {
		case p.is(f):
			return p
		case !p.fits(f), p.Size < headSize && !slices.Contains(rotated(p.Path), f.Name()):
		case !slices.ContainsFunc(append(rotated(p.Path), p.Path), byPath(p.is)) && (found == nil || p.Sent > found.Sent):
			found = p
		}
	}
	return found
}

// fits reports whether a file may be a copy of that of a place, is whether it is the same.
func (p *place) fits(f *file) bool {
	return f.File != os.Stdin && (f.ends || f.info.Size() >= p.Sent) && p.Size <= len(f.head) && p.Head == xxh3.Hash128(f.head[:p.Size])
}

func (p *place) is(f *file) bool { return p.Inode == inode(f.info) && p.fits(f) }

// byPath asks about the file that a path names; false: it cannot be read.
func byPath(is func(*file) bool) func(path string) bool {
	return func(path string) bool {
		f, err := open(path)
		if err != nil {
			return false
		}
		defer f.Close()
		return is(f)
	}
}

// rotated returns the files that have the names that rotation gives one, such as app.log.2.gz and
// app-2026-11-29.log of app.log; the newest one first. One that is being packed is left out.
func rotated(name string) []string {
	ext := regexp.QuoteMeta(filepath.Ext(name))
	form := regexp.MustCompile("^" + strings.TrimSuffix(regexp.QuoteMeta(name), ext) + "(" + ext + `)?([-._][0-9]|\.(gz|zst)$)`)
	entries, _ := os.ReadDir(filepath.Dir(name)) // why not, opening the file says
	changed := make(map[string]time.Time)
	for _, e := range entries {
		path := filepath.Join(filepath.Dir(name), e.Name())
		raw := strings.TrimSuffix(strings.TrimSuffix(path, ".gz"), ".zst")
		_, gone := os.Lstat(raw)
		if info, err := e.Info(); err == nil && e.Type().IsRegular() && form.MatchString(path) && (raw == path || gone != nil) {
			changed[path] = info.ModTime()
		}
	}
	return slices.SortedFunc(maps.Keys(changed), func(a, b string) int { return changed[b].Compare(changed[a]) })
}
