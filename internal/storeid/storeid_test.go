package storeid_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testenv/stores"
	"blobtail/internal/storeid"
	"blobtail/storage"
	"blobtail/storage/dir"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

var env testenv.Env

func TestMain(m *testing.M) { os.Exit(env.Run(m)) }

// onEach runs a test on each driver with stores that are empty.
func onEach(t *testing.T, run func(t *testing.T, open func() storage.BlobStore)) {
	stores.Each(t, &env, func(t *testing.T, open stores.Open) {
		run(t, func() storage.BlobStore {
			s, _ := open()
			return s
		})
	})
}

func ensure(t *testing.T, s storage.BlobStore) string {
	t.Helper()
	id, err := storeid.Ensure(t.Context(), s)
	if err != nil || !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(id) {
		t.Fatalf("Ensure: %q, %v", id, err)
	}
	return id
}

func reads(t *testing.T, s storage.BlobStore, want string) {
	t.Helper()
	if id, err := storeid.Read(t.Context(), s); id != want || err != nil {
		t.Errorf("Read: %q, %v, want %q", id, err, want)
	}
}

// A store has no id until a process makes one, which stays.
func TestEnsure(t *testing.T) {
	onEach(t, func(t *testing.T, open func() storage.BlobStore) {
		s, other := open(), open()
		reads(t, s, "")
		id := ensure(t, s)
		for range 2 {
			reads(t, s, id)
			if again := ensure(t, s); again != id {
				t.Errorf("Ensure: %s, then %s", id, again)
			}
		}
		reads(t, other, "")
		if ensure(t, other) == id {
			t.Error("two stores have one id")
		}
		b, err := s.Stat(t.Context(), "_store")
		if err != nil || b.ContentType != "application/json" || b.ContentEncoding != "" {
			t.Errorf("Stat = %+v, %v", b, err)
		}
		if got := storagetest.Body(t, s, "_store"); string(got) != `{"format":1,"id":"`+id+`"}`+"\n" {
			t.Errorf("the object is %q", got)
		}
	})
}

// All processes that make one at once get the same.
func TestEnsureAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, open func() storage.BlobStore) {
		for range 5 {
			s := open()
			var ids [4]string
			var wg sync.WaitGroup
			for i := range ids {
				wg.Go(func() {
					id, err := storeid.Ensure(t.Context(), s)
					if err != nil {
						t.Error(err)
					}
					ids[i] = id
				})
			}
			wg.Wait()
			for _, id := range ids {
				if id == "" || id != ids[0] {
					t.Fatalf("ids %q", ids)
				}
			}
			reads(t, s, ids[0])
		}
	})
}

// A missing store has no id, and making one does not make the store.
func TestAbsentStore(t *testing.T) {
	root := filepath.Join(t.TempDir(), "store")
	s, err := dir.Open(root, dir.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := os.Remove(root); err != nil {
		t.Fatal(err)
	}
	reads(t, s, "")
	if id, err := storeid.Ensure(t.Context(), s); id != "" || !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("Ensure: %q, %v, want ErrNotExist", id, err)
	}
}

// With faults there is an id or an error, and never two ids.
func TestFaults(t *testing.T) {
	fault := storagetest.ErrFault
	before, after := storagetest.Fault{Before: fault}, storagetest.Fault{After: fault}
	absent := storagetest.Fault{Before: storage.ErrNotExist}
	for name, c := range map[string]struct {
		there  bool // it is there already
		script storagetest.Script
		err    error // of the first Ensure
		made   bool  // after it
	}{
		"read fails":                    {false, storagetest.Times(1, storagetest.Get, "", before), fault, false},
		"read fails, of one":            {true, storagetest.Times(1, storagetest.Get, "", before), fault, true},
		"request lost":                  {false, storagetest.Times(1, storagetest.Create, "", before), fault, false},
		"answer lost":                   {false, storagetest.Times(1, storagetest.Create, "", after), fault, true},
		"another was quicker":           {true, storagetest.Times(1, storagetest.Get, "", absent), nil, true},
		"sent again after a lost one":   {false, storagetest.Times(1, storagetest.Create, "", storagetest.Fault{After: storage.ErrExist}), nil, true},
		"another was quicker, and lost": {true, storagetest.InTurn(storagetest.Times(1, storagetest.Get, "", absent), storagetest.Times(1, storagetest.Get, "", before)), fault, true},
		"no rights":                     {false, storagetest.Times(1, storagetest.Create, "", storagetest.Fault{Before: storage.ErrUnauthorized}), storage.ErrUnauthorized, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := mem.New(mem.Options{})
			first := ""
			if c.there {
				first = ensure(t, s)
			}
			f := storagetest.Faulty(s, c.script)
			id, err := storeid.Ensure(t.Context(), f)
			if !errors.Is(err, c.err) || (id == "") != (c.err != nil) {
				t.Errorf("Ensure: %q, %v, want %v", id, err, c.err)
			}
			now, rerr := storeid.Read(t.Context(), s)
			if rerr != nil || (now != "") != c.made || first != "" && now != first || id != "" && now != id {
				t.Errorf("the store has %q, %v; it had %q, and Ensure said %q", now, rerr, first, id)
			}
			if again := ensure(t, f); now != "" && again != now {
				t.Errorf("Ensure again: %q, then %q", now, again)
			}
		})
	}
	t.Run("there and not there", func(t *testing.T) {
		s := mem.New(mem.Options{})
		ensure(t, s)
		f := storagetest.Faulty(s, storagetest.Times(-1, storagetest.Get, "", absent))
		if id, err := storeid.Ensure(t.Context(), f); id != "" || err == nil {
			t.Errorf("Ensure: %q, %v", id, err)
		}
	})
	t.Run("context", func(t *testing.T) {
		s := mem.New(mem.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if id, err := storeid.Ensure(ctx, s); id != "" || !errors.Is(err, context.Canceled) {
			t.Errorf("Ensure: %q, %v", id, err)
		}
	})
}

// An object that is no id is an error, never an absent one, and stays as it is.
func TestDamage(t *testing.T) {
	const id = "00112233445566778899aabbccddeeff"
	for name, c := range map[string]struct {
		body  string
		newer bool
		ok    bool
	}{
		"as it is":            {`{"format":1,"id":"` + id + `"}` + "\n", false, true},
		"with more fields":    {`{"format":1,"id":"` + id + `","made":"x","n":[1]}` + "\n", false, true},
		"newer":               {`{"format":2,"id":"` + id + `"}` + "\n", true, false},
		"newer, another id":   {`{"format":3,"id":["a",{}]}` + "\n", true, false},
		"newer, no id":        {`{"format":3}` + "\n", true, false},
		"empty":               {"", false, false},
		"cut":                 {`{"format":1,"id":"` + id + `"}`, false, false},
		"cut more":            {`{"format":1,"id":"` + id + "\n", false, false},
		"no format":           {`{"id":"` + id + `"}` + "\n", false, false},
		"format 0":            {`{"format":0,"id":"` + id + `"}` + "\n", false, false},
		"no id":               {`{"format":1}` + "\n", false, false},
		"empty id":            {`{"format":1,"id":""}` + "\n", false, false},
		"upper case":          {`{"format":1,"id":"` + strings.ToUpper(id) + `"}` + "\n", false, false},
		"a digit more":        {`{"format":1,"id":"` + id + `0"}` + "\n", false, false},
		"other characters":    {`{"format":1,"id":"` + strings.Repeat("g", 32) + `"}` + "\n", false, false},
		"zeros":               {strings.Repeat("\x00", 60), false, false},
		"two lines":           {strings.Repeat(`{"format":1,"id":"`+id+`"}`+"\n", 2), false, false},
		"long, and good else": {`{"format":1,"id":"` + id + `"}` + strings.Repeat(" ", 5000) + "\n", false, false},
		"not JSON":            {id + "\n", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := mem.New(mem.Options{})
			storagetest.Put(t, s, storeid.Key, []byte(c.body))
			before, err := s.Stat(t.Context(), storeid.Key)
			if err != nil {
				t.Fatal(err)
			}
			for _, do := range []func(context.Context, storage.BlobStore) (string, error){storeid.Read, storeid.Ensure} {
				got, err := do(t.Context(), s)
				newer := err != nil && strings.Contains(err.Error(), "use a newer one")
				switch {
				case c.ok:
					if got != id || err != nil {
						t.Errorf("%q, %v", got, err)
					}
				case got != "" || newer != c.newer || errors.Is(err, storage.ErrDamaged) == c.newer:
					t.Errorf("%q, %v", got, err)
				}
			}
			if now, err := s.Stat(t.Context(), storeid.Key); err != nil || now.Version != before.Version {
				t.Errorf("Stat = %+v, %v", now, err)
			}
		})
	}
}

// A store with a truncated id file is not a store without an id.
func TestDamagedFile(t *testing.T) {
	root := t.TempDir()
	s, err := dir.Open(root, dir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ensure(t, s)
	path := filepath.Join(root, "_store")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		if err := errors.Join(os.Remove(path), os.WriteFile(path, whole[:n], 0o440)); err != nil {
			t.Fatal(err)
		}
		for _, do := range []func(context.Context, storage.BlobStore) (string, error){storeid.Read, storeid.Ensure} {
			if id, err := do(t.Context(), s); id != "" || !errors.Is(err, storage.ErrDamaged) {
				t.Fatalf("%d bytes of %d: %q, %v", n, len(whole), id, err)
			}
		}
	}
}
