// Package trace finds the lines of a text that are one record: a line, and those behind it that
// belong to it, as the calls of a stack trace do (trace.go, frame.go), or the lines of another form
// of several lines (block.go).
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
	form   form // of the trace, none for a text without one
	severe bool // the text has the level error or above, or is a trace
	framed bool // one of the lines is a call
	level  []byte
	Cut    bool // the record has reached its bounds, and the lines behind belong to it too

	message bool // the next line is the message of the trace in any case
	chained bool // another trace follows that belongs to this one
	thrown  bool // the last line that is not indented is an exception, without calls so far
	named   bool // a traceback of Python has its error
	quoted  bool // the next line is a quoted command of Tcl
	blank   bool // the line before is empty
	remote  bool // the traceback is the text of an error, between quotation marks
	closer  byte // closes a brace or the like that a line left open; 0: none is open

	single   bool // only an indented line, or one in brackets or colours, may belong to the record
	block    block
	off, end int // of the first line
	until    int // lines that begin before it belong to the record
	tag      int // of the block: the length of its tags
}

// New returns a joiner for a body, whose times r reads.
func New(body []byte, r *times.Reader) Joiner { return Joiner{body: body, times: r} }

// IsTrace reports whether the record has a stack trace.
func (j *Joiner) IsTrace() bool { return j.form != none || j.framed }

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
	for at := end + 1; at < len(j.body) && !j.alone(at); {
		e := text.LineEnd(j.body, at)
		line := bytes.TrimSuffix(j.body[at:e], []byte("\r"))
		blanks := text.SkipBlanks(line, 0)
		switch {
		case blanks == len(line):
			if !j.blank && len(line) > 0 && e-off <= MaxBytes && endsList(j.body[off:next], line) {
				next = e
			}
			j.blank = true
			if e-off > MaxBytes {
				return next, places
			}
		case at >= j.until && (text.LooksLikeObject(line[blanks:]) || !j.takes(line, blanks, at, e)):
			return next, places
		case e-off > MaxBytes, places == MaxLines:
			j.Cut = true
			return next, places
		default:
			next, j.blank, j.single = e, false, false
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
	case c == ' ', c == '\t', c == '\r', c == '\n', at < j.until, j.block != noBlock:
		return false
	case !j.open():
		return c != j.closer && (c != '[' && c != '\x1b' || !j.follows(at) && !isColour(j.body[at:]))
	}
	return text.LooksTimed(j.body[at:])
}

// open reports whether a line that is not indented may belong to the record.
func (j *Joiner) open() bool {
	return j.severe || j.framed || j.message || j.quoted || j.form == reportForm
}

// begin starts with the first line of a record.
func (j *Joiner) begin(off, end int, head, level []byte) {
	line := bytes.TrimSuffix(j.body[off:end], []byte("\r"))
	j.off, j.end, j.level = off, end, level
	if mayBlock(line, head) && j.beginsBlock(line, head) {
		return
	}
	if level != nil {
		if j.severe = isSevere(level); !j.severe {
			j.opens(line)
			j.framed = j.zapAhead(line) || announces(line)
			j.single = j.until == 0 && j.closer == 0 && !j.framed
			return
		}
	}
	if j.isJUL(line, end) {
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
	switch form := j.first(s, end); {
	case form != none:
		j.enter(form, s, end)
	default:
		j.framed = text.SkipBlanks(line, 0) > 0 && isFrame(s)
		j.thrown = isThrown(s)
		if len(s) == 0 || s[0] != 'F' || !isSyntax(s) {
			break
		}
		if next, _ := j.behind(end); len(next) > 0 && next[0] == ' ' {
			j.enter(pythonForm, s, end)
		}
	}
	j.opens(line)
	if j.level == nil && j.severe {
		j.level = []byte("error")
	}
	j.single = j.until == 0 && j.closer == 0 && !j.open()
}

// enter begins a trace with its first line, which ends at end.
func (j *Joiner) enter(f form, s []byte, end int) {
	j.form, j.severe = f, true
	j.thrown = f == thrownForm
	j.message = wantsMessage(f, s)
	j.chained = f == pythonForm && wantsTraceback(s) || isAlso(s)
	j.named = !isTraceback(s) && !isSyntax(s)
	switch f {
	case reportForm:
		if j.level == nil {
			j.level = reportLevel(s)
		}
		j.severe = isSevere(j.level)
		j.ahead(end)
	case rustForm, goForm:
		j.ahead(end)
	}
}

// ahead finds the end of a message of several lines, which only the lines behind it tell: the
// notes or the calls of Rust, the calls of Gin, the next report of Erlang.
func (j *Joiner) ahead(end int) {
	reach := farthest
	if j.form == goForm {
		reach = farthestCall // Gin prints the request before its error
	}
	for i := 0; j.message && i < reach; i++ {
		line, next := j.behind(end)
		at := next - len(line)
		switch {
		case len(line) == 0, text.LooksLikeObject(line), j.form == reportForm && at > end+2:
			return
		case j.isMessageEnd(line):
			if i > 0 {
				j.until, j.message = at, false
			}
			return
		case j.form == reportForm && (line[0] <= ' ' || line[0] == '*' || line[0] == '{'):
			return
		}
		if level := text.Level(j.times, line, false); i > 0 && level != nil && (j.form == reportForm || !isSevere(level)) {
			return
		}
		if _, own := text.Time(j.times, line); own || line[0] != ' ' && j.first(line, next) != none {
			return
		}
		end = next
	}
}

// isMessageEnd reports whether a line stands right behind the message of a trace.
func (j *Joiner) isMessageEnd(line []byte) bool {
	switch j.form {
	case rustForm:
		return isRustTail(line)
	case goForm:
		return isGinPlace(line)
	}
	return isReport(line)
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
	if j.block != noBlock {
		return j.takesBlock(line, at, end)
	}
	s := line[blanks:]
	if s[0] == '\x1b' || j.open() && bytes.IndexByte(s, '\x1b') >= 0 {
		if s = text.Uncoloured(s); len(bytes.TrimLeft(s, " \t\r")) == 0 {
			return true // the colour behind the record
		}
		if n := text.SkipBlanks(s, 0); n > 0 { // the colour of a call is before its blanks
			if s = s[n:]; isFrame(s) {
				blanks += n
			}
		}
	}
	switch c := line[0]; {
	case (c == '[' || c == '\x1b') && j.follows(at):
		return j.takesSecond(s)
	case j.quoted && s[0] == '"':
	case blanks > 0:
		return j.indented(line, s)
	case j.message && !j.blank:
		return j.takesMessage(line, s)
	case j.closer != 0 && s[0] == j.closer:
		j.opens(line)
		return true
	case !j.open():
		return false
	case !j.continues(s, end):
		return false
	}
	if _, own := text.Time(j.times, line); own {
		return false
	}
	j.quoted = false
	j.opens(line)
	return true
}

// takesSecond takes the line that the first one of the record announces.
func (j *Joiner) takesSecond(s []byte) bool {
	if j.level == nil {
		j.level = text.Level(j.times, s, false)
		j.severe = j.level != nil && isSevere(j.level)
	}
	return true
}

// indented reports whether an indented line belongs to the record.
func (j *Joiner) indented(line, s []byte) bool {
	trace := (j.form == none || !j.severe) && (isTraceback(s) || isSyntax(s))
	if text.IsPadded(line) || j.blank && isBadge(line) || mayEvent(line) && isEvent(line) || !j.severe && trace {
		return false
	}
	if _, own := text.Time(j.times, line); own {
		return false
	}
	j.message = false
	j.quoted = string(s) == "while executing" || string(s) == "invoked from within"
	call := j.quoted || isFrame(s)
	j.framed = j.framed || call
	j.thrown = j.thrown && !call
	if j.form == none && trace {
		j.enter(pythonForm, s, 0)
	}
	if c := closerOf(line); c != 0 && j.closer == 0 && call {
		j.closer = c
	}
	return true
}

// takesMessage reports whether the line right behind the first one of a trace is its message.
func (j *Joiner) takesMessage(line, s []byte) bool {
	if _, own := text.Time(j.times, line); own || j.form == reportForm && isReport(s) {
		return false
	}
	j.message = false
	if j.form == none { // of java.util.logging: its second line has the level
		j.level = text.Level(j.times, s, false)
		j.severe = isSevere(j.level)
	}
	j.opens(line)
	return true
}

// continues reports whether a line that is not indented belongs to the trace.
func (j *Joiner) continues(s []byte, end int) bool {
	if j.form == pythonForm && !j.named && j.isError(s) {
		j.named, j.chained = true, false
		return true
	}
	if f := j.first(s, end); f != none {
		return j.takesFirst(f, s, end)
	}
	switch {
	case j.form == pythonForm && string(s) == `"""`:
		return j.takesMarks(end)
	case isFrame(s), j.form != none && j.isGoCall(s, end):
		j.framed, j.thrown = true, false
	case j.isTail(s, end):
	case j.form == none && !j.framed && isThrown(s) && j.callsAhead(end):
		j.enter(thrownForm, s, end)
	case j.message && j.form != reportForm && text.Level(j.times, s, false) == nil:
		j.message = false
	case j.thrown && text.Level(j.times, s, false) == nil && j.callsAhead(end):
		return true // a message of several lines
	default:
		return false
	}
	j.chained = j.form == pythonForm && (wantsTraceback(s) || isChain(s))
	return true
}

// takesFirst reports whether the first line of a trace belongs to the record: it is its first
// trace, or another part of it.
func (j *Joiner) takesFirst(f form, s []byte, end int) bool {
	if f == goForm && j.form == goForm && string(j.level) == "error" && bytes.HasPrefix(s, []byte("fatal error: ")) {
		j.level = []byte("critical")
	}
	switch {
	case j.form == none && f != reportForm, j.chained, j.form == thrownForm && isAlso(s), j.form == nodeForm && f == thrownForm && j.blank:
		j.enter(f, s, end)
		return true
	case f != j.form:
		return false
	}
	return f == nativeForm || f == jvmForm || f == goForm && !bytes.HasPrefix(s, []byte("panic: ")) ||
		f == rustForm && bytes.HasPrefix(s, []byte("fatal runtime error: "))
}

// takesMarks reports whether quotation marks begin or end a traceback that is the text of an error.
func (j *Joiner) takesMarks(end int) bool {
	next, _ := j.behind(end)
	switch {
	case isTraceback(next):
		j.remote, j.chained = true, true
	case j.remote && j.named:
		j.remote = false
	default:
		return false
	}
	return true
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
	if len(line) > 0 {
		switch line[len(line)-1] {
		case '{':
			return '}'
		case '[':
			return ']'
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
		case isFrame(s):
			return true
		case len(s) == 0 && len(line) > 0: // Rails writes blanks around the message
			continue
		case len(s) == 0, text.LooksLikeObject(s), j.first(s, end) != none:
			return false
		}
		if _, own := text.Time(j.times, line); own || text.Level(j.times, line, false) != nil {
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
		if len(line) > 0 {
			break
		}
	}
	return line, next
}

// isBadge reports whether a line is indented by the blank around a level, as consola writes it
// between empty lines.
func isBadge(line []byte) bool {
	for _, word := range [...]string{" ERROR  ", " FATAL  ", " WARN  ", " INFO  "} {
		if bytes.HasPrefix(line, []byte(word)) {
			return true
		}
	}
	return false
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
	if end >= len(msg) {
		j.begin(0, len(msg), head, nil)
		return j.Level()
	}
	next, _ := j.Join(0, end, head, nil)
	for lines := 1; j.Level() == nil && next+1 < len(msg) && lines < MaxLines; lines++ {
		off := next + 1
		end = text.LineEnd(msg, off)
		var at text.Stamp
		at.Read(r, msg[off:end])
		j = New(msg, r)
		next, _ = j.Join(off, end, at.Rest, nil)
	}
	return j.Level()
}
