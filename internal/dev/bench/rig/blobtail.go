package rig

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// Ingester is a running ingester.
type Ingester struct {
	*Server
	admin string // URL
}

// StartIngester starts an ingester on free ports and waits until it is ready.
func StartIngester(ctx context.Context, program string, env []string, args ...string) (*Ingester, error) {
	at, err := addresses(2)
	if err != nil {
		return nil, err
	}
	g := &Ingester{admin: "http://" + at[1]}
	g.Server, err = start(ctx, "http://"+at[0], g.admin+"/readyz", env, program, append([]string{"--listen", at[0], "--admin", at[1]}, args...)...)
	return g, err
}

// Flush returns when all records are in blobs.
func (g *Ingester) Flush(ctx context.Context) error {
	_, err := Fetch(ctx, http.MethodPost, g.admin+"/flush")
	return err
}

// Profile writes a CPU profile of the next seconds.
func (g *Ingester) Profile(ctx context.Context, seconds int, name string) error {
	text, err := Fetch(ctx, http.MethodGet, fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", g.admin, seconds))
	if err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o644)
}

// Serve starts logquery serve for a store on a free port, and waits until it is ready.
func Serve(ctx context.Context, logquery string, env []string, store string) (*Server, error) {
	at, err := addresses(1)
	if err != nil {
		return nil, err
	}
	base := "http://" + at[0]
	return start(ctx, base, base+"/ready", env, logquery, "--store", store, "serve", "--listen", at[0])
}

// Files returns the number and the bytes of the wanted files of a folder, by their paths below it. A file
// that goes meanwhile, and a folder that is not there, count for nothing.
func Files(folder string, want func(path string) bool) (n int, size int64, err error) {
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() || !want(strings.TrimPrefix(path, folder)) {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			n++
			size += info.Size()
		}
		return err
	})
	return n, size, err
}

// BlobsOf returns the number of blobs in a dir store, and their bytes.
func BlobsOf(store string) (n int, size int64, err error) {
	return Files(store, func(path string) bool {
		return strings.HasSuffix(path, ".log") && !strings.Contains(path, "/.") // those have the log and the tables
	})
}

// CopyStore copies a dir store on which no ingester is running. Blobs are never written twice, so
// links will do for them.
func CopyStore(from, to string) error {
	if err := os.CopyFS(filepath.Join(to, ".tables"), os.DirFS(filepath.Join(from, ".tables"))); err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		switch at := filepath.Join(to, strings.TrimPrefix(path, from)); {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir // the log, and the tables
		case d.IsDir():
			return os.MkdirAll(at, 0o755)
		default:
			return os.Link(path, at)
		}
	})
}
