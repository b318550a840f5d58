package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"blobtail/internal/progress"
	"blobtail/internal/units"
)

const (
	// quietFor is how long a command may take without a sign of life.
	quietFor = time.Second
	// progressEvery is how often the line is drawn.
	progressEvery = 250 * time.Millisecond
	// lineColumns is how wide the narrowest terminal is for which the line is made.
	lineColumns = 80
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
	began := time.Now()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		p.mu.Lock()
		_, _ = io.WriteString(w, "\r\x1b[2K"+p.text(quietFor+time.Since(began)))
		p.up = true
		p.mu.Unlock()
		select {
		case <-p.done:
			p.mu.Lock()
			if p.up {
				_, _ = io.WriteString(w, "\r\x1b[2K")
			}
			p.up = false
			p.mu.Unlock()
			return
		case <-tick.C:
		}
	}
}

// text is the line of a command that runs for so long. It fits in the 80 columns of a terminal, since
// only the last one of several rows would be removed.
func (p *Progress) text(runs time.Duration) string {
	done, all := p.of.Things()
	bytes, allBytes := p.of.Bytes()
	switch found := p.of.Found(); {
	case all == 0 && found == 0:
		return "waiting for the first answer"
	case all == 0:
		return units.Count(found, p.noun) + " listed"
	}
	part, size := float64(done)/float64(all), ""
	if allBytes > 0 {
		part = float64(bytes) / float64(allBytes)
		size = fmt.Sprintf("  %.1f of %.1f MiB, %.1f MiB/s", float64(bytes)/(1<<20), float64(allBytes)/(1<<20), float64(bytes)/(1<<20)/runs.Seconds())
	}
	part = min(part, 1)
	left := ""
	if part > 0 {
		left = fmt.Sprintf(", %v left", time.Duration(float64(runs)*(1-part)/part).Round(time.Second))
	}
	of := fmt.Sprintf("%s of %s", Thousands(done), units.Count(all, p.noun))
	text := fmt.Sprintf("%s, %.0f %%%s%s", of, 100*part, left, size)
	if len(text) >= lineColumns {
		text = fmt.Sprintf("%s, %.0f %%%s", of, 100*part, left)
	}
	return text
}

// Thousands writes a number with commas.
func Thousands[N int | int64](n N) string { return units.Thousands(n) }
