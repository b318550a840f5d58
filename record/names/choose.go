package names

import (
	"bytes"
	"slices"
	"strings"
	"unsafe"

	"blobtail/record"
)

// A Pair is a field that a protocol has for a record by parts: an attribute, a label, a member.
type Pair struct {
	Name  string
	Value []byte
	JSON  bool // the value is JSON, not text

	prefix int8 // length of the part of the name that is none of the field's; -1: the name is not a known one
	looked bool // known is that of the name
	known  Name
}

// MemberPair makes a pair of a member, as [record.Scanner.Members] yields it. It lives as long as that. Without
// the prefix that a protocol has for the names of fields the name is not known.
func MemberPair(key, value []byte, prefix string) Pair {
	if bytes.IndexByte(key, '\\') >= 0 {
		key = record.AppendUnescaped(nil, key)
	}
	p := Pair{Name: unsafe.String(unsafe.SliceData(key), len(key)), Value: value, JSON: true, prefix: -1}
	if strings.HasPrefix(p.Name, prefix) {
		p.prefix = int8(len(prefix))
	}
	return p
}

// Field is the name of the field that the pair is.
func (p *Pair) Field() string { return p.Name[max(p.prefix, 0):] }

// is the known name that the pair has.
func (p *Pair) is() Name {
	if !p.looked && p.prefix >= 0 {
		p.known = Lookup([]byte(p.Name[p.prefix:]))
	}
	p.looked = true
	return p.known
}

// Text is the text of a string or a number, nil for another value.
func (p *Pair) Text() []byte {
	switch {
	case !p.hasText():
		return nil
	case p.JSON && record.IsString(p.Value):
		return record.TextOf(p.Value)
	}
	return p.Value
}

// hasText reports whether there is a text, and it is not empty.
func (p *Pair) hasText() bool {
	return len(p.Value) > 0 && (!p.JSON || p.Value[0] == '"' && len(p.Value) > len(`""`) || record.IsDigit(p.Value[0]) || p.Value[0] == '-')
}

// IsEmpty reports whether the value is an empty text or null.
func (p *Pair) IsEmpty() bool {
	return len(p.Value) == 0 || p.JSON && (string(p.Value) == `""` || string(p.Value) == "null")
}

// A Choice is the part of a head that is found among pairs.
type Choice struct {
	Text  []byte // nil for none; a level has its word
	Spent int    // the number, from 1 on, of the pair that has it and says nothing else: it is no field; 0 for none
	Name  string // of the pair
}

// Best returns the index of the one of n things that has the lowest rank from 1 on, the first of several;
// -1 if none has a rank.
func Best(n int, rank func(i int) int) int {
	at, least := -1, 0
	for i := range n {
		if r := rank(i); r > 0 && (at < 0 || r < least) {
			at, least = i, r
		}
	}
	return at
}

// A Vocabulary has what a protocol's names mean beyond what all agree on.
type Vocabulary uint8

// The vocabularies. Labels of Loki may have a level in the sender's own words, as agents say one. Attributes of OTLP
// may have it under a name that says other things elsewhere.
const (
	Common Vocabulary = iota
	OfLoki
	OfGELF
	OfOTLP
)

// The ranks of levels, as an object is searched for one: words in the order of their names, numbers,
// words of the sender's own, and those of fields that say something else too.
const (
	rankNumber = (iota + 1) * PerKind
	rankOwn
	rankStays
)

// BestLevel finds the level of a record among its pairs.
func BestLevel(pairs []Pair, v Vocabulary) (c Choice) {
	var m Set
	for i := range pairs {
		if n := pairs[i].is(); n != 0 && IsMark(n, pairs[i].Value) {
			m[n/PerKind] |= 1 << (n % PerKind)
		}
	}
	if m[kindLevel/PerKind] == 0 && m[kindParent/PerKind] == 0 && m[kindMsg/PerKind] == 0 {
		return c
	}
	least := 0
	for i := range pairs {
		found, rank := m.rankLevel(&pairs[i])
		stays, own := rank >= rankStays, rank >= rankOwn
		if rank == 0 || least > 0 && rank >= least || stays && v != OfOTLP || own && !stays && v != OfLoki {
			continue
		}
		if c, least = found, rank; !stays {
			c.Spent = i + 1
		}
	}
	return c
}

// ownWords are the words of levels.
var ownWords = func() (words [record.NumLevels][]byte) {
	for l := range record.Other {
		words[l] = []byte(l.String())
	}
	return words
}()

// rankLevel returns the level of a pair, and its rank, 0 for none.
func (m *Set) rankLevel(p *Pair) (c Choice, rank int) {
	n := p.is()
	if n/PerKind != kindLevel/PerKind {
		return p.nestedLevel()
	}
	if !m.Counts(n) || n >= Priority && p.JSON && !record.IsString(p.Value) {
		return c, 0
	}
	text := p.Text()
	l, by := m.Level(n, text)
	if l == record.Other {
		if _, number := Number(text); len(text) == 0 || number || n >= Priority || string(text) == "unknown" { // Loki's word for none
			return c, 0
		}
		return Choice{Text: text, Name: p.Name}, rankOwn + int(n-kindLevel)
	}
	switch rank = int(n-kindLevel) + 1; {
	case n >= Priority:
		rank += rankStays
	case by != nil:
		rank += rankNumber
	}
	return Choice{Text: ownWords[l], Name: p.Name}, rank
}

// nestedLevel is rankLevel for an object of [nestedNames].
func (p *Pair) nestedLevel() (c Choice, rank int) {
	if !p.JSON || p.known == 0 || len(p.Value) == 0 || p.Value[0] != '{' {
		return c, 0
	}
	for i := range nestedNames {
		n := &nestedNames[i]
		if n.part != Level || n.Parent != p.known || len(n.beside) > 0 {
			continue
		}
		_, rest, _ := strings.Cut(n.Path, ".")
		if v, ok := record.Lookup(p.Value, rest); ok {
			if l := record.ParseLevel(record.TextOf(v)); l != record.Other {
				return Choice{Text: ownWords[l], Name: n.Path}, rankStays
			}
		}
	}
	return c, 0
}

// moreServices are names of services that mean other things elsewhere, by vocabulary. They are tried behind the known ones.
var moreServices = [...][]string{
	// discover_service_name: grafana.com/docs/loki/latest/get-started/labels/#default-labels-for-all-users
	OfLoki: {
		"name", "app_kubernetes_io_name", "container", "container_name", "k8s_container_name", "component", "workload",
		"job", "k8s_job_name",
	},
	OfGELF: {"facility", "_facility", "host"},
	OfOTLP: nil,
}

// BestService finds the service of a record among its pairs.
func BestService(pairs []Pair, v Vocabulary) Choice {
	at := Best(len(pairs), func(i int) (rank int) {
		p := &pairs[i]
		switch n := p.is(); {
		case n == nameServiceName2:
			rank = 1
		case n/PerKind == kindService/PerKind && !(v == OfLoki && n == nameContainer):
			rank = int(n-kindService) + 2
		default:
			rank = PerKind * (slices.Index(moreServices[v], p.Name) + 1)
		}
		if rank > 0 && !p.hasText() {
			return 0
		}
		return rank
	})
	if at < 0 {
		return Choice{}
	}
	p := &pairs[at]
	c := Choice{Text: p.Text(), Name: p.Name}
	if p.known == ServiceObject || p.known == ServiceName || p.known == nameServiceName2 {
		c.Spent = at + 1
	}
	return c
}
