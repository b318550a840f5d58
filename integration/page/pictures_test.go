package page_test

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mostPicture is the size of the largest picture of docs/.
const mostPicture = 150_000

// pictures are the names of those that stories make.
func pictures() []string { return []string{"page-record", "page-records", "page-patterns"} }

// The pictures of the page are there, small enough, and in use. With -update they are made anew.
func TestPictures(t *testing.T) {
	if *update {
		makePictures(t)
	}
	var docs bytes.Buffer
	pages, err := filepath.Glob(filepath.Join(shared.root, "docs", "*", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, filepath.Join(shared.root, "README.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		docs.Write(text)
	}
	there, err := filepath.Glob(filepath.Join(shared.root, "docs", "read", "page-*.png"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range there {
		if name := strings.TrimSuffix(filepath.Base(path), ".png"); !slices.Contains(pictures(), name) {
			t.Errorf("no story makes %s", path)
		}
	}
	for _, name := range pictures() {
		info, err := os.Stat(filepath.Join(shared.root, "docs", "read", name+".png"))
		switch {
		case err != nil:
			t.Errorf("%v: make picture", err)
		case info.Size() > mostPicture:
			t.Errorf("%s has %d bytes, more than %d", info.Name(), info.Size(), mostPicture)
		case !bytes.Contains(docs.Bytes(), []byte(name+".png")):
			t.Errorf("no page of docs shows %s.png", name)
		}
	}
}

// makePictures plays the stories that make pictures, and makes these smaller.
func makePictures(t *testing.T) {
	t.Run("make", func(t *testing.T) { play(t, func(s story) bool { return s.Picture }) })
	for _, name := range pictures() {
		if err := shrink(filepath.Join(shared.root, "docs", "read", name+".png")); err != nil {
			t.Error(err)
		}
	}
}

// shrink gives a picture at most 256 colours.
func shrink(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	from, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return err
	}
	// Colours that look alike are one: that of them with the most points.
	type kind struct {
		n    int
		of   map[color.RGBA]int
		best color.RGBA
	}
	kinds := make(map[color.RGBA]*kind)
	for y := range from.Bounds().Dy() {
		for x := range from.Bounds().Dx() {
			c := color.RGBAModel.Convert(from.At(x, y)).(color.RGBA)
			key := color.RGBA{c.R >> 4, c.G >> 4, c.B >> 4, 0}
			k := kinds[key]
			if k == nil {
				k = &kind{of: make(map[color.RGBA]int)}
				kinds[key] = k
			}
			k.n++
			k.of[c]++
			if k.of[c] > k.of[k.best] {
				k.best = c
			}
		}
	}
	most := slices.SortedFunc(maps.Values(kinds), func(a, b *kind) int {
		return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(rgb(a.best), rgb(b.best)))
	})
	palette := make(color.Palette, 0, 256)
	for _, k := range most[:min(256, len(most))] {
		palette = append(palette, k.best)
	}
	to := image.NewPaletted(from.Bounds(), palette)
	draw.Draw(to, to.Bounds(), from, image.Point{}, draw.Src)
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o644)
}

func rgb(c color.RGBA) int { return int(c.R)<<16 | int(c.G)<<8 | int(c.B) }
