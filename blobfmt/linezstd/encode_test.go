package linezstd_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"blobtail/blobfmt/linezstd"
	"blobtail/internal/dev/testkit"

	"github.com/klauspost/compress/zstd"
)

func newDecoder(tb testing.TB) *zstd.Decoder {
	tb.Helper()
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(d.Close)
	return d
}

// newFastest is the encoder that this package has to beat.
func newFastest(tb testing.TB) *zstd.Encoder {
	tb.Helper()
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(1<<20), zstd.WithSingleSegment(true), zstd.WithLowerEncoderMem(true))
	if err != nil {
		tb.Fatal(err)
	}
	return z
}

// cli returns the program of the C library.
func cli(tb testing.TB) string {
	tb.Helper()
	bin, err := exec.LookPath("zstd")
	if err != nil {
		if os.Getenv("CI") != "" {
			tb.Fatal("zstd is not installed, and CI must have it")
		}
		tb.Skip("zstd is not installed")
	}
	return bin
}

// decodeInC returns the content of frames by the C library.
func decodeInC(tb testing.TB, bin string, frames []byte) []byte {
	tb.Helper()
	cmd := exec.Command(bin, "-dcq")
	cmd.Stdin = bytes.NewReader(frames)
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("zstd: %v: %s", err, problems.String())
	}
	return out
}

// An encoder is one of the two.
type encoder interface {
	Append(dst, src []byte) []byte
	Fresh() []uint64
}

func both() map[string]encoder {
	return map[string]encoder{"fast": linezstd.NewEncoder(), "slow": linezstd.NewSlow()}
}

// checkAll encodes the inputs with each encoder, and decodes every frame in Go and all of
// them in C.
func checkAll(t *testing.T, inputs map[string][]byte) {
	t.Helper()
	d := newDecoder(t)
	var frames, all []byte
	for mode, e := range both() {
		for name, in := range inputs {
			at := len(frames)
			frames = e.Append(frames, in)
			out, err := d.DecodeAll(frames[at:], nil)
			if err != nil || !bytes.Equal(out, in) {
				t.Errorf("%s, %s: %d bytes became %d, %v", mode, name, len(in), len(out), err)
			}
			all = append(all, in...)
		}
	}
	if out := decodeInC(t, cli(t), frames); !bytes.Equal(out, all) {
		t.Errorf("the C library read %d bytes of %d", len(out), len(all))
	}
}

// lines makes about n bytes of canonical lines, as the services of one program write them.
func lines(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	messages := []string{"request completed in %d ms", "cache lookup key=session:%x hit=true", "payment %x captured",
		"kafka poll topic=events partition=%d", "connection reset by peer 10.0.3.%d", "user %d logged in"}
	levels := []string{"info", "debug", "warn", "critical", ""}
	paths := []string{"/api/v1/orders", "/api/v2/users", "/healthz", "/internal/static/app.js"}
	var b []byte
	for i := 0; len(b) < n; i++ {
		statement := r.IntN(len(messages))
		b = fmt.Appendf(b, `{"ts":"2026-11-10T12:%02d:%02d.%09dZ","level":"%s","service":"shop","msg":"`,
			i/6000%60, i/100%60, i%100*10000000+r.IntN(10000000), levels[statement%len(levels)])
		b = fmt.Appendf(b, messages[statement], r.IntN(1<<20))
		b = fmt.Appendf(b, `","host":"shop-%d","request_id":"%016x%016x","status":%d,"path":"%s/%d"}`+"\n",
			r.IntN(12), r.Uint64(), r.Uint64(), 200+r.IntN(5), paths[r.IntN(len(paths))], r.IntN(50000))
	}
	return b
}

func TestAppend(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	noise := make([]byte, 300<<10)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	long := lines(1000, 3)
	long = bytes.ReplaceAll(long, []byte(`"msg":"`), append([]byte(`"msg":"`), bytes.Repeat([]byte("a long, long, long message"), 9000)...))
	inputs := map[string][]byte{
		"nothing": nil, "newline": []byte("\n"), "newlines": bytes.Repeat([]byte("\n"), 300000),
		"zeros": make([]byte, 8<<20), "noise": noise, "noise in the middle": append(append(lines(200<<10, 1), noise...), lines(300<<10, 2)...),
		"long lines": long, "one line": bytes.ReplaceAll(lines(1<<20, 4), []byte("\n"), []byte(" ")),
		"quotes": bytes.Repeat([]byte(`"`), 1000), "twice": bytes.Repeat(lines(500<<10, 5), 2),
		"few letters": lettersOf(r, "ab\n", 200<<10), "digits": lettersOf(r, "0123456789 \n", 200<<10),
		"no level": bytes.ReplaceAll(lines(1<<20, 6), []byte(`"level":`), nil),
	}
	// The content size has three widths, and so have sections and counts in a block.
	for _, n := range []int{1, 2, 5, 8, 9, 16, 17, 31, 32, 62, 70, 255, 256, 257, 1023, 1024, 4096, 65535, 65791, 65792, 131071, 131072, 131073, 1 << 20} {
		inputs[fmt.Sprint("lines of ", n)] = lines(n, uint64(n))[:n]
		inputs[fmt.Sprint("noise of ", n)] = noise[:min(n, len(noise))]
		inputs[fmt.Sprint("zeros of ", n)] = make([]byte, n)
	}
	checkAll(t, inputs)
}

func lettersOf(r *rand.Rand, letters string, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[r.IntN(len(letters))]
	}
	return b
}

// A frame depends on its lines only: the same batch has the same blob after a restart.
func TestFramesDoNotDependOnEarlierOnes(t *testing.T) {
	in := lines(700<<10, 1)
	for mode, e := range both() {
		first := e.Append(nil, in)
		for seed := range uint64(3) {
			e.Append(nil, lines(900<<10, seed))
			if !bytes.Equal(e.Append(nil, in), first) || !bytes.Equal(both()[mode].Append(nil, in), first) {
				t.Errorf("%s: the same lines became another frame", mode)
			}
		}
	}
}

func TestFramesAreSmallerThanOfTheFastestLevel(t *testing.T) {
	e, fastest := linezstd.NewEncoder(), newFastest(t)
	for _, n := range []int{linezstd.MinSize, 1 << 20} {
		in := lines(n, 1)[:n]
		if own, other := len(e.Append(nil, in)), len(fastest.EncodeAll(in, nil)); own > other {
			t.Errorf("%d bytes of lines became %d, and %d at the fastest level", len(in), own, other)
		}
	}
}

func TestAppendKeepsItsMemory(t *testing.T) {
	e := linezstd.NewEncoder()
	in := lines(1<<20, 1)
	out := e.Append(nil, in)
	if n := testing.AllocsPerRun(5, func() { out = e.Append(out[:0], in) }); n > 0 {
		t.Errorf("a frame allocates %v times", n)
	}
}

// The inputs with which the zstd package tests its own encoder and decoder.
func TestVectorsOfTheZstdPackage(t *testing.T) {
	testkit.FullOnly(t, "minutes with the race detector, for one goroutine")
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/klauspost/compress").Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		t.Skipf("the module's directory is unknown: %v", err)
	}
	for _, sub := range []string{"testdata", "zstd/testdata"} {
		err := fs.WalkDir(os.DirFS(filepath.Join(dir, sub)), ".", func(path string, f fs.DirEntry, err error) error {
			if err == nil && f.Type().IsRegular() {
				t.Run(filepath.Base(path), func(t *testing.T) { checkAll(t, vectors(t, filepath.Join(dir, sub, path))) })
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// vectors returns a file, or the files in an archive. Files of fuzz targets are Go source.
func vectors(t *testing.T, path string) map[string][]byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return map[string][]byte{path: raw[:min(len(raw), 8<<20)]}
	}
	inputs := map[string][]byte{}
	for _, f := range archive.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(io.LimitReader(r, 8<<20))
		if err != nil {
			t.Fatal(err)
		}
		if _, arg, ok := strings.Cut(string(b), "go test fuzz v1\n[]byte("); ok {
			if s, err := strconv.Unquote(strings.TrimSuffix(strings.TrimSpace(arg), ")")); err == nil {
				b = []byte(s)
			}
		}
		inputs[f.Name] = b
	}
	return inputs
}

// Any bytes come back from both modes, in Go and in C: as they are, and as a text of several blocks
// that consists of their lines.
func FuzzAppend(f *testing.F) {
	f.Add(lines(2000, 1), uint64(1))
	f.Add([]byte("one word another word\n\"quoted\"\n"), uint64(2))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '\n', 1, 2, 3}, uint64(3))
	fast, slow, d, bin := linezstd.NewEncoder(), linezstd.NewSlow(), newDecoder(f), cli(f)
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		parts := bytes.SplitAfter(data, []byte("\n"))
		var text []byte
		for n := r.IntN(300 << 10); len(text) < n; {
			part := parts[r.IntN(len(parts))]
			text = append(append(text, part[:r.IntN(len(part)+1)]...), part...)
			text = strconv.AppendUint(text, r.Uint64()>>r.IntN(64), 10)
		}
		frames := fast.Append(fast.Append(nil, data), text)
		frames = slow.Append(slow.Append(frames, data), text)
		want := append(bytes.Clone(data), text...)
		want = append(want, want...)
		if out, err := d.DecodeAll(frames, nil); err != nil || !bytes.Equal(out, want) {
			t.Fatalf("%d bytes became %d, %v", len(want), len(out), err)
		}
		if out := decodeInC(t, bin, frames); !bytes.Equal(out, want) {
			t.Fatalf("the C library read %d bytes of %d", len(out), len(want))
		}
	})
}
