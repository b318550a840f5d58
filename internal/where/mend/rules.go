package mend

import (
	"regexp"
	"slices"
	"strings"
)

// around removes the parts of other languages around a condition.
func (m *mender) around() {
	if m.is(0, "SELECT") {
		if at := slices.IndexFunc(m.tokens, func(t token) bool { return t.is("WHERE") }); at > 0 {
			m.drop(0, at+1, "this is the condition alone, without SELECT and WHERE")
		}
	}
	for m.is(0, "WHERE", "IF", "FILTER", "HAVING", "WHEN") && m.begins(1) && !m.is(1, "in", "contains", "matches") {
		m.drop(0, 1, "this is the condition alone, without "+m.tokens[0].text)
	}
	if m.is(0, ".") && m.is(1, "[") && m.is(2, "]") && m.is(3, "|") {
		m.drop(0, 4, "this is the condition alone, without parts of jq")
	}
	if n := len(m.tokens) - 1; m.is(0, "select", "filter") && m.is(1, "(") && m.closing(1) == n {
		m.tokens = m.tokens[:n]
		m.drop(0, 2, "this is the condition alone, without "+m.tokens[0].text)
	}
	for n := len(m.tokens) - 1; n > 0 && m.is(n, ";", ",", "."); n-- {
		m.drop(n, n+1, "nothing may stand behind the condition")
	}
	for i := 1; i < len(m.tokens); i++ {
		switch {
		case m.is(i, "ORDER", "GROUP") && m.is(i+1, "BY"), m.is(i, "LIMIT") && m.kind(i+1, number):
			m.drop(i, len(m.tokens), "this is the condition alone: how many records, and in which order, is another question")
		case m.is(i, "#", "--") && m.value(i-1):
			m.drop(i, len(m.tokens), "a comment begins with //")
		}
	}
}

// fields writes the names of fields as they are.
func (m *mender) fields() {
	for i := 0; i < len(m.tokens); i++ {
		t := &m.tokens[i]
		behind := m.value(i-1) && t.gap == "" // a part of a longer value
		switch {
		case m.is(i, ".") && m.kind(i+1, word) && !behind && !m.is(i-1, "#"):
			m.drop(i, i+1, "the name of a field has no dot before it")
		case m.is(i, ".") && m.is(i+1, "[") && m.kind(i+2, quoted) && m.is(i+3, "]") && !behind:
			m.replace(i, i+1, "$env", "the name of a field in brackets needs $env before them; put the whole in single quotes, or the shell takes $env away")
			m.tokens[i+1].gap = ""
		case m.is(i, "$") && m.is(i+1, ".") && m.kind(i+2, word):
			m.drop(i, i+2, "the name of a field has no $. before it")
		case m.is(i, "$") && m.is(i+1, "{") && m.kind(i+2, word) && m.is(i+3, "}"), m.is(i, "%") && m.is(i+1, "{") && m.kind(i+2, word) && m.is(i+3, "}") && !behind:
			m.replace(i, i+4, m.tokens[i+2].text, "the name of a field stands alone, without signs around it")
		case m.is(i, "{") && m.is(i+1, "{") && m.is(i+2, ".") && m.kind(i+3, word) && m.is(i+4, "}") && m.is(i+5, "}"):
			m.replace(i, i+6, m.tokens[i+3].text, "the name of a field stands alone, without signs around it")
		case behind:
		case t.kind == word && t.text == "@timestamp":
			m.replace(i, i+1, "ts", "the time is the field ts")
		case t.kind == word && len(t.text) > 1 && (t.text[0] == '$' && t.text != "$env" || t.text[0] == '@'):
			m.replace(i, i+1, t.text[1:], "the name of a field has no "+t.text[:1]+" before it")
		}
	}
}

// signs replaces the operators of other languages.
func (m *mender) signs() {
	for i := 0; i < len(m.tokens); i++ {
		if m.tokens[i].kind != op {
			continue
		}
		if m.is(i, "=") && m.is(i-2, "let") {
			continue
		}
		switch t := m.tokens[i].text; t {
		case "=", "===", ":=":
			m.replace(i, i+1, "==", t+" is no comparison: for equal values write ==")
		case "<>", "!==", "≠", "=!":
			m.replace(i, i+1, "!=", "for different values write !=")
		case "=>", "≥":
			m.replace(i, i+1, ">=", "for at least write >=")
		case "=<", "≤":
			m.replace(i, i+1, "<=", "for at most write <=")
		case "&":
			if m.is(i+1, "&") {
				m.tokens = slices.Delete(m.tokens, i, i+1)
			}
			m.replace(i, i+1, "and", "to join two conditions write and")
		case "&&", "||":
			if m.is(i+1, "&", "|") {
				m.drop(i+1, i+2, "to join two conditions write "+t)
			}
		case "|":
			m.bar(i)
		case "=~", "~", "~=", "~*", "~~", "!~", "!~*":
			m.tilde(i)
		case "!":
			if m.is(i+1, "contains", "matches", "startsWith", "endsWith", "in", "like") && m.value(i-1) {
				m.replace(i, i+1, "not", "and, or, not and in are words here")
				m.tokens[i+1].gap = " "
			}
		case "-":
			if m.kind(i+1, word) && m.tokens[i+1].gap == "" && m.tokens[i].gap != "" && compares(m.tokens[i+1].text) != "" && m.begins(i+2) {
				m.replace(i, i+2, compares(m.tokens[i+1].text), "a comparison is a sign, such as == or >=")
			}
		}
	}
}

// halves joins the halves of a sign that have a blank between them.
func (m *mender) halves() {
	for i := 0; i+1 < len(m.tokens); i++ {
		if !m.kind(i, op) || !m.kind(i+1, op) || m.tokens[i+1].gap == "" {
			continue
		}
		if sign := m.tokens[i].text + m.tokens[i+1].text; slices.Contains([]string{"==", "!=", "<=", ">=", "&&", "||"}, sign) {
			m.replace(i, i+2, sign, sign+" has no blank in it")
		}
	}
}

// logql finds parts of LogQL.
func (m *mender) logql() {
	if m.is(0, "{") && m.is(2, "=", "==", "!=", "=~", "!~") && m.closing(0) > 0 {
		m.note(m.tokens[0].at, "this is LogQL, and has its own place: --logql, or logql= in the API; here a condition over fields is wanted, such as status >= 500")
	}
	for i := 0; i < len(m.tokens); i++ {
		if !m.is(i, "|=", "|~") || !m.kind(i+1, quoted) {
			continue
		}
		with := "contains"
		if m.is(i, "|~") {
			with = "matches"
		}
		if !m.value(i - 1) {
			with = "msg " + with
		}
		m.replace(i, i+1, with, m.tokens[i].text+" is LogQL: for a part of the message write msg contains, for a regular expression msg matches")
	}
}

// ends finds a condition that lacks its first or its last part.
func (m *mender) ends() {
	n := len(m.tokens) - 1
	switch {
	case n < 1:
	case m.is(0, "and", "or", "&&", "||"):
		m.drop(0, 1, "a condition is missing before "+m.tokens[0].text)
	case m.is(n, "and", "or", "&&", "||"):
		m.drop(n, n+1, "a condition is missing behind "+m.tokens[n].text)
	case m.is(0, "==", "!=", "<", ">", "<=", ">="):
		m.note(m.tokens[0].at, "a field is missing before "+m.tokens[0].text+"; if the shell took it away, put the whole in single quotes")
	case m.is(n, "==", "!=", "<", ">", "<=", ">=", "in", "contains", "startsWith", "endsWith", "matches"):
		m.note(m.tokens[n].at, "a value is missing behind "+m.tokens[n].text+"; if the shell took it away, put the whole in single quotes")
	}
}

// bar replaces a single bar: an or, or a part of LogQL, KQL or jq.
func (m *mender) bar(i int) {
	switch {
	case m.is(i+1, "json", "logfmt", "pattern", "regexp", "unpack", "line_format", "label_format", "unwrap", "stats", "count", "head", "tail", "sort", "limit", "project", "summarize", "uniq", "top", "take", "fields"):
		end := m.end(i + 1)
		if n := m.next(i+1, "|"); n > 0 {
			end = n
		}
		m.drop(i, end, "this is the condition alone, without stages: --parse json makes fields of messages (in the API parse=json), and top, hist and --logql count")
	case m.is(i+1, "where") && m.begins(i+2), m.is(i+1, "select") && m.is(i+2, "("):
		m.drop(0, i+2, "this is the condition alone, without a pipe before it")
	case m.kind(i+1, word) && m.is(i+2, "("): // a pipe of the language
	default:
		m.replace(i, i+1, "or", "for one of two conditions write or")
	}
}

// next is the next token that is one of some; -1: there is none.
func (m *mender) next(i int, texts ...string) int {
	for ; i < len(m.tokens); i++ {
		if m.is(i, texts...) {
			return i
		}
	}
	return -1
}

// tilde replaces a sign for regular expressions.
func (m *mender) tilde(i int) {
	with := "matches"
	if m.tokens[i].text[0] == '!' {
		with = "not matches"
	}
	m.replace(i, i+1, with, "for a regular expression write "+with)
}

// compares is the sign of a comparison that a word of a shell or of a template has; "": it is none.
func compares(word string) string {
	switch strings.ToLower(word) {
	case "eq", "equals", "equal":
		return "=="
	case "ne", "neq":
		return "!="
	case "gt":
		return ">"
	case "ge", "gte":
		return ">="
	case "lt":
		return "<"
	case "le", "lte":
		return "<="
	}
	return ""
}

// other is the operator of the language for a word of another one.
func other(text string) (with, what string) {
	switch low := strings.ToLower(text); low {
	case "and", "or", "in", "not":
		return low, "and, or, not and in are lower case"
	case "contains", "contain", "includes", "include", "has":
		return "contains", "for a part of a text write contains"
	case "startswith", "starts_with", "beginswith", "hasprefix":
		return "startsWith", "for the beginning of a text write startsWith"
	case "endswith", "ends_with", "hassuffix":
		return "endsWith", "for the end of a text write endsWith"
	case "matches", "match", "regexp", "regex", "rlike":
		return "matches", "for a regular expression write matches"
	}
	if sign := compares(text); sign != "" {
		return sign, "a comparison is a sign, such as == or >="
	}
	return "", ""
}

// words replaces the words of other languages that stand where an operator must be, and those of
// a value that have another spelling.
func (m *mender) words() {
	for i := 0; i < len(m.tokens); i++ {
		if m.tokens[i].kind != word {
			continue
		}
		t := m.tokens[i].text
		if m.is(i, "not") && t != "not" && (m.begins(i+1) || m.is(i-1, "is")) {
			m.replace(i, i+1, "not", "and, or, not and in are lower case")
			continue
		}
		if !m.value(i-1) && !m.is(i-1, "not") || i == 0 {
			continue
		}
		switch {
		case m.is(i, "like", "ilike"):
			m.like(i)
		case m.is(i, "between"):
			m.between(i)
		case m.is(i, "exists", "exist") && !m.begins(i+1):
			m.replace(i, i+1, "!= nil", "a field that a record does not have is nil")
		case m.is(i, "does", "do") && m.is(i+1, "not") && m.kind(i+2, word):
			if with, what := other(m.tokens[i+2].text); with != "" {
				m.replace(i, i+3, "not "+with, what)
			}
		case m.phrase(i):
		case m.is(i, "is"):
			m.isWord(i)
		case m.is(i, "starts", "ends", "begins") && m.is(i+1, "with"):
			with, what := other(t + "with")
			if m.is(i, "begins") {
				with, what = other("startswith")
			}
			m.replace(i, i+2, with, what)
		default:
			if with, what := other(t); with != "" && with != t && (m.begins(i+1) || m.is(i+1, "=", "==")) {
				m.replace(i, i+1, with, what)
			}
		}
	}
}

// like replaces LIKE by the operator for its pattern.
func (m *mender) like(i int) {
	what := "for a part of a text write contains, startsWith or endsWith"
	if !m.kind(i+1, quoted) {
		m.replace(i, i+1, "contains", what)
		return
	}
	with, text := pattern(m.tokens[i+1].text[1 : len(m.tokens[i+1].text)-1])
	if with == "==" && m.is(i-1, "not") {
		with = "contains"
	}
	m.replace(i, i+2, with+` "`+text+`"`, what)
}

// pattern is the operator, and the text behind it, of a pattern with % or * for any text.
func pattern(text string) (with, bare string) {
	begins, ends := strings.HasSuffix(text, "%") || strings.HasSuffix(text, "*"), strings.HasPrefix(text, "%") || strings.HasPrefix(text, "*")
	bare = strings.Trim(text, "%*")
	switch {
	case strings.ContainsAny(bare, "%*"):
		bare = strings.NewReplacer("%", ".*", `\*`, ".*").Replace(regexp.QuoteMeta(bare))
		bare = strings.ReplaceAll(bare, `\`, `\\`)
		if !ends {
			bare = "^" + bare
		}
		if !begins {
			bare += "$"
		}
		return "matches", bare
	case begins && ends:
		return "contains", bare
	case begins:
		return "startsWith", bare
	case ends:
		return "endsWith", bare
	}
	return "==", bare
}

// phrase replaces a comparison in words, such as: is greater than or equal to.
func (m *mender) phrase(i int) bool {
	j := i
	if m.is(j, "is") {
		j++
	}
	sign := ""
	switch {
	case m.is(j, "greater", "more", "larger", "bigger", "higher") && m.is(j+1, "than"):
		sign, j = ">", j+2
	case m.is(j, "less", "fewer", "smaller", "lower") && m.is(j+1, "than"):
		sign, j = "<", j+2
	case m.is(j, "above", "over"):
		sign, j = ">", j+1
	case m.is(j, "below", "under"):
		sign, j = "<", j+1
	case m.is(j, "equal", "equals") && m.is(j+1, "to"):
		sign, j = "==", j+2
	default:
		return false
	}
	if m.is(j, "or") && m.is(j+1, "equal") && sign != "==" {
		if sign, j = sign+"=", j+2; m.is(j, "to") {
			j++
		}
	}
	if m.begins(j) {
		m.replace(i, j, sign, "a comparison is a sign, such as == or >=")
	}
	return true
}

// isWord replaces IS.
func (m *mender) isWord(i int) {
	with, j := "==", i+1
	if m.is(j, "not") {
		with, j = "!=", j+1
	}
	switch {
	case m.is(j, "null", "nil", "none", "empty", "missing", "undefined", "unknown"):
		m.replace(i, j+1, with+" nil", "a field that a record does not have is nil")
	case m.begins(j):
		m.replace(i, j, with, "a comparison is a sign, such as == or !=")
	}
}

// begin is the first token of the name that ends before the token i.
func (m *mender) begin(i int) int {
	begin := i - 1
	for begin > 0 && (m.is(begin, ".") || m.is(begin-1, ".")) {
		begin--
	}
	return begin
}

// between replaces BETWEEN a AND b.
func (m *mender) between(i int) {
	begin := m.begin(i)
	name := m.slice(begin, i)
	if m.value(i+1) && m.is(i+2, "and", ",") && m.value(i+3) {
		m.replace(begin, i+4, name+" >= "+m.tokens[i+1].text+" and "+name+" <= "+m.tokens[i+3].text, "a range has two comparisons")
	}
}

// regexps puts regular expressions between slashes into quotes.
func (m *mender) regexps() {
	for i := 1; i < len(m.tokens); i++ {
		if !m.is(i, "/") || !m.is(i-1, "matches") {
			continue
		}
		end := m.next(i+1, "/")
		for end > 0 && m.is(end-1, `\`) {
			end = m.next(end+1, "/")
		}
		if end < i+2 {
			continue
		}
		text := strings.ReplaceAll(m.source(i+1, end), `\/`, "/")
		m.forget(i, end)
		if m.is(end+1, "i") && m.tokens[end+1].gap == "" {
			text, end = "(?i)"+text, end+1
		}
		m.replace(i, end+1, quote(text), "a regular expression is a text: it needs quotes")
	}
}

// calls replaces functions and methods of other languages.
func (m *mender) calls() {
	for i := 0; i < len(m.tokens); i++ {
		switch {
		case m.is(i, ".") && m.value(i-1) && m.kind(i+1, word) && m.is(i+2, "("):
			m.method(i)
		case m.kind(i, word) && slices.Contains(joiners()[3:], m.tokens[i].text) && !m.value(i-1) && !(m.is(i-1, "not") && m.value(i-2)) && m.is(i+1, "("):
			end, comma := m.closing(i+1), m.next(i+2, ",")
			if with := m.tokens[i].text; comma > i+2 && comma < end-1 {
				m.replace(i, end+1, m.slice(i+2, comma)+" "+with+" "+m.slice(comma+1, end), with+" stands between its values")
			}
		case m.kind(i, word) && m.is(i+1, "(") && m.is(i+2, "*") && m.is(i+3, ")"):
			m.note(m.tokens[i].at, "this is a condition over the fields of one record; to count records add --count")
		}
	}
}

// method replaces a method of a field: the dot is the token i.
func (m *mender) method(i int) {
	end, name := m.closing(i+2), m.tokens[i+1].text
	if end < 0 {
		return
	}
	if n := m.next(i+3, ","); n > 0 && n < end {
		return
	}
	if with, what := other(name); with != "" && end > i+3 {
		m.replace(i, end+1, with+" "+m.slice(i+3, end), what)
		return
	}
	begin := m.begin(i)
	if of := Function(name); of != "" && end == i+3 {
		m.replace(begin, end+1, of+"("+m.slice(begin, i)+")", "a field has no functions of its own: they stand before it")
	}
}

// Function is the function of the language for one of another; "": there is none.
func Function(name string) string {
	return map[string]string{
		"upper": "upper", "lower": "lower", "trim": "trim", "len": "len", "int": "int", "float": "float", "string": "string",
		"length": "len", "strlen": "len", "size": "len", "char_length": "len",
		"lowercase": "lower", "tolower": "lower", "to_lower": "lower", "lcase": "lower", "tolowercase": "lower", "downcase": "lower", "ascii_downcase": "lower",
		"uppercase": "upper", "toupper": "upper", "to_upper": "upper", "ucase": "upper", "touppercase": "upper", "upcase": "upper", "ascii_upcase": "upper",
		"number": "float", "tonumber": "float", "to_number": "float", "parsefloat": "float", "parseint": "int", "toint": "int", "todouble": "float",
		"tostring": "string", "to_string": "string", "str": "string", "tojson": "toJSON", "fromjson": "fromJSON", "json": "fromJSON", "parse_json": "fromJSON",
		"strip": "trim", "datetime": "date", "todatetime": "date", "timestamp": "date", "parse_date": "date", "average": "mean", "avg": "mean",
	}[strings.ToLower(name)]
}

// lists puts the values behind "in" into square brackets.
func (m *mender) lists() {
	const what = "a list has square brackets"
	for i := 0; i < len(m.tokens); i++ {
		if !m.is(i, "in") || !m.value(i-1) && !m.is(i-1, "not") {
			continue
		}
		end := m.closing(i + 1)
		switch {
		case m.is(i+1, "(", "{") && end > i+2 && (m.next(i+2, ",", "or", "..") < 0 || m.next(i+2, ",", "or") > 0 && m.next(i+2, ",", "or") < end):
			m.note(m.tokens[i+1].at, what)
			m.tokens[i+1].text, m.tokens[end].text = "[", "]"
			for j := i + 2; j < end; j++ {
				if m.is(j, "or") {
					m.tokens[j] = token{kind: op, at: m.tokens[j].at, text: ","}
				}
			}
		case m.is(i+1, "[") && end > i+2:
			for j := i + 3; j < end; j++ {
				if m.value(j-1) && m.kind(j, number, quoted) {
					m.note(m.tokens[j].at, "the values of a list have commas between them")
					m.tokens = slices.Insert(m.tokens, j, token{at: m.tokens[j].at, text: ","})
					j, end = j+1, end+1
				}
			}
		case m.value(i+1) && m.is(i+2, ",") && m.value(i+3):
			last := i + 3
			for m.is(last+1, ",") && m.value(last+2) {
				last += 2
			}
			m.note(m.tokens[i+1].at, what)
			m.tokens = slices.Insert(m.tokens, last+1, token{kind: op, at: m.tokens[last].at, text: "]"})
			m.tokens = slices.Insert(m.tokens, i+1, token{kind: op, at: m.tokens[i+1].at, gap: " ", text: "["})
			m.tokens[i+2].gap = ""
		case m.kind(i+1, number) && m.is(i+2, "-") && m.kind(i+3, number):
			m.replace(i+2, i+3, "..", "a range of numbers has .. between them")
			m.tokens[i+2].gap, m.tokens[i+3].gap = "", ""
		}
	}
	for i := range m.tokens { // (1,2) becomes [1, 2]
		if m.is(i, ",") && m.value(i+1) && m.tokens[i+1].gap == "" && len(m.found) > 0 {
			m.tokens[i+1].gap = " "
		}
	}
}
