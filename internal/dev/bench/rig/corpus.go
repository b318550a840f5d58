package rig

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"blobtail/internal/dev/corpus"
)

// Corpus is a generated corpus in a file, with the generator's own answers.
type Corpus struct {
	*corpus.Answers
	File     string
	Seed     uint64
	Records  int
	From, To time.Time
	// Windows are of two minutes and of an hour.
	Windows [2]Window
}

// Window is a range of times with the numbers of records of the last service by level.
type Window struct {
	From, To time.Time
	Counts   map[string]int
}

// Start is the time of the first record of the reference corpus, and Hours its length.
var Start = time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC)

// Hours is the length of the reference corpus.
const Hours = 6

// Chunk returns the k-th six hours of the reference load. The first is the reference corpus.
func Chunk(k, records int) corpus.Options {
	return corpus.Options{Records: records, Services: 8, Seed: corpus.ReferenceSeed + uint64(k), From: Start.Add(time.Duration(k) * Hours * time.Hour), Span: Hours * time.Hour}
}

// Generate makes a corpus. From and Span must be set.
func Generate(o corpus.Options, file string) (*Corpus, error) {
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	out := bufio.NewWriterSize(f, 1<<20)
	a, err := corpus.Write(out, o)
	if err = errors.Join(err, out.Flush(), f.Close()); err != nil {
		return nil, err
	}
	c := &Corpus{Answers: a, File: file, Seed: o.Seed, Records: o.Records, From: o.From, To: o.From.Add(o.Span)}
	for i, name := range []string{"2m", "1h"} {
		for _, w := range a.Windows {
			if w.Name != name {
				continue
			}
			from, err1 := time.Parse(time.RFC3339Nano, w.From)
			to, err2 := time.Parse(time.RFC3339Nano, w.To)
			c.Windows[i], err = Window{from, to, w.Counts[a.LastService]}, errors.Join(err, err1, err2)
		}
	}
	return c, err
}

// Map returns the text of a file. It is mapped, and not read, until this process ends.
func Map(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	text, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", file, err)
	}
	return text, nil
}
