package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"blobtail/query"
)

const (
	// quietFor is how long a command may take without a sign of life.
	quietFor = time.Second
	// progressEvery is how often the line is drawn.
	progressEvery = 250 * time.Millisecond
)

// A progressLine shows on a terminal how far a command is. It is drawn on stderr, from the
// second second on, and goes away when the command ends or prints to the terminal.
type progressLine struct {
	of   *query.Progress
	done chan struct{}
	once sync.Once
	gone sync.WaitGroup
}

// showProgress draws the line until end is called, unless stderr is no terminal.
func (a *app) showProgress(of *query.Progress) *progressLine {
	p := &progressLine{of: of, done: make(chan struct{})}
	if !a.env.errTTY || a.Quiet {
		p.end()
		return p
	}
	p.gone.Go(func() { p.draw(a) })
	return p
}

// end removes the line.
func (p *progressLine) end() {
	p.once.Do(func() { close(p.done) })
	p.gone.Wait()
}

func (p *progressLine) draw(a *app) {
	select {
	case <-p.done:
		return
	case <-time.After(quietFor):
	}
	bar := progressbar.NewOptions64(-1, progressbar.OptionSetWriter(a.env.stderr), progressbar.OptionShowBytes(true), progressbar.OptionUseIECUnits(true),
		progressbar.OptionSetWidth(20), progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish(), progressbar.OptionShowTotalBytes(true))
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		blobs, ofBlobs := p.of.Blobs()
		bytes, ofBytes := p.of.Bytes()
		bar.ChangeMax64(max(ofBytes, 1))
		bar.Describe(fmt.Sprintf("%s of %s blobs", thousands(int(blobs)), thousands(int(ofBlobs))))
		_ = bar.Set64(min(bytes, max(ofBytes, 1)-1)) // at its maximum the bar would end
		select {
		case <-p.done:
			_ = bar.Clear()
			return
		case <-tick.C:
		}
	}
}
