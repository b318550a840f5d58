package trace

import (
	"bytes"

	"blobtail/record/text"
)

// A form is that of a stack trace: it decides the lines that continue it.
type form uint16

const (
	pythonForm form = 1 << iota // Python, Nim
	goForm
	rustForm
	phpForm
	nodeForm   // the source line that Node.js prints before the error
	thrownForm // an exception with its calls: Java, .NET, JavaScript, Ruby, Dart, Elixir and others
	nativeForm // C, C++, Swift, Zig, OCaml, and the sanitizers
	jvmForm    // the report of a JVM that crashed
	reportForm // a report of Erlang
	anyForm    = reportForm<<1 - 1
)

// starts are beginnings of the first lines of traces, by their first letter in first.
var starts = [...]struct {
	begin string
	form  form
}{
	{"Traceback (most recent call last)", pythonForm}, {"Fatal Python error: ", pythonForm}, {"Exception ignored in", pythonForm},
	{`Exception in thread "`, thrownForm}, {"Exception in thread ", pythonForm}, {"Execution error (", thrownForm},
	{"Uncaught Kotlin exception: ", thrownForm}, {"Uncaught (in promise)", thrownForm}, {"Uncaught exception", thrownForm},
	{"error: Uncaught ", thrownForm}, {"Unhandled exception. ", thrownForm}, {"Unhandled exception: ", thrownForm}, {"Unhandled Exception: ", thrownForm},
	{"Unhandled exception at ", thrownForm}, {"Unhandled exception in ", thrownForm}, {"UnhandledPromiseRejection", thrownForm},
	{"Process terminated. ", thrownForm}, {"Stack overflow.", thrownForm}, {"Also:   ", thrownForm},
	{"panic: ", goForm}, {"fatal error: ", goForm}, {"unexpected fault address ", goForm}, {"runtime: goroutine stack exceeds ", goForm},
	{"http: panic serving ", goForm}, {"fatal runtime error: ", rustForm},
	{"PHP Fatal error: ", phpForm}, {"PHP Parse error: ", phpForm}, {"Fatal error: Uncaught ", phpForm}, {"Fatal error: ", nativeForm},
	{"terminate called ", nativeForm}, {"libc++abi: terminating ", nativeForm}, {"*** Terminating app due to ", nativeForm},
	{"*** stack smashing detected ***", nativeForm}, {"Segmentation fault", nativeForm}, {"** (", thrownForm},
}

// first returns the form of the trace that a line begins, none if it begins none. The line ends
// at end. Most lines are decided by their first bytes.
func (j *Joiner) first(s []byte, end int) form {
	if len(s) < 4 {
		if string(s) == "#" {
			if next, _ := j.behind(end); isCrash(next) {
				return jvmForm
			}
		}
		return none
	}
	if text.MayStart(s) {
		if f := known(s); f != none {
			return f
		}
	}
	switch c := s[0]; {
	case isNamed(c):
		if isQualified(s) {
			return thrownForm
		}
		if c == 'S' && bytes.HasPrefix(s, []byte("SIG")) {
			if next, _ := j.behind(end); bytes.HasPrefix(next, []byte("PC=")) {
				return goForm
			}
		}
	case c == '=':
		if isReport(s) {
			return reportForm
		}
		next := s
		if s[len(s)-1] == '=' {
			next, _ = j.behind(end)
		}
		if isSanitizer(next) {
			return nativeForm
		}
	case c == '+' && isTraceback(s):
		return pythonForm
	case c == '#' && isCrash(s):
		return jvmForm
	case c >= 0x80 && bytes.HasPrefix(s, []byte("╭")) && isTraceback(s):
		return pythonForm
	}
	switch last := s[len(s)-1]; {
	case text.IsDigit(last) && j.isSource(s, end):
		return nodeForm
	case last == ':' && bytes.HasSuffix(s, []byte("panic recovered:")):
		return goForm
	case last == ':' && isRaised(s) && j.rubyAhead(end):
		return thrownForm
	case last == ' ' && j.remoteAhead(s, end):
		return pythonForm
	case last == ')' && isRuby(s) && bytes.Contains(s, []byte(": ")), j.traced(s, end):
		return thrownForm
	case end+2 < len(j.body) && j.body[end+1] == '\t' && j.isGoFunction(s, end):
		return goForm
	}
	return none
}

// known returns the form of the trace that a line begins with words that are always the same.
func known(s []byte) form {
	for i := range starts {
		if bytes.HasPrefix(s, []byte(starts[i].begin)) {
			return starts[i].form
		}
	}
	switch {
	case text.IsPanic(s):
		return rustForm
	case isGoroutine(s):
		return goForm
	case isUncaught(s):
		return thrownForm
	case isZigPanic(s):
		return nativeForm
	}
	return none
}

// traced reports whether the line behind the one that ends at end says that this one begins a
// trace, as in Lua, Haskell, Julia and R.
func (j *Joiner) traced(s []byte, end int) bool {
	if end+2 >= len(j.body) {
		return false
	}
	switch c := j.body[end+1]; c {
	case 's', 'S', 'C', 'E', '\r', '\n':
		next, _ := j.behind(end)
		switch string(next) {
		case "stack traceback:", "CallStack (from HasCallStack):", "Stacktrace:":
			return true
		}
		return bytes.HasPrefix(s, []byte("Error")) && (bytes.HasPrefix(next, []byte("Calls: ")) || string(next) == "Execution halted")
	}
	return false
}

// wantsMessage reports whether the message of a trace is on the line behind its first one.
func wantsMessage(f form, s []byte) bool {
	switch f {
	case rustForm:
		return s[len(s)-1] == ':' || bytes.Contains(s, []byte(" panicked at '")) && !isPlace(s)
	case goForm:
		return bytes.HasSuffix(s, []byte("panic recovered:"))
	case reportForm:
		return true
	case thrownForm:
		return string(s) == "Uncaught exception:" || string(s) == "Unhandled exception:" || bytes.HasPrefix(s, []byte("Execution error ("))
	}
	return false
}

// A tail is a beginning of lines that continue traces of some forms and are not indented.
type tail struct {
	begin string
	whole bool // it is the whole line
	in    form
	bare  bool // also behind a line of level error that began no trace
	named bool // the name of an exception follows, with its package
}

var tails = [...]tail{
	{begin: "Caused by: ", in: anyForm, bare: true}, {begin: "Caused: ", in: anyForm, bare: true, named: true}, {begin: "Suppressed: ", in: anyForm, bare: true}, {begin: "Wrapped by: ", in: anyForm, bare: true},
	{begin: "Caused by:", whole: true, in: anyForm, bare: true}, {begin: "Location:", whole: true, in: anyForm, bare: true},
	{begin: "Stack backtrace:", whole: true, in: anyForm, bare: true}, {begin: "stack backtrace:", whole: true, in: anyForm, bare: true},
	{begin: "Stack trace:", whole: true, in: anyForm, bare: true}, {begin: "stack traceback:", whole: true, in: anyForm, bare: true},
	{begin: "CallStack (from HasCallStack):", whole: true, in: anyForm, bare: true}, {begin: "HasCallStack backtrace:", whole: true, in: anyForm, bare: true},
	{begin: "Stacktrace:", whole: true, in: anyForm, bare: true}, {begin: "error stack:", whole: true, in: anyForm, bare: true}, {begin: "PHP Stack trace:", whole: true, in: phpForm},
	{begin: "PHP   ", in: phpForm}, {begin: "Next ", in: phpForm},
	{begin: "--- End of stack trace", in: anyForm, bare: true}, {begin: "--- End of inner ", in: anyForm, bare: true}, {begin: "--- End of managed ", in: anyForm, bare: true}, {begin: "---> ", in: anyForm, bare: true},
	{begin: "During handling of the above exception, another exception occurred:", whole: true, in: pythonForm},
	{begin: "The above exception was the direct cause of the following exception:", whole: true, in: pythonForm},
	{begin: "Current thread 0x", in: pythonForm}, {begin: "Thread 0x", in: pythonForm}, {begin: "Python runtime state: ", in: pythonForm},
	{begin: "Extension modules: ", in: pythonForm}, {begin: "(Background on this error at: ", in: pythonForm}, {begin: "│", in: pythonForm}, {begin: "╰", in: pythonForm}, {begin: "╭", in: pythonForm},
	{begin: "[signal SIG", in: goForm}, {begin: "[originating from goroutine ", in: goForm}, {begin: "PC=0x", in: goForm}, {begin: "runtime: ", in: goForm}, {begin: "runtime stack:", whole: true, in: goForm},
	{begin: "...additional frames elided...", whole: true, in: goForm}, {begin: "#", in: jvmForm}, {begin: "** ", in: thrownForm},
	{begin: "** ", in: reportForm}, {begin: "ClientConnectionId:", in: thrownForm}, {begin: "Error Number:", in: thrownForm},
	{begin: "note: run with `RUST_BACKTRACE", in: rustForm}, {begin: "note: Some details are omitted", in: rustForm}, {begin: "note: we would appreciate a bug report", in: rustForm},
	{begin: "thread panicked while processing panic", in: rustForm}, {begin: "thread caused non-unwinding panic. aborting.", whole: true, in: rustForm}, {begin: "fatal runtime error: ", in: rustForm},
	{begin: "Node.js v", in: nodeForm | thrownForm}, {begin: "(Use `node --trace-", in: nodeForm | thrownForm}, {begin: "<asynchronous suspension>", whole: true, in: thrownForm},
	{begin: "Last message: ", in: thrownForm}, {begin: "Last message (from ", in: thrownForm}, {begin: "State: ", in: thrownForm}, {begin: "Initial Call: ", in: thrownForm}, {begin: "Ancestors: ", in: thrownForm}, {begin: "Function: ", in: thrownForm},
	{begin: "in expression starting at ", in: anyForm, bare: true}, {begin: "Full report at:", whole: true, in: thrownForm},
	{begin: "Aborted", in: nativeForm}, {begin: "Abort trap", in: nativeForm}, {begin: "libc++abi: ", in: nativeForm}, {begin: "*** ", in: nativeForm}, {begin: "Thread ", in: nativeForm}, {begin: "Segmentation fault", in: nativeForm},
	{begin: "Execution halted", whole: true, in: anyForm, bare: true},
	{begin: "READ of size ", in: nativeForm}, {begin: "WRITE of size ", in: nativeForm}, {begin: "freed by thread ", in: nativeForm}, {begin: "previously allocated by ", in: nativeForm}, {begin: "allocated by thread ", in: nativeForm}, {begin: "0x", in: nativeForm}, {begin: "=>0x", in: nativeForm}, {begin: "SUMMARY: ", in: nativeForm}, {begin: "Shadow byte", in: nativeForm}, {begin: "Address 0x", in: nativeForm}, {begin: "Direct leak of ", in: nativeForm}, {begin: "Indirect leak of ", in: nativeForm}, {begin: "HINT: ", in: nativeForm}, {begin: "==", in: nativeForm},
	{begin: "Current stack trace:", whole: true, in: nativeForm}, {begin: "(", whole: true, in: nativeForm}, {begin: "Registers:", whole: true, in: nativeForm}, {begin: "Images (", in: nativeForm},
	{begin: "Error in process <", in: reportForm}, {begin: "{", in: reportForm}, {begin: "[{", in: reportForm},
}

// isTail reports whether a line that is no call continues the trace. It ends at end.
func (j *Joiner) isTail(s []byte, end int) bool {
	for i := range tails {
		t := &tails[i]
		if s[0] != t.begin[0] || t.in&j.form == 0 && (j.form != none || !t.bare) || !bytes.HasPrefix(s, []byte(t.begin)) {
			continue
		}
		if (!t.whole || len(s) == len(t.begin)) && (!t.named || isPackaged(s[len(t.begin):])) {
			return true
		}
	}
	if bytes.HasPrefix(s, []byte("Calls: ")) { // of R
		next, _ := j.behind(end)
		return string(next) == "Execution halted"
	}
	switch j.form {
	case goForm:
		return isExit(s) || isRegister(s) || isElidedGo(s)
	case phpForm:
		return bytes.HasPrefix(s, []byte("thrown in ")) && bytes.Contains(s, []byte(" on line "))
	case nativeForm:
		return text.IsDigit(s[0]) && (bytes.Contains(s, []byte(" 0x")) || bytes.Contains(s, []byte(" [inlined] ")))
	case nodeForm:
		// The error stands behind the source and an empty line.
		ok := j.blank && (isThrown(s) || s[0] == '[' || bytes.HasPrefix(s, []byte("Thrown at:")))
		j.thrown = j.thrown || ok
		return ok
	case pythonForm:
		return bytes.Contains(s, []byte(".nim(")) || text.IsWord(s, 0) && !bytes.ContainsAny(s, " :=") && j.callsOf(end)
	}
	return false
}

// callsOf reports whether an indented line with the reason for a field follows, as behind the
// field's name in an error of Pydantic.
func (j *Joiner) callsOf(end int) bool {
	next, _ := j.behind(end)
	return len(next) > 2 && next[0] == ' ' && bytes.Contains(next, []byte("type="))
}

func isTraceback(s []byte) bool {
	return bytes.Contains(s, []byte("Traceback (most recent call last)"))
}

// wantsTraceback reports whether a traceback of Python follows the line.
func wantsTraceback(s []byte) bool {
	return bytes.HasPrefix(s, []byte("Exception in thread ")) || bytes.HasPrefix(s, []byte("Exception ignored in"))
}

// rubyAhead reports whether a call of Ruby is on the next line that is not blank.
func (j *Joiner) rubyAhead(end int) bool {
	for range farthest {
		line, next := j.behind(end)
		if len(line) == 0 {
			return false
		}
		if s := bytes.TrimSpace(line); len(s) > 0 {
			return isRubyCall(s)
		}
		end = next
	}
	return false
}

// remoteAhead reports whether a line is an error with the traceback of another process as its text,
// between quotation marks.
func (j *Joiner) remoteAhead(s []byte, end int) bool {
	if len(s) < 3 || s[len(s)-2] != ':' || end+3 >= len(j.body) || j.body[end+1] != '"' {
		return false
	}
	next, end := j.behind(end)
	if string(next) != `"""` {
		return false
	}
	next, _ = j.behind(end)
	return isTraceback(next)
}

// isChain reports whether a line of Python leads to another traceback.
func isChain(s []byte) bool {
	return bytes.HasPrefix(s, []byte("During handling of the above")) || bytes.HasPrefix(s, []byte("The above exception was"))
}

// isRustTail reports whether a line stands right behind the message of a panic.
func isRustTail(s []byte) bool {
	return bytes.HasPrefix(s, []byte("note: run with `RUST_BACKTRACE")) || string(s) == "stack backtrace:" || string(s) == "thread caused non-unwinding panic. aborting."
}

// isUncaught reports whether a line says that nothing caught an exception or a value.
func isUncaught(s []byte) bool {
	if string(s) == "Unhandled exception:" || string(s) == "Uncaught exception:" {
		return true
	}
	rest, ok := bytes.CutPrefix(s, []byte("Uncaught "))
	return ok && (isThrown(rest) || len(rest) > 0 && (rest[0] == '\'' || rest[0] == '"' || rest[0] == '#'))
}

// isQualified reports whether a line begins with the full name of a class of exceptions, and has
// nothing but its message behind it.
func isQualified(s []byte) bool {
	n := 0
	for n < len(s) && isNamed(s[n]) {
		n++
	}
	return n > 0 && s[0] != '.' && (s[n-1] == 'r' || s[n-1] == 'n' || s[n-1] == 'e') && bytes.IndexByte(s[:n], '.') > 0 && isThrown(s)
}

func isNamed(c byte) bool {
	return text.IsDigit(c) || (c|0x20)-'a' < 26 || c == '.' || c == '_' || c == '$'
}

// isThrown reports whether a line is the name of an exception, perhaps with its code, and behind
// a colon its message.
func isThrown(s []byte) bool {
	n := 0
	for n < len(s) && isNamed(s[n]) {
		n++
	}
	name, rest := s[:n], s[n:]
	if n < len("Error") || name[n-1] != 'r' && name[n-1] != 'n' && name[n-1] != 'e' || text.IsDigit(name[0]) || !bytes.HasSuffix(name, []byte("Error")) && !bytes.HasSuffix(name, []byte("Exception")) && !bytes.HasSuffix(name, []byte("Throwable")) {
		return false
	}
	if len(rest) > 2 && rest[0] == ' ' && (rest[1] == '[' || rest[1] == '(') {
		end := bytes.IndexAny(rest, "])")
		if end < 0 {
			return false
		}
		rest = rest[end+1:]
	}
	return len(rest) == 0 || rest[0] == ':'
}

// isError reports whether a line is the last one of a Python traceback, such as "ValueError: no"
// or "app.errors.missing".
func (j *Joiner) isError(s []byte) bool {
	name, _, _ := bytes.Cut(s, []byte(":"))
	upper := false
	for _, c := range name {
		if !isNamed(c) || c == '$' {
			return false
		}
		upper = upper || c-'A' < 26 || c == '.'
	}
	if !upper || text.IsDigit(name[0]) {
		return false
	}
	level := text.Level(j.times, s, false)
	return level == nil || isSevere(level) || len(name) > len("Warning") && bytes.HasSuffix(name, []byte("Warning"))
}

// isGoroutine reports whether a line begins the calls of a goroutine: goroutine 1 [running]:
func isGoroutine(s []byte) bool {
	rest, ok := bytes.CutPrefix(s, []byte("goroutine "))
	return ok && len(rest) > 0 && text.IsDigit(rest[0]) && bytes.HasSuffix(rest, []byte("]:")) && bytes.IndexByte(rest, '[') > 0
}

// isGoCall reports whether a line is a function in a trace of Go: its place is on the next line,
// behind a tab.
func (j *Joiner) isGoCall(s []byte, end int) bool {
	if last := s[len(s)-1]; last != ')' && s[0] != 'c' {
		return false
	}
	next, _ := j.behind(end)
	if len(next) < 2 || next[0] != '\t' || bytes.IndexByte(next, ':') < 0 {
		return false
	}
	if name, ok := bytes.CutPrefix(s, []byte("created by ")); ok {
		name, _, _ = bytes.Cut(name, []byte(" in goroutine "))
		return bytes.IndexByte(name, '.') > 0 && bytes.IndexByte(name, ' ') < 0
	}
	return s[len(s)-1] == ')' && bytes.IndexByte(s, '(') > 0
}

// isGoFunction reports whether a line is a function of Go without its arguments, as zap and others
// write it above the file and the line.
func (j *Joiner) isGoFunction(s []byte, end int) bool {
	for _, c := range s {
		if !isNamed(c) && c < 0x80 && bytes.IndexByte([]byte("/*()[]-~%"), c) < 0 {
			return false
		}
	}
	next, _ := j.behind(end)
	return len(next) > 1 && bytes.IndexByte(s, '.') > 0 && bytes.IndexByte(next, ' ') < 0 && isGoFile(next[1:])
}

// zapAhead reports whether the calls of Go follow a line of zap, which has tabs between its parts.
// Its development configuration writes them from warn on.
func (j *Joiner) zapAhead(line []byte) bool {
	const longestTime = 48
	if bytes.IndexByte(line[:min(len(line), longestTime)], '\t') < 1 || j.end+2 >= len(j.body) || !isNamed(j.body[j.end+1]) {
		return false
	}
	s, end := j.behind(j.end)
	return len(s) > 0 && end+2 < len(j.body) && j.body[end+1] == '\t' && j.isGoFunction(s, end)
}

// isElidedGo reports whether a line counts the calls that Go has left out.
func isElidedGo(s []byte) bool {
	n, ok := bytes.CutPrefix(s, []byte("..."))
	if !ok {
		return false
	}
	n, ok = bytes.CutSuffix(n, []byte(" frames elided..."))
	return ok && text.AllDigits(n)
}

// isExit reports whether a line is the last one that go run prints: exit status 2
func isExit(s []byte) bool {
	n, ok := bytes.CutPrefix(s, []byte("exit status "))
	return ok && text.AllDigits(n)
}

// isRegister reports whether a line is a register and its value, as Go prints them at a signal.
func isRegister(s []byte) bool {
	n := bytes.IndexByte(s, ' ')
	return n > 1 && n < 8 && bytes.HasPrefix(bytes.TrimLeft(s[n:], " "), []byte("0x"))
}

// isSanitizer reports whether a line begins a report of a sanitizer: ==17==ERROR: AddressSanitizer
func isSanitizer(s []byte) bool {
	rest, ok := bytes.CutPrefix(s, []byte("=="))
	if !ok {
		return false
	}
	n := bytes.Index(rest, []byte("==ERROR: "))
	return n > 0 && text.AllDigits(rest[:n])
}

// isZigPanic reports whether a line begins a panic of Zig: thread 17 panic: no
func isZigPanic(s []byte) bool {
	rest, ok := bytes.CutPrefix(s, []byte("thread "))
	n := bytes.Index(rest, []byte(" panic: "))
	return ok && n > 0 && text.AllDigits(rest[:n])
}

// isCrash reports whether a line is the first or second one of the report of a JVM that crashed.
func isCrash(s []byte) bool {
	return bytes.HasPrefix(s, []byte("# A fatal error has been detected by the Java Runtime")) ||
		bytes.HasPrefix(s, []byte("# There is insufficient memory for the Java Runtime"))
}

// isSource reports whether a line is the place of the source that Node.js prints before an error:
// /app/x.js:5, then lines of the source. The last of them has the mark ^.
func (j *Joiner) isSource(s []byte, end int) bool {
	n := len(s) - 1
	for n > 0 && text.IsDigit(s[n]) {
		n--
	}
	if n < 1 || s[n] != ':' || bytes.IndexByte(s, ' ') >= 0 || !bytes.ContainsAny(s[:n], "/\\") {
		return false
	}
	for range farthest {
		var line []byte
		line, end = j.behind(end)
		if len(line) == 0 || line[0] > ' ' {
			return false
		}
		if mark := bytes.TrimRight(line, "\r"); len(mark) > 0 && len(bytes.Trim(mark, " \t^")) == 0 && mark[len(mark)-1] == '^' {
			return true
		}
	}
	return false
}

// isJUL reports whether a line is the first one of java.util.logging: Nov 20, 2026 11:00:00 AM
// com.x.Y method. The next one is its level and message.
func (j *Joiner) isJUL(s []byte, end int) bool {
	if len(s) < 24 || s[0]-'A' >= 26 || s[3] != ' ' || !text.IsCalendar(s[:3]) {
		return false
	}
	clock := bytes.Index(s[:24], []byte(":"))
	if clock < 0 || bytes.IndexByte(s[:clock], ',') < 0 {
		return false
	}
	next, _ := j.behind(end)
	word, _, ok := bytes.Cut(next, []byte(":"))
	switch string(word) {
	case "SEVERE", "WARNING", "INFO", "CONFIG", "FINE", "FINER", "FINEST":
		return ok
	}
	return false
}

// isReport reports whether a line is the head of a report of Erlang: =ERROR REPORT==== 20-Nov-2026
func isReport(s []byte) bool {
	n := 1
	for n < len(s) && s[n]-'A' < 26 {
		n++
	}
	return n > 1 && s[0] == '=' && bytes.HasPrefix(s[n:], []byte(" REPORT==== "))
}

// reportLevel returns the level of a report of Erlang.
func reportLevel(s []byte) []byte {
	switch word, _, _ := bytes.Cut(s[1:], []byte(" ")); string(word) {
	case "EMERGENCY", "ALERT", "CRITICAL":
		return []byte("critical")
	case "WARNING":
		return []byte("warn")
	case "INFO", "PROGRESS", "NOTICE":
		return []byte("info")
	case "DEBUG":
		return []byte("debug")
	}
	return []byte("error")
}
