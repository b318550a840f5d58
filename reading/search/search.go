// Package search is the language of the search line: of the page, of the parameter q of the reading
// API, and of logquery --search. [Parse] reads a line, and [Query.Parts] are the filters of a
// question for it. This package reads no records.
//
//	or    = and { ("OR" | "||") and }
//	and   = term { ["AND" | "&&"] term }         blanks are AND, which binds tighter than OR
//	term  = ["-" | "NOT"] ( "(" or ")" | field | text | "where:(" EXPR ")" )
//	text  = word | "two words" | /re/ | word with * | "*:" text
//	field = name sign value                      sign: = == != > >= < <= =~ !~, also with blanks but for =
//	      | name ":" value                       the field, or the text name:value
//	      | name ":" (">" | ">=" | "<" | "<=") number
//	      | name ":" "[" a "TO" b "]"            { } are for ends that do not count, * for none
//	      | name (":=" | ":~") value             as = and =~
//	      | name (":" | "=" | " in " | " IN " | ":in") "(" value { ("," | "OR" | blank) value } ")"
//	value = word with * | "quoted" | /re/        of level: error,warn or warn+
//
// AND, OR and NOT are in capitals: "and" is a text. "-" and NOT keep the records without the field.
//
// name=502 is the number or the text, name="502" the text alone, name=* any value. level, service and
// msg before a colon are these fields, and msg:x says that x occurs in it. A word is a text, though it
// has a colon, if what is before the colon begins with a digit, or if another colon, a slash or a
// blank is behind it, so localhost:8080 and Error: lose nothing. @timestamp and _time are ts.
//
// Quotes take a name or a text as it is; \" \\ \n \t and \u00e9 are escapes there.
package search

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"blobtail/record"
)

// A Mistake is a part of a line that cannot be read, with what to write.
type Mistake struct {
	Line   string
	Column int // in characters, from 1
	Text   string
}

// Error implements error.
func (m *Mistake) Error() string { return fmt.Sprintf("column %d: %s", m.Column, m.Text) }

// Query is a line that was read.
type Query struct {
	root  *node
	notes []string
}

// Hints are for a query that has found nothing: forms that may have been meant.
func (q *Query) Hints() (hints []string) {
	for _, t := range q.Terms() {
		word := strings.ToLower(t.Value)
		if l := record.ParseLevel([]byte(word)); t.Kind == "text" && t.Name == "" && (l != record.Other || word == "other") {
			hints = append(hints, t.Text+" is a text here; write level="+l.String()+" for the level")
		}
	}
	if line := Meant(q.root.line); line != "" && line != q.String() {
		hints = append(hints, "fields have no blanks in them: write "+line)
	}
	return hints
}

// Notes say what in the line may have been meant otherwise.
func (q *Query) Notes() []string { return q.notes }

type kind int

const (
	kindAnd kind = iota
	kindOr
	kindAll   // *
	kindText  // is in a text of the record
	kindExpr  // matches one
	kindField // by its value
	kindMsg   // is in the message
	kindWhere // a condition of package where
)

type form int

const (
	formWord   form = iota
	formQuoted      // as it is
	formExpr        // RE2
	formEither      // a quoted value behind a colon: number or text
)

// A node is a term, or terms that are joined.
type node struct {
	kind  kind
	not   bool
	sub   []*node // of kindAnd and kindOr
	name  string
	op    string // = > >= < <=
	colon bool   // the text name:value counts too
	form  form
	value string
	line  string
	begin int // its column in the line
}

func (n *node) mistake(text string) error { return &Mistake{n.line, n.begin, text} }

// Join returns the query for the records that all of some queries want.
func Join(all ...*Query) *Query {
	if len(all) == 1 {
		return all[0]
	}
	q := &Query{root: &node{kind: kindAnd}}
	for _, one := range all {
		q.notes = append(q.notes, one.notes...)
		if one.root.kind == kindAnd && !one.root.not {
			q.root.sub = append(q.root.sub, one.root.sub...)
		} else {
			q.root.sub = append(q.root.sub, one.root)
		}
	}
	return q
}

// column is the column of a byte of a line.
func column(line string, at int) int { return utf8.RuneCountInString(line[:min(at, len(line))]) + 1 }
