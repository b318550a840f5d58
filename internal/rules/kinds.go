package rules

import "regexp"

// Kinds are the kinds of texts that a [Mask] may name.
func Kinds() []string { return []string{"bearer", "card", "email", "jwt"} }

// kind returns the replacer of a kind, nil if there is none, and texts: each line with a match has
// one of them. Without texts, any line may have a match.
func kind(name, with string) (find replacer, needs [][]byte) {
	expr := func(pattern string, needs ...string) (replacer, [][]byte) {
		l := &literal{regexp.MustCompile(pattern), []byte(with)}
		var all [][]byte
		for _, need := range needs {
			all = append(all, []byte(need))
		}
		return l, all
	}
	switch name {
	case "card":
		return &cards{[]byte(with)}, nil
	case "jwt": // also one in five parts, which is encrypted
		return expr(`eyJ[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*){2,4}`, "eyJ")
	case "email":
		return expr(`[\pL\pN._%+'-]+@[\pL\pN-]+(?:\.[\pL\pN-]+)+`, "@")
	case "bearer": // the value of a header Authorization
		return expr(`\b(?:[Bb]earer|BEARER|[Bb]asic|BASIC)\s+[A-Za-z0-9._~+/-]{16,}=*`, "earer", "asic", "EARER", "ASIC")
	}
	return nil, nil
}

// literal replaces the matches of a regular expression by a text without groups.
type literal struct {
	expr *regexp.Regexp
	with []byte
}

func (l *literal) replace(text []byte) ([]byte, bool) {
	if !l.expr.Match(text) {
		return text, false
	}
	return bounded(l.expr.ReplaceAllLiteral(text, l.with), text), true
}

// cards replaces the numbers of payment cards: 13 to 19 digits, alone or with one space or dash
// between some of them. They have the beginning and the length of a card, and the right last digit
// (Luhn, ISO/IEC 7812-1).
type cards struct{ with []byte }

func (c *cards) replace(text []byte) ([]byte, bool) {
	var out []byte
	from := 0 // of the text that is not in out yet
	for i := 0; i < len(text); {
		if !isDigit(text[i]) {
			i++
			continue
		}
		end := endOfNumber(text, i)
		for i < end {
			if n := cardLen(text[i:end]); n > 0 {
				out = append(append(out, text[from:i]...), c.with...)
				from = i + n
			}
			i = nextGroup(text, max(i, from), end)
		}
	}
	if from == 0 {
		return text, false
	}
	return bounded(append(out, text[from:]...), text), true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// endOfNumber returns the end of the digits from i on, with single spaces and dashes between
// them.
func endOfNumber(text []byte, i int) int {
	for i < len(text) && (isDigit(text[i]) || (text[i] == ' ' || text[i] == '-') && i+1 < len(text) && isDigit(text[i+1])) {
		i++
	}
	return i
}

// nextGroup returns the start of the next group of digits.
func nextGroup(text []byte, i, end int) int {
	for i < end && isDigit(text[i]) {
		i++
	}
	for i < end && !isDigit(text[i]) {
		i++
	}
	return i
}

// cardLen returns the length of the longest card number at the start of a text, which is
// digits with spaces and dashes; 0: there is none. It ends where a group of digits ends.
func cardLen(text []byte) (longest int) {
	var digits [19]byte
	n := 0
	for i, c := range text {
		if !isDigit(c) {
			continue
		}
		if n == len(digits) {
			break
		}
		digits[n] = c - '0'
		n++
		if (i+1 == len(text) || !isDigit(text[i+1])) && isCard(digits[:n]) {
			longest = i + 1
		}
	}
	return longest
}

// isCard reports whether digits are the number of a card of one of the large networks.
func isCard(digits []byte) bool {
	n := len(digits)
	switch digits[0] {
	case 4: // Visa
		if n != 13 && n != 16 && n != 19 {
			return false
		}
	case 2, 5: // Mastercard; Maestro has some more lengths
		if n != 16 {
			return false
		}
	case 3: // American Express, Diners Club, JCB
		if n < 14 || n > 16 {
			return false
		}
	case 6: // Discover, UnionPay, Maestro, RuPay
		if n < 16 {
			return false
		}
	default:
		return false
	}
	sum := 0
	for i := range digits {
		d := int(digits[n-1-i])
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}
