package azurelogs

import "fmt"

// mostNamed is how many malformed lines a [Problems] keeps. A damaged blob has as many as it
// has lines, and people are shown the first few.
const mostNamed = 10_000

// Problems gathers the parts of logs that could not be read. Its memory is bounded. The zero
// value is ready to use; it is not safe for use by several goroutines at once.
type Problems struct {
	list    []error
	lines   int // in list
	unnamed int
}

// Add adds the malformed lines of a chunk.
func (p *Problems) Add(malformed []*LineError) {
	for _, bad := range malformed {
		if p.lines == mostNamed {
			p.unnamed++
			continue
		}
		p.lines++
		p.list = append(p.list, bad)
	}
}

// Fail adds the failure of a read.
func (p *Problems) Fail(err error) { p.list = append(p.list, err) }

// Len is the number of problems so far.
func (p *Problems) Len() int { return len(p.list) + p.unnamed }

// All returns the problems: malformed lines, failures, and at the end how many lines are
// not named.
func (p *Problems) All() []error {
	all := p.list[:len(p.list):len(p.list)]
	if p.unnamed > 0 {
		all = append(all, &UnnamedError{p.unnamed})
	}
	return all
}

// UnnamedError stands for malformed lines that a [Problems] did not keep.
type UnnamedError struct{ Lines int }

func (e *UnnamedError) Error() string {
	return fmt.Sprintf("%d more malformed lines; logquery verify names each", e.Lines)
}

// Parts is the number of lines.
func (e *UnnamedError) Parts() int { return e.Lines }
