package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"blobtail/internal/progress"
	"blobtail/internal/units"
)

const (
	// quietFor is how long a command may take without a sign of life.
	quietFor = time.Second
	// progressEvery is how often the line is drawn.
	progressEvery = 250 * time.Millisecond
)

// A Progress is a line on a terminal that shows how far a command is. It is drawn from the
// second second on, and goes away when the command ends or prints to the terminal.
type Progress struct {
	of   *progress.Counter
	noun string
	done chan struct{}
	once sync.Once
	mu   sync.Mutex // of the terminal
	up   bool       // the line is on the terminal
	gone sync.WaitGroup
}

// ShowProgress draws the line on a terminal until End is called; w is nil for no line. noun
// names one of the things that the counter counts, as "blob".
func ShowProgress(w io.Writer, of *progress.Counter, noun string) *Progress {
	p := &Progress{of: of, noun: noun, done: make(chan struct{})}
	if w != nil {
		p.gone.Go(func() { p.draw(w) })
	}
	return p
}

// End removes the line. It may be called again.
func (p *Progress) End() {
	p.once.Do(func() { close(p.done) })
	p.gone.Wait()
}

// Over returns a writer for lines that go to the terminal of the progress. They take its
// place, and it is drawn again below.
func (p *Progress) Over(w io.Writer) io.Writer { return &over{p, w} }

type over struct {
	line *Progress
	w    io.Writer
}

// Write implements [io.Writer].
func (o *over) Write(b []byte) (int, error) {
	o.line.mu.Lock()
	defer o.line.mu.Unlock()
	if o.line.up {
		if _, err := io.WriteString(o.w, "\r\x1b[2K"); err != nil {
			return 0, err
		}
		o.line.up = false
	}
	return o.w.Write(b)
}

// Interrupted tells how far the command came, if it began.
func (p *Progress) Interrupted(c *Console) {
	if done, all := p.of.Things(); all > 0 {
		c.Complain("interrupted: %s of %s", Thousands(done), units.Count(all, p.noun))
	}
}

func (p *Progress) draw(w io.Writer) {
	select {
	case <-p.done:
		return
	case <-time.After(quietFor):
	}
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	var bar *progressbar.ProgressBar
	sized := false // the bar goes by bytes
	for {
		done, all := p.of.Things()
		bytes, allBytes := p.of.Bytes()
		if by := allBytes > 0; bar == nil || by != sized {
			bar, sized = newBar(w, by), by
		}
		if !sized {
			bytes, allBytes = done, all
		}
		text := fmt.Sprintf("%s of %s", Thousands(done), units.Count(all, p.noun))
		switch found := p.of.Found(); {
		case all == 0 && found == 0:
			text = "waiting for the first answer"
		case all == 0:
			text = units.Count(found, "blob") + " listed"
		}
		p.mu.Lock()
		bar.ChangeMax64(max(allBytes, 1))
		bar.Describe(text)
		_ = bar.Set64(min(bytes, max(allBytes, 1)-1)) // at its maximum the bar would end
		p.up = true
		p.mu.Unlock()
		select {
		case <-p.done:
			p.mu.Lock()
			if p.up {
				_ = bar.Clear()
			}
			p.up = false
			p.mu.Unlock()
			return
		case <-tick.C:
		}
	}
}

func newBar(w io.Writer, bytes bool) *progressbar.ProgressBar {
	return progressbar.NewOptions64(-1, progressbar.OptionSetWriter(w), progressbar.OptionShowBytes(bytes), progressbar.OptionUseIECUnits(true),
		progressbar.OptionSetWidth(20), progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish(), progressbar.OptionShowTotalBytes(bytes))
}

// Thousands writes a number with commas.
func Thousands[N int | int64](n N) string { return units.Thousands(n) }
