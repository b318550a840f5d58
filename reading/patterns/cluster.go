package patterns

import (
	"bytes"
	"cmp"
	"slices"
)

// A shape is a masked message among others, or a template of some.
type shape struct {
	words [][]byte
	of    []int // the masked messages that it has
}

const (
	// different is how many different words of messages that are otherwise equal make a value of
	// their place. Fewer are words of templates of their own.
	different = 5
	// mostWords bounds the words that are compared. Messages that it leaves no time for have
	// templates of their own.
	mostWords = 3_000_000
)

// cluster makes templates of masked messages. It is a function of the set: their order does not
// matter. Each message is in one template.
func cluster(masked []string) []shape {
	order := make([]int, len(masked))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(masked[a], masked[b]) })
	groups := map[string][]shape{}
	var names []string
	for _, i := range order {
		s := shape{words: bytes.Split([]byte(masked[i]), []byte{between}), of: []int{i}}
		key := skeleton(s.words)
		if groups[key] == nil {
			names = append(names, key)
		}
		groups[key] = append(groups[key], s)
	}
	d := divider{left: mostWords}
	for _, name := range names {
		d.divide(groups[name])
	}
	return d.all
}

// A divider makes templates of messages.
type divider struct {
	all  []shape
	left int // words that may be compared
}

// skeleton is the number of words, with the names of those that are NAME=VALUE. Messages with other
// skeletons are never in one template.
func skeleton(words [][]byte) string {
	key := []byte{byte(len(words))}
	for _, w := range words {
		key = append(key, w[:label(w)]...)
		key = append(key, between)
	}
	return string(key)
}

// label is the length of the name of a word that is NAME=VALUE, with the sign; 0: it is none. In
// ann(uid=0) the text before the parenthesis may be a value, so that is none.
func label(w []byte) int {
	at := bytes.IndexByte(w, '=')
	if at < 1 || bytes.IndexByte(w[:at], wild) >= 0 || bytes.IndexByte(w[:at], '"') >= 0 || bytes.LastIndexByte(w[:at], '(') > 0 {
		return 0
	}
	return at + 1
}

// A column is the words of some messages at one place.
type column struct {
	at       int
	distinct int
	pure     bool // one of the words is a wildcard alone
}

// divide adds the templates of messages with one skeleton.
func (d *divider) divide(group []shape) {
	if d.left -= len(group) * len(group[0].words); len(group) == 1 || d.left < 0 {
		d.all = append(d.all, group...)
		return
	}
	var varying []column
	literal := 0 // words that are equal in all, and have letters
	for at := range group[0].words {
		c := columnOf(group, at)
		if c.distinct > 1 {
			varying = append(varying, c)
		} else if hasLetter(group[0].words[at]) {
			literal++
		}
	}
	few, least := -1, -1
	for n := range varying {
		c := &varying[n]
		if !c.pure && c.distinct < different && (few < 0 || c.distinct < varying[few].distinct) {
			few = n
		}
		if least < 0 || c.distinct < varying[least].distinct {
			least = n
		}
	}
	split := few
	if few < 0 && (literal == 0 || len(varying) > literal) {
		split = least
	}
	if split < 0 {
		d.all = append(d.all, join(group, varying))
		return
	}
	at := varying[split].at
	parts := map[string][]shape{}
	var values []string
	for _, s := range group {
		w := string(s.words[at])
		if parts[w] == nil {
			values = append(values, w)
		}
		parts[w] = append(parts[w], s)
	}
	slices.Sort(values)
	for _, value := range values {
		d.divide(parts[value])
	}
}

// columnOf looks at the words at a place.
func columnOf(group []shape, at int) column {
	c := column{at: at}
	seen := map[string]bool{}
	for i := range group {
		w := group[i].words[at]
		if seen[string(w)] {
			continue
		}
		seen[string(w)] = true
		c.pure = c.pure || isPure(w)
	}
	c.distinct = len(seen)
	return c
}

// isPure reports whether a word is a value without a letter beside it.
func isPure(w []byte) bool {
	w = w[label(w):]
	return bytes.IndexByte(w, wild) >= 0 && !hasLetter(w)
}

func hasLetter(w []byte) bool {
	return slices.ContainsFunc(w, func(c byte) bool { return class(c) == letter })
}

// join makes one template of messages that vary at some places.
func join(group []shape, varying []column) shape {
	t := shape{words: slices.Clone(group[0].words)}
	for _, c := range varying {
		t.words[c.at] = common(group, c.at)
	}
	for i := range group {
		t.of = append(t.of, group[i].of...)
	}
	return t
}

// common is the word of a template at a place where messages vary: a wildcard, with the marks
// before and behind it that all of them have.
func common(group []shape, at int) []byte {
	first := group[0].words[at]
	head, tail, blanks := len(first), len(first), false
	for i := range group {
		w := group[i].words[at]
		n := 0
		for n < head && n < len(w) && w[n] == first[n] {
			n++
		}
		head = n
		for n = 0; n < tail && n < len(w) && w[len(w)-1-n] == first[len(first)-1-n]; {
			n++
		}
		tail = n
		blanks = blanks || bytes.IndexByte(w, ' ') >= 0 || bytes.IndexByte(w, phrase) >= 0
	}
	for head > 0 && !mark(first[head-1]) {
		head--
	}
	for tail > 0 && !mark(first[len(first)-tail]) {
		tail--
	}
	shortest := len(first)
	for i := range group {
		shortest = min(shortest, len(group[i].words[at]))
	}
	if head+tail >= shortest {
		tail = max(0, shortest-head-1)
		for tail > 0 && !mark(first[len(first)-tail]) {
			tail--
		}
	}
	star := byte(wild)
	if blanks {
		star = phrase
	}
	word := append(append(slices.Clone(first[:head]), star), first[len(first)-tail:]...)
	return word
}

// mark reports whether a byte divides a word from the value beside it.
func mark(c byte) bool { return class(c) == other && c != '-' && c != '_' && c != '.' }
