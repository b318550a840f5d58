// Package trace finds the lines of a text that are one record: a line, and those behind it that
// belong to it, as the calls of a stack trace do, or the lines of another form of several lines
// (block.go). languages.go has the forms of lines, a row a language.
package trace

import (
	"bytes"

	"blobtail/record"
	"blobtail/record/text"
	"blobtail/record/times"
)

const (
	// MaxBytes and MaxLines bound a record of several lines. The lines behind them are
	// the next record, with the level and the state of this one.
	MaxBytes = 256 << 10
	MaxLines = 1000
	// farthest is how many lines behind a line may decide whether it belongs to a trace, and
	// farthestCall is that for the head of a request.
	farthest     = 10
	farthestCall = 40
)

// A Joiner finds the lines of a body that are one record: a text, and the lines behind it that
// belong to it. They are indented, or close a brace that a line before left open, or continue a
// stack trace by the whole form of a line of it. The first line of a trace belongs to a text only
// if that has the level error or above; else it begins a record.
type Joiner struct {
	body   []byte
	times  *times.Reader
	lang   tongue // of the trace
	severe bool   // the text has the level error or above, or is a trace
	framed bool   // one of the lines is a call
	level  []byte
	Cut    bool // the record has reached its bounds, and the lines behind belong to it too

	message bool // the next line is the message of the trace in any case
	chained bool // another trace follows that belongs to this one
	thrown  bool // the last line that is not indented is an exception, without calls so far
	named   bool // a traceback of Python has its error
	quoted  bool // the traceback is the text of an error, between quotation marks
	blank   bool // the line before is empty
	closer  byte // closes a brace or the like that a line left open; 0: none is open

	single   bool // only an indented line, or one in brackets or colours, may belong to the record
	off, end int  // of the first line
	until    int  // lines that begin before it belong to the record
}

// New returns a joiner for a body, whose times r reads.
func New(body []byte, r *times.Reader) Joiner { return Joiner{body: body, times: r} }

// IsTrace reports whether the record has a stack trace.
func (j *Joiner) IsTrace() bool { return j.lang != none && j.lang != slow || j.framed }

// Join returns the end of the record with the first line body[off:end], and how many places it
// has: as many as lines that are not empty. So the records behind have the same places if the
// lines are read one by one. head is the first line behind its time. A Joiner that was cut goes on
// with its state.
func (j *Joiner) Join(off, end int, head, level []byte) (next, places int) {
	if j.Cut {
		j.Cut, j.blank = false, false
	} else {
		j.begin(off, end, head, level)
	}
	next, places = end, 1
	const mostEmpty = 100 // in a row
	for at, empty := end+1, 0; at < len(j.body) && !j.alone(at); {
		e := text.LineEnd(j.body, at)
		line := bytes.TrimSuffix(j.body[at:e], []byte("\r"))
		blanks := text.SkipBlanks(line, 0)
		switch {
		case blanks == len(line):
			if !j.blank && len(line) > 0 && e-off <= MaxBytes && endsList(j.body[off:next], line) {
				next = e
			}
			j.blank = true
			if empty++; empty > mostEmpty || e-off > MaxBytes {
				return next, places
			}
		case at >= j.until && (text.LooksLikeObject(line[blanks:]) || !j.takes(line, blanks, at, e)):
			return next, places
		case e-off > MaxBytes, places == MaxLines:
			j.Cut = true
			return next, places
		default:
			next, j.blank, j.single, empty = e, false, false, 0
			places++
		}
		at = e + 1
	}
	return next, places
}

// endsList reports whether a line of blanks ends a list that is indented by the same blanks, as
// the loggers write it behind values of several lines.
func endsList(text, blanks []byte) bool {
	last := text[bytes.LastIndexByte(text, '\n')+1:]
	return len(last) < len(text) && bytes.HasPrefix(last, blanks)
}

// alone reports whether the line at at is surely none of the record, by its first bytes.
func (j *Joiner) alone(at int) bool {
	c := j.body[at]
	return j.single && c > ' ' && c != '[' && c != '\x1b' || j.aloneBy(c, at)
}

// aloneBy is alone for a line that begins with c, if that and the state do not decide at once.
func (j *Joiner) aloneBy(c byte, at int) bool {
	switch {
	case c == ' ', c == '\t', c == '\r', c == '\n', at < j.until:
		return false
	case !j.open():
		return c != j.closer && (c != '[' && c != '\x1b' || !j.follows(at) && !isColour(j.body[at:]))
	}
	return text.LooksTimed(j.body[at:])
}

// open reports whether a line that is not indented may belong to the record.
func (j *Joiner) open() bool {
	return j.severe || j.framed || j.message || j.lang == report || j.lang == slow
}

// begin starts with the first line of a record.
func (j *Joiner) begin(off, end int, head, level []byte) {
	line := bytes.TrimSuffix(j.body[off:end], []byte("\r"))
	j.off, j.end, j.level = off, end, level
	if len(line) > 2 && j.beginsBlock(line, head) {
		return
	}
	if level != nil {
		if j.severe = isSevere(level); !j.severe {
			j.opens(line)
			j.framed = len(line) > 0 && j.announces(line)
			j.single = j.until == 0 && j.closer == 0 && !j.framed
			return
		}
	}
	if len(line) > 24 && text.IsCalendar(line[:3]) && j.any(languages[none].message, line, end) {
		j.message = true
		return
	}
	for len(head) > 0 && (head[0] == ' ' || head[0] == '\t' || head[0] == ']' || head[0] == ')' || head[0] == '"') {
		head = head[1:]
	}
	s := bytes.TrimSuffix(head, []byte("\r"))
	if len(s) > 0 && s[0] == '\x1b' {
		s = text.Uncoloured(s)
	}
	if len(s) > 0 && s[0] == '[' {
		if n := bytes.Index(s, []byte("] ")); n > 0 {
			s = s[n+2:]
		}
	}
	if l := j.first(s, end); l != none {
		j.enter(l, s, end)
	} else {
		j.framed = text.SkipBlanks(line, 0) > 0 && j.isFrame(s)
		j.thrown = isThrown(s)
	}
	j.opens(line)
	if j.level == nil && j.severe {
		j.level = []byte("error")
	}
	j.single = j.until == 0 && j.closer == 0 && !j.open()
}

// enter begins a trace with its first line, which ends at end.
func (j *Joiner) enter(l tongue, s []byte, end int) {
	j.lang, j.severe = l, true
	j.thrown = l == thrown
	j.message = j.any(languages[l].message, s, end)
	j.chained = j.any(languages[l].lead, s, end)
	j.named = !j.isTraceback(s)
	if l == report {
		if j.level == nil {
			j.level = reportLevel(s[1 : 1+nameOf(s[1:])])
		}
		j.severe = isSevere(j.level)
	}
	if languages[l].end != nil {
		j.ahead(end)
	}
}

// ahead finds the end of a message of several lines, which only the lines behind it tell: the
// notes or the calls of Rust, the calls of Gin, the next report of Erlang.
func (j *Joiner) ahead(end int) {
	reach := farthest
	if j.lang == golang {
		reach = farthestCall // Gin prints the request before its error
	}
	for i := 0; j.message && i < reach; i++ {
		line, next := j.behind(end)
		at := next - len(line)
		switch {
		case len(line) == 0, text.LooksLikeObject(line), j.lang == report && at > end+2:
			return
		case j.any(languages[j.lang].end, line, next):
			j.until, j.message = at, false
			return
		case j.lang == report && (line[0] <= ' ' || line[0] == '*' || line[0] == '{'):
			return
		}
		level := text.Level(j.times, line, false)
		if i > 0 && level != nil && (j.lang == report || !isSevere(level)) || j.timed(line) ||
			line[0] != ' ' && j.first(line, next) != none {
			return
		}
		end = next
	}
}

// Level returns the level of the record: that of its first line, or error for a trace.
func (j *Joiner) Level() []byte {
	if j.level == nil && j.framed {
		return []byte("error")
	}
	return j.level
}

func isSevere(level []byte) bool {
	l := record.ParseLevel(level)
	return l == record.Error || l == record.Critical
}

// takes reports whether a line that is not empty belongs to the record. It ends at end. A line
// with a time does not: it is the next record of a program that indents its lines.
func (j *Joiner) takes(line []byte, blanks, at, end int) bool {
	if j.lang == slow {
		return j.takesSlow(line, end)
	}
	s := line[blanks:]
	if s[0] == '\x1b' || j.open() && bytes.IndexByte(s, '\x1b') >= 0 {
		if s = text.Uncoloured(s); len(bytes.TrimLeft(s, " \t\r")) == 0 {
			return true // the colour behind the record
		}
		if n := text.SkipBlanks(s, 0); n > 0 { // the colour of a call is before its blanks
			if s = s[n:]; j.isFrame(s) {
				blanks += n
			}
		}
	}
	switch c := line[0]; {
	case (c == '[' || c == '\x1b') && j.follows(at):
		return j.takesSecond(s)
	case blanks > 0:
		return j.indented(line, s, end)
	case j.message && !j.blank:
		return j.takesMessage(line, s)
	case j.closer != 0 && s[0] == j.closer:
	case !j.open(), !j.continues(s, end), j.timed(line):
		return false
	}
	j.opens(line)
	return true
}

// timed reports whether a line has a time of its own.
func (j *Joiner) timed(line []byte) bool {
	_, own := text.Time(j.times, line)
	return own
}

// takesSecond takes the line that the first one of the record announces. It may have the level.
func (j *Joiner) takesSecond(s []byte) bool {
	if j.level == nil {
		j.level = text.Level(j.times, s, false)
		j.severe = isSevere(j.level)
	}
	return true
}

// indented reports whether an indented line belongs to the record.
func (j *Joiner) indented(line, s []byte, end int) bool {
	trace := (j.lang == none || !j.severe) && j.isTraceback(s)
	if j.isOwn(line) || !j.severe && trace || j.timed(line) {
		return false
	}
	call := j.isFrame(s)
	j.message, j.framed, j.thrown = false, j.framed || call, j.thrown && !call
	if j.lang == none && trace {
		j.enter(python, s, end)
	}
	if c := closerOf(line); c != 0 && j.closer == 0 && call {
		j.closer = c
	}
	return true
}

// takesMessage reports whether the line right behind the first one of a trace is its message.
func (j *Joiner) takesMessage(line, s []byte) bool {
	if j.timed(line) || j.lang == report && j.any(languages[report].first, s, 0) {
		return false
	}
	j.message = false
	j.opens(line)
	return j.lang != none || j.takesSecond(s) // of java.util.logging
}

// continues reports whether a line that is not indented belongs to the trace.
func (j *Joiner) continues(s []byte, end int) bool {
	if j.lang == python && !j.named && j.isError(s) {
		j.named, j.chained = true, false
		return true
	}
	switch l := j.first(s, end); {
	case l != none && (j.lang == none && l != report || j.chained || j.lang == node && l == thrown && j.blank):
		j.enter(l, s, end)
		return true
	case l != none && (l != j.lang || !j.goesOn(s, end)):
		return false
	case l == golang && string(j.level) == "error" && bytes.HasPrefix(s, []byte("fatal error: ")):
		j.level = []byte("critical")
	case j.isFrame(s):
		j.framed, j.thrown = true, false
	case j.quoted && string(s) == `"""`:
		j.quoted = false
	case j.goesOn(s, end):
		j.quoted = j.quoted || string(s) == `"""`
		if bytes.HasPrefix(s, []byte("[previous exception] ")) { // of Monolog
			j.message = true
			j.ahead(end)
			j.message = false
		}
	case j.lang == node && j.blank && j.any(languages[node].end, s, end):
		j.thrown = true
	case j.lang == none && !j.framed && isThrown(s) && j.callsAhead(end):
		j.enter(thrown, s, end)
	case j.message && j.lang != report && text.Level(j.times, s, false) == nil:
		j.message = false
	case j.thrown && text.Level(j.times, s, false) == nil && j.callsAhead(end):
		return true // a message of several lines
	default:
		return false
	}
	j.chained = j.any(languages[j.lang].lead, s, end)
	return true
}

// goesOn reports whether a line that is no call and not indented continues the trace.
func (j *Joiner) goesOn(s []byte, end int) bool {
	return j.any(languages[none].on, s, end) || j.lang != none && j.any(languages[j.lang].on, s, end)
}

// isTraceback reports whether a line begins a traceback of Python, at whose end the error comes.
func (j *Joiner) isTraceback(s []byte) bool {
	return bytes.Contains(s, []byte("Traceback (most recent call last)")) || j.fits(`File "*", line &$`, s, 0)
}

// opens remembers a brace or bracket at the end of a line that is not indented. A line that
// begins with its partner closes it.
func (j *Joiner) opens(line []byte) {
	if j.closer = closerOf(line); j.until > 0 {
		j.closer = 0
	}
}

// closerOf returns the partner of the brace or bracket at the end of a line, 0 for none.
func closerOf(line []byte) byte {
	if n := len(line); n > 0 {
		switch c := line[n-1]; c {
		case '{', '[':
			return c + 2
		case '(':
			return ')'
		}
	}
	return 0
}

// callsAhead reports whether a call follows the line that ends at end, behind no other lines than
// those that may be the message of an exception.
func (j *Joiner) callsAhead(end int) bool {
	for range farthest {
		var line []byte
		line, end = j.behind(end)
		s := text.Uncoloured(line)
		s = s[text.SkipBlanks(s, 0):]
		switch {
		case j.isFrame(s):
			return true
		case len(s) == 0, text.LooksLikeObject(s), j.first(s, end) != none, j.timed(line), text.Level(j.times, line, false) != nil:
			return false
		}
	}
	return false
}

// behind returns the line behind the one that ends at end, and its own end. It skips a few empty
// lines.
func (j *Joiner) behind(end int) (line []byte, next int) {
	for range 4 {
		if end+1 >= len(j.body) {
			return nil, len(j.body)
		}
		next = text.LineEnd(j.body, end+1)
		line, end = bytes.TrimSuffix(j.body[end+1:next], []byte("\r")), next
		if text.SkipBlanks(line, 0) < len(line) {
			return line, next
		}
	}
	return nil, next
}

// isColour reports whether the line that begins rest is nothing but the codes of colours.
func isColour(rest []byte) bool {
	n := text.SkipColours(rest, 0)
	return n > 0 && (n == len(rest) || rest[n] == '\n')
}

// Level returns error for a message that holds a stack trace, else nil. end is that of its
// first line, and head that line behind its time.
func Level(r *times.Reader, msg, head []byte, end int) []byte {
	msg = msg[:min(len(msg), MaxBytes)]
	j := New(msg, r)
	for off, lines := 0, 0; lines < MaxLines; lines++ {
		next, _ := j.Join(off, min(end, len(msg)), head, nil)
		if off = next + 1; j.Level() != nil || off >= len(msg) {
			break
		}
		var at text.Stamp
		end = text.LineEnd(msg, off)
		at.Read(r, msg[off:end])
		j, head = New(msg, r), at.Rest
	}
	return j.Level()
}

// reportLevel returns the level of a report of Erlang by the word in its head.
func reportLevel(word []byte) []byte {
	switch {
	case string(word) == "PROGRESS":
		return []byte("info")
	case record.ParseLevel(word) == record.Other: // CRASH, SUPERVISOR
		return []byte("error")
	}
	return word
}
