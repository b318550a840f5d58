package corpus

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/klauspost/compress/zstd"
)

// Bodies cuts NDJSON into requests of n records. They share the memory of the text.
func Bodies(text []byte, n int) (all [][]byte) {
	for begin, end, lines := 0, 0, 0; end < len(text); {
		if i := bytes.IndexByte(text[end:], '\n'); i < 0 {
			end = len(text)
		} else {
			end += i + 1
		}
		if lines++; lines%n == 0 || end == len(text) {
			all = append(all, text[begin:end:end])
			begin = end
		}
	}
	return all
}

// Sent is what a sender sees of requests that were all accepted.
type Sent struct {
	Seconds      float64 // from the first request to the last answer
	Bytes        int64   // of the bodies
	P50MS, P99MS float64 // of a request
}

// Post sends bodies, in their order, over so many connections at once, each when the answer to the
// one before has come. An answer that is not 2xx ends it: the error has the answer.
func Post(ctx context.Context, url string, header http.Header, connections int, bodies [][]byte) (s Sent, err error) {
	transport := &http.Transport{MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections, WriteBufferSize: 64 << 10}
	transport.DisableCompression = true
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	took := make([]time.Duration, len(bodies))
	var next atomic.Int64
	var all sync.WaitGroup
	begun := time.Now()
	for range connections {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(bodies) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				asked := time.Now()
				if err := post(ctx, client, url, header, bodies[i]); err != nil {
					cancel(fmt.Errorf("body %d of %d: %w", i+1, len(bodies), err))
				}
				took[i] = time.Since(asked)
			}
		})
	}
	all.Wait()
	s.Seconds = time.Since(begun).Seconds()
	for _, b := range bodies {
		s.Bytes += int64(len(b))
	}
	if slices.Sort(took); len(took) > 0 {
		s.P50MS, s.P99MS = 1e3*took[len(took)/2].Seconds(), 1e3*took[len(took)*99/100].Seconds()
	}
	return s, context.Cause(ctx)
}

func post(ctx context.Context, client *http.Client, url string, header http.Header, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header = header.Clone()
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %.300s", answer.Status, text)
	}
	return err
}

// Yardstick returns the CPU seconds in which zstd compresses a million lines of a text on one core,
// at its fastest level and in frames of 1 MiB: the median of n runs. Machines differ, so costs are
// told as multiples of it.
func Yardstick(text []byte, n int) (float64, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	if err != nil {
		return 0, err
	}
	defer enc.Close()
	runtime.LockOSThread() // its CPU is counted, and not that of other goroutines
	defer runtime.UnlockOSThread()
	var frame []byte
	runs := make([]float64, n)
	for i := range runs {
		before, err := threadCPU()
		if err != nil {
			return 0, err
		}
		for rest := text; len(rest) > 0; {
			end := min(1<<20, len(rest))
			if at := bytes.LastIndexByte(rest[:end], '\n'); at >= 0 {
				end = at + 1
			}
			frame = enc.EncodeAll(rest[:end], frame[:0])
			rest = rest[end:]
		}
		after, err := threadCPU()
		if err != nil {
			return 0, err
		}
		runs[i] = (after - before).Seconds() * 1e6 / float64(bytes.Count(text, []byte("\n")))
	}
	slices.Sort(runs)
	return runs[n/2], nil
}

// threadCPU is the CPU time of this thread.
func threadCPU() (time.Duration, error) {
	var u syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_THREAD, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), err
}
