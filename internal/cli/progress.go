package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
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
	// mostColumns is how wide the line may be on any terminal.
	mostColumns = 80
)

// A Progress is a line on a terminal that shows how far a command is. It is drawn from the
// second second on, and goes away when the command ends or prints to the terminal.
type Progress struct {
	of   *progress.Counter
	noun string
	done chan struct{}
	once sync.Once
	mu   sync.Mutex // of the terminal
	up   int        // how many characters of the line are on the terminal
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
	if o.line.up > 0 {
		if _, err := io.WriteString(o.w, o.line.removal()); err != nil {
			return 0, err
		}
		o.line.up = 0
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
		text := fitting(p.forms(quietFor+time.Since(began)), Columns(w))
		_, _ = io.WriteString(w, p.removal()+text)
		p.up = len(text)
		p.mu.Unlock()
		select {
		case <-p.done:
			p.mu.Lock()
			if p.up > 0 {
				_, _ = io.WriteString(w, p.removal())
			}
			p.up = 0
			p.mu.Unlock()
			return
		case <-tick.C:
		}
	}
}

// removal removes the line from the terminal. One that is dumb knows no sequences for that.
func (p *Progress) removal() string {
	if os.Getenv("TERM") == "dumb" {
		return "\r" + strings.Repeat(" ", p.up) + "\r"
	}
	return "\r\x1b[2K"
}

// fitting is the first of the forms of a line that fits in the columns of a terminal, 0 if these are
// unknown. Of a line in several rows only the last row could be removed.
func fitting(forms []string, columns int) string {
	most := mostColumns - 1
	if columns > 0 {
		most = min(most, columns-1)
	}
	for _, form := range forms {
		if len(form) <= most {
			return form
		}
	}
	return forms[len(forms)-1][:most]
}

// forms are the line of a command that runs for so long, the longest form first.
func (p *Progress) forms(runs time.Duration) []string {
	done, all := p.of.Things()
	bytes, allBytes := p.of.Bytes()
	switch found := p.of.Found(); {
	case all == 0 && found == 0:
		return []string{"waiting for the first answer"}
	case all == 0:
		return []string{units.Count(found, p.noun) + " listed"}
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
	of := fmt.Sprintf("%s of %s, %.0f %%", Thousands(done), units.Count(all, p.noun), 100*part)
	return []string{of + left + size, of + left, of}
}

// Thousands writes a number with commas.
func Thousands[N int | int64](n N) string { return units.Thousands(n) }
