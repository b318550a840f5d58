package grep

import "blobtail/blobfmt/filter"

// Needs are the words and ids of a record that the pattern matches, by which blocks are ruled
// out. A record has those of one of them; nil: it may have any.
func (p *Pattern) Needs() []filter.Needs {
	var all []filter.Needs
	for i := range p.literals {
		n := filter.NeedsOf(string(p.literals[i].spellings[0].text), p.word, p.word) // as typed
		if len(n.Words)+len(n.Keys) == 0 {
			return nil
		}
		all = append(all, n)
	}
	return all
}
