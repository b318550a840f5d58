package record

import (
	"bytes"
	"slices"
	"strings"
	"unsafe"
)

// A Pair is a field that a protocol has for a record by parts: an attribute, a label, a member.
type Pair struct {
	Name  string
	Value []byte
	JSON  bool // the value is JSON, not text

	prefix int8 // length of the part of the name that is none of the field's; -1: the name is not a known one
	looked bool // known is that of the name
	known  name
}

// MemberPair makes a pair of a member, as [Parser.Members] yields it. It lives as long as that. Without
// the prefix that a protocol has for the names of fields the name is not known.
func MemberPair(key, value []byte, prefix string) Pair {
	if bytes.IndexByte(key, '\\') >= 0 {
		key = AppendUnescaped(nil, key)
	}
	p := Pair{Name: unsafe.String(unsafe.SliceData(key), len(key)), Value: value, JSON: true, prefix: -1}
	if strings.HasPrefix(p.Name, prefix) {
		p.prefix = int8(len(prefix))
	}
	return p
}

// is the known name that the pair has.
func (p *Pair) is() name {
	if !p.looked && p.prefix >= 0 {
		p.known = lookupName([]byte(p.Name[p.prefix:]))
	}
	p.looked = true
	return p.known
}

// Text is the text of a string or a number, nil for another value.
func (p *Pair) Text() []byte {
	switch {
	case !p.JSON:
		return p.Value
	case IsString(p.Value):
		return TextOf(p.Value)
	case len(p.Value) > 0 && (isDigit(p.Value[0]) || p.Value[0] == '-'):
		return p.Value
	}
	return nil
}

// Add adds a pair as a field. An empty one with a name of the head is none.
func (b *Parts) Add(p *Pair) {
	switch name := p.Name[max(p.prefix, 0):]; {
	case p.isEmpty() && isHead([]byte(name)):
	case p.JSON:
		b.JSON(name, p.Value)
	default:
		b.Text(name, p.Value)
	}
}

// AddAll adds pairs.
func (b *Parts) AddAll(pairs []Pair) {
	for i := range pairs {
		b.Add(&pairs[i])
	}
}

func (p *Pair) isEmpty() bool {
	return len(p.Value) == 0 || p.JSON && (string(p.Value) == `""` || string(p.Value) == "null")
}

// A Choice is the part of a head that is found among pairs.
type Choice struct {
	Text  []byte // nil for none; a level has its word
	Spent int    // the number, from 1 on, of the pair that has it and says nothing else: it is no field; 0 for none
	name  string
}

// SetLevel gives a head a level, if there is one.
func (h *Head) SetLevel(c Choice) {
	if c.Text != nil {
		h.Level, h.Assumed = c.Text, false
		h.Why.Level().Note(FromField, c.name)
	}
}

// SetService gives a head a service, if there is one.
func (h *Head) SetService(c Choice) {
	if c.Text != nil {
		h.Service = c.Text
		h.Why.Service().Note(FromField, c.name)
	}
}

// Take gives a head the level and the service that it lacks, and returns the pairs that are fields.
func (h *Head) Take(pairs []Pair, v Vocabulary) (fields []Pair) {
	var level, service Choice
	if len(h.Level) == 0 {
		level = BestLevel(pairs, v)
		h.SetLevel(level)
	}
	if len(h.Service) == 0 {
		service = BestService(pairs, v)
		h.SetService(service)
	}
	fields = pairs[:0]
	for i := range pairs {
		if i+1 != level.Spent && i+1 != service.Spent {
			fields = append(fields, pairs[i])
		}
	}
	return fields
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

// The ranks of levels, as [Parser.AppendLine] looks for one: words in the order of their names, numbers,
// words of the sender's own, and those of fields that say something else too.
const (
	rankNumber = (iota + 1) * perKind
	rankOwn
	rankStays
)

// BestLevel finds the level of a record among its pairs.
func BestLevel(pairs []Pair, v Vocabulary) (c Choice) {
	var m present
	for i := range pairs {
		if n := pairs[i].is(); n != 0 && isMark(n, pairs[i].Value) {
			m[n/perKind] |= 1 << (n % perKind)
		}
	}
	if m[kindLevel/perKind] == 0 && m[kindParent/perKind] == 0 && m[kindMsg/perKind] == 0 {
		return c
	}
	least := 0
	for i := range pairs {
		l, text, name, rank := m.rankLevel(&pairs[i])
		if rank == 0 || least > 0 && rank >= least || l == Other && v != OfLoki || rank >= rankStays && v != OfOTLP {
			continue
		}
		c, least = Choice{text, i + 1, name}, rank
		if l != Other {
			c.Text = ownWords[l]
		}
		if rank >= rankStays {
			c.Spent = 0
		}
	}
	return c
}

// ownWords are the words of levels.
var ownWords = func() (words [NumLevels][]byte) {
	for l := range Other {
		words[l] = []byte(l.String())
	}
	return words
}()

// rankLevel returns the level that a pair has, its text, the name under which it is, and its rank; that is 0 if it
// has none.
func (m *present) rankLevel(p *Pair) (l Level, text []byte, name string, rank int) {
	n := p.is()
	if n/perKind != kindLevel/perKind {
		return p.nestedLevel()
	}
	if !m.counts(n) || n >= namePriority && p.JSON && !IsString(p.Value) {
		return Other, nil, "", 0
	}
	text = p.Text()
	l, by := m.levelOf(n, text)
	_, number := numberOf(text)
	switch rank = int(n-kindLevel) + 1; {
	case n >= namePriority && l != Other:
		rank += rankStays
	case l != Other && by != nil:
		rank += rankNumber
	case l != Other:
	case len(text) == 0 || number || n >= namePriority || string(text) == "unknown": // Loki's word for none
		rank = 0
	default:
		rank += rankOwn
	}
	return l, text, p.Name, rank
}

// nestedLevel is rankLevel for an object of [nestedNames].
func (p *Pair) nestedLevel() (l Level, text []byte, name string, rank int) {
	if !p.JSON || p.known == 0 || len(p.Value) == 0 || p.Value[0] != '{' {
		return Other, nil, "", 0
	}
	for i := range nestedNames {
		n := &nestedNames[i]
		if n.part != partLevel || n.parent != p.known || len(n.beside) > 0 {
			continue
		}
		_, rest, _ := strings.Cut(n.path, ".")
		if v, ok := Lookup(p.Value, rest); ok {
			if l = ParseLevel(TextOf(v)); l != Other {
				return l, nil, n.path, rankStays
			}
		}
	}
	return Other, nil, "", 0
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
		case n/perKind == kindService/perKind && !(v == OfLoki && n == nameContainer):
			rank = int(n-kindService) + 2
		default:
			rank = perKind * (slices.Index(moreServices[v], p.Name) + 1)
		}
		if rank > 0 && len(p.Text()) == 0 {
			return 0
		}
		return rank
	})
	if at < 0 {
		return Choice{}
	}
	p := &pairs[at]
	c := Choice{p.Text(), 0, p.Name}
	if p.known == nameService || p.known == nameServiceName || p.known == nameServiceName2 {
		c.Spent = at + 1
	}
	return c
}
