package reads

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"blobtail/internal/dev/bench/rig"
	"blobtail/internal/dev/compare/canon"
)

// drawn are the texts for which questions search, as a seed draws them from a corpus.
type drawn struct {
	requests    []string // ids of requests; the first is one of the newest records'
	needles     []string // the generator's; the first is in most records
	tokens      []string // ids in messages
	words       []string // of messages, each in few of them
	expressions []expression
}

// expression has matches that all begin with a literal of whole words.
type expression struct {
	*regexp.Regexp
	literal string
}

// samples is the number of records from which texts are drawn, about.
const samples = 100_000

// seldom is a word of one kind of errors of the generator, and the first that is searched.
const seldom = "mailbox"

// draw draws from each n-th record of a corpus.
func draw(c *rig.Corpus, random *rand.Rand) (*drawn, error) {
	d := &drawn{}
	var ids, requests []string
	words, never := map[string]int{}, map[string]bool{}
	sampled := 0
	err := scan(c.File, max(1, c.Records/samples), func(r *record) error {
		sampled++
		requests = append(requests, string(r.request))
		eachRun(r.msg, func(run []byte) {
			switch {
			case isID(run):
				ids = append(ids, string(run))
			case isWord(run):
				words[string(run)]++
			default:
				eachLetters(run, func(part []byte) { never[string(part)] = true })
			}
		})
		return canon.Members(r.line, func(name, value []byte) error {
			eachLetters(name, func(part []byte) { never[string(part)] = true })
			if string(name) != "msg" {
				eachLetters(value, func(part []byte) { never[string(part)] = true })
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	first := ""
	if len(c.Last) > 0 {
		first = c.Last[len(c.Last)/2]
	}
	d.requests = some(random, first, requests, mostIDs)
	most := 0
	for _, n := range c.Needles {
		if n.Count > most {
			most, first = n.Count, n.Token
		}
	}
	for _, n := range c.Needles {
		if n.Count > 0 && n.Token != first {
			d.needles = append(d.needles, n.Token)
		}
	}
	d.needles = slices.Insert(d.needles, 0, first)
	d.tokens = some(random, "", ids, 2*mostTokens)
	maps.DeleteFunc(words, func(word string, n int) bool {
		return never[word] || n*2000 < sampled || n*200 > sampled // both count words in the same way, in few records
	})
	d.words = some(random, seldom, slices.Sorted(maps.Keys(words)), 40)
	d.expressions, err = expressions(c.Regex, random)
	return d, err
}

// some draws up to most texts, each once, behind a first one.
func some(random *rand.Rand, first string, of []string, most int) (all []string) {
	if first != "" {
		all = append(all, first)
	}
	taken := map[string]bool{first: true}
	for _, i := range random.Perm(len(of)) {
		if text := of[i]; !taken[text] && len(all) < most {
			taken[text] = true
			all = append(all, text)
		}
	}
	return all
}

// expressions are the generator's, and others that search for the same and three other kinds of
// errors.
func expressions(generators string, random *rand.Rand) (all []expression, err error) {
	texts := []string{generators}
	for _, tens := range "0123" {
		for _, ones := range []string{"[0-9]", "[0-4]", "[5-9]", "[13579]", "[02468]", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"} {
			texts = append(texts, fmt.Sprintf("timeout after [0-9.]+ms shard-%c%s", tens, ones))
		}
	}
	for _, user := range strings.Fields("alice bob carol dave erin frank grace heidi ivan judy mallory niaj olivia peggy rupert sybil trent victor walter zoe") {
		texts = append(texts, "mail delivery failed to="+user+"[0-9]+@", "permission denied for user "+user+" on resource /[a-z]+/v[0-9]")
	}
	for i := range 10 {
		texts = append(texts, fmt.Sprintf("connect: connection refused [(]service=node-%d?%d ", i%4, i))
	}
	for _, text := range some(random, generators, texts, len(texts)) {
		e, err := regexp.Compile(text)
		if err != nil {
			return nil, err
		}
		// A phrase of VictoriaLogs ends with a word. The last one of the literal may go on.
		literal, _ := e.LiteralPrefix()
		all = append(all, expression{e, literal[:max(0, strings.LastIndexByte(literal, ' '))]})
	}
	return all, nil
}

// eachRun calls f for each longest run of letters, digits, _ and - in a text.
func eachRun(text []byte, f func(run []byte)) { each(text, joins, f) }

// eachLetters calls f for each longest run of letters.
func eachLetters(text []byte, f func(run []byte)) { each(text, isLetter, f) }

func each(text []byte, in func(byte) bool, f func(run []byte)) {
	begin := -1
	for i := 0; i <= len(text); i++ {
		switch inside := i < len(text) && in(text[i]); {
		case inside && begin < 0:
			begin = i
		case !inside && begin >= 0:
			f(text[begin:i])
			begin = -1
		}
	}
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80 }

func joins(c byte) bool { return isLetter(c) || c >= '0' && c <= '9' || c == '_' || c == '-' }

// isWord tells words of five small letters or more.
func isWord(run []byte) bool {
	return len(run) >= 5 && !bytes.ContainsFunc(run, func(r rune) bool { return r < 'a' || r > 'z' })
}

// isID tells ids: 12 hexadecimal digits, with letters among them.
func isID(run []byte) bool {
	if len(run) != 12 {
		return false
	}
	digits, hex := 0, 0
	for _, c := range run {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'a' && c <= 'f':
			hex++
		}
	}
	return digits+hex == len(run) && digits > 0 && hex > 0
}
