package closed_test

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog/closed"
	"blobtail/catalog/horizon"
)

const key = "web/2026/11/20/_closed.000001"

// part is a part with some blobs.
func part(blobs int) *closed.Part {
	p := &closed.Part{Name: key, Made: time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)}
	for n := range blobs {
		m := blobfmt.Meta{Batch: blobfmt.BatchID{byte(n), 1}, First: 1e18, Last: 1e18 + 1, Records: 7, CRC: 5,
			SHA256: closed.HashOf([]byte{byte(n)})}
		b := closed.BlobOf(fmt.Sprintf("web/2026/11/20/%02d00/000001.log", n%24), 100, &m)
		if n >= 24 {
			b.Key = strings.Replace(b.Key, "000001", "000002", 1)
			p.Replaced = append(p.Replaced, b)
		} else {
			p.Blobs = append(p.Blobs, b)
		}
	}
	return p
}

// The object of a part is read back, and its metadata have what its blobs sum up to. They are less than
// a KiB however many blobs there are.
func TestPart(t *testing.T) {
	for _, n := range []int{0, 1, 24, 48} {
		p := part(n)
		p.Lost = []closed.Loss{{Key: "web/2026/11/20/0300/000009.log"}}
		body, meta, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for k, v := range meta {
			size += len(k) + len(v)
		}
		if size > 1<<10 {
			t.Errorf("%d bytes of metadata", size)
		}
		got, err := closed.Parse(key, body)
		if err != nil {
			t.Fatal(err)
		}
		p.Sum = closed.HashOf(body)
		if !reflect.DeepEqual(got, p) {
			t.Errorf("%+v, want %+v", got, p)
		}
		digests, ok := closed.ParseDigests(meta)
		want := p.Digests()
		if want.SHA256 = p.Sum; !ok || digests != want {
			t.Errorf("%+v, want %+v", digests, want)
		}
		if n > 24 && (digests.With == digests.Without || !digests.Agree(&digests.Without, 0, 24) || !digests.Agree(&digests.With, 3, 5)) {
			t.Errorf("%+v", digests)
		}
	}
}

// What is no part or no root is an error, and never a panic: somebody may have put it there.
func TestUnread(t *testing.T) {
	whole, _, err := part(2).Encode()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(whole), "\n")
	for name, body := range map[string]string{
		"nothing":         "",
		"a blank line":    "\n",
		"no object":       "null\n",
		"the head alone":  lines[0],
		"one blob twice":  lines[0] + lines[1] + lines[1],
		"another order":   lines[0] + lines[2] + lines[1],
		"a short key":     lines[0] + lines[1] + strings.Replace(lines[2], "web/2026/11/20/0100/000001.log", "x", 1),
		"another day":     lines[0] + lines[1] + strings.Replace(lines[2], "11/20/01", "11/21/01", 1),
		"another service": lines[0] + lines[1] + strings.Replace(lines[2], "web/", "db/", 1),
		"a blob of null":  lines[0] + lines[1] + "null\n",
		"another form":    strings.Replace(string(whole), `"form":1`, `"form":2`, 1),
		"another name":    strings.Replace(string(whole), "_closed.000001", "_closed.000002", 1),
		"one blob more":   string(whole) + strings.Replace(lines[2], "/0100/", "/0200/", 1),
	} {
		if p, err := closed.Parse(key, []byte(body)); !errors.Is(err, closed.ErrUnread) || p != nil {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	r := closed.Root{Name: closed.RootName(20000, 1)}
	body, err := r.Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string][]byte{
		"nothing": nil, "a blank line": []byte("\n"), "no object": []byte("null\n"),
		"no end of the line": body[: len(body)-1 : len(body)-1],
	} {
		got, err := closed.ParseRoot(r.Name, body)
		if !errors.Is(err, closed.ErrUnread) || got.Name != r.Name || got.Sum != closed.HashOf(body) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// A signature is one of all that is before it, by one key.
func TestSigned(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	other, _, _ := ed25519.GenerateKey(nil)
	r := closed.Root{Name: closed.RootName(20000, 1), Days: closed.Parts{}}
	r.Days.Set(horizon.Day(19998), "web", closed.HashOf([]byte("part")))
	signed, _ := r.Encode(private)
	bare, _ := r.Encode(nil)
	for name, c := range map[string]struct {
		body []byte
		key  ed25519.PublicKey
		good bool
	}{
		"signed":           {signed, public, true},
		"by another key":   {signed, other, false},
		"not signed":       {bare, public, false},
		"changed":          {[]byte(strings.Replace(string(signed), `"count":0`, `"count":1`, 1)), public, false},
		"a line behind":    {append([]byte(string(signed)), "AAAA\n"...), public, false},
		"half a signature": {signed[:len(signed)-20], public, false},
	} {
		got, err := closed.ParseRoot(r.Name, c.body)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := got.Verify(c.key); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, n := range []int{0, 3, 30} {
		body, _, _ := part(n).Encode()
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if p, err := closed.Parse(key, body); err == nil {
			p.Digests()
			if again, _, err := p.Encode(); err != nil {
				t.Fatalf("%q: %v", again, err)
			}
		}
		body = body[:len(body):len(body)]
		name := closed.RootName(20000, 1)
		if r, err := closed.ParseRoot(name, body); err == nil {
			_ = r.Verify(make(ed25519.PublicKey, ed25519.PublicKeySize))
			r.Meta()
		}
	})
}
