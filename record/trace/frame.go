package trace

import (
	"bytes"

	"blobtail/record/text"
)

// isFrame reports whether a line, without its indentation, has the whole form of a call in a stack
// trace.
func isFrame(s []byte) bool {
	if len(s) < 5 {
		return false
	}
	switch s[0] {
	case 'a':
		if call, ok := bytes.CutPrefix(s, []byte("at ")); ok {
			return isCall(bytes.TrimLeft(call, " "))
		}
	case 'F', '>':
		return isPythonFrame(s)
	case '#':
		return isNumbered(s)
	case '.':
		return isElided(s)
	case 'C', 'R':
		if isOCaml(s) {
			return true
		}
	case '@':
		return s[1] == ' ' && isPlace(s[2:])
	case '[':
		if bytes.HasPrefix(s, []byte("[C]: in ")) {
			return true
		}
	}
	if text.IsDigit(s[0]) && isClickHouse(s) {
		return true
	}
	if n := bytes.IndexByte(s, ':'); n > 0 && n+1 < len(s) && text.IsDigit(s[n+1]) && (isRuby(s) || isLua(s) || isZig(s)) {
		return true
	}
	return isGoPlace(s) || isPerl(s)
}

// isCall reports whether the text behind "at" is a call: of Java pkg.Class.method(File.java:12), of
// JavaScript fn (file.js:1:2) or file.js:1:2, of .NET Type.Method(String x) in file:line 3.
func isCall(c []byte) bool {
	c = bytes.TrimSuffix(c, []byte(" {"))
	if bytes.HasPrefix(c, []byte("<ScriptBlock>")) || string(c) == "<anonymous>" {
		return true
	}
	open, closed := bytes.IndexByte(c, '('), bytes.LastIndexByte(c, ')')
	if open < 0 || closed < open {
		return isPlace(c) && bytes.Count(c, []byte(":")) > 1 && bytes.IndexByte(c, ' ') < 0 || bytes.HasPrefix(c, []byte("async ")) && isPlace(c)
	}
	name, in, after := c[:open], c[open+1:closed], c[closed+1:]
	if len(after) > 0 && !bytes.HasPrefix(after, []byte(" in ")) && !bytes.HasPrefix(after, []byte(" [")) && !bytes.HasPrefix(after, []byte(" ~[")) && after[0] != ',' {
		return false
	}
	switch {
	case isPlace(in):
		return true
	case len(name) > 0 && name[len(name)-1] == ' ':
		return string(in) == "<anonymous>" || string(in) == "native" || bytes.HasPrefix(in, []byte("index ")) || bytes.HasPrefix(in, []byte("eval at ")) || bytes.HasPrefix(after, []byte(" [0x"))
	}
	return bytes.IndexByte(name, ' ') < 0 && (bytes.IndexByte(name, '.') > 0 || bytes.HasPrefix(name, []byte("lambda_method")))
}

// isPlace reports whether a text is a file and the number of a line: app/x.js:5 or node:fs:601:3
func isPlace(s []byte) bool {
	n := len(s)
	for n > 0 && text.IsDigit(s[n-1]) {
		n--
	}
	return n > 1 && n < len(s) && s[n-1] == ':' && (bytes.ContainsAny(s[:n], "./\\<") || bytes.HasPrefix(s, []byte("node:")))
}

// isPythonFrame reports whether a line is a place of Python: File "x.py", line 3, in f
func isPythonFrame(s []byte) bool {
	s = bytes.TrimPrefix(s, []byte("> "))
	if !bytes.HasPrefix(s, []byte(`File "`)) {
		return false
	}
	n := bytes.Index(s, []byte(`", line `))
	at := n + len(`", line `)
	if n < 0 || at >= len(s) || !text.IsDigit(s[at]) {
		return false
	}
	for at < len(s) && text.IsDigit(s[at]) {
		at++
	}
	return at == len(s) || s[at] == ',' || s[at] == '.' || s[at] == ')' || bytes.HasPrefix(s[at:], []byte(" in "))
}

// isSyntax reports whether a line is the place of an error of Python's syntax, which no line goes
// before: File "x.py", line 3
func isSyntax(s []byte) bool {
	if !bytes.HasPrefix(s, []byte(`File "`)) {
		return false
	}
	_, line, ok := bytes.Cut(s, []byte(`", line `))
	return ok && text.AllDigits(line)
}

// isNumbered reports whether a line is a call with its number: of PHP, Dart, gdb, a sanitizer.
func isNumbered(s []byte) bool {
	n := 1
	for n < len(s) && text.IsDigit(s[n]) {
		n++
	}
	if n == 1 || n == len(s) || s[n] != ' ' {
		return false
	}
	call := bytes.TrimLeft(s[n:], " ")
	return string(call) == "{main}" || bytes.HasPrefix(call, []byte("[internal function]: ")) || bytes.HasPrefix(call, []byte("0x")) ||
		bytes.Contains(call, []byte("): ")) || bytes.HasSuffix(call, []byte(")")) && isPlace(call[:len(call)-1]) ||
		bytes.Contains(call, []byte(" (")) && isPlace(call)
}

// isElided reports whether a line says how many calls are left out: ... 12 more
func isElided(s []byte) bool {
	n, ok := bytes.CutPrefix(s, []byte("... "))
	if !ok {
		return false
	}
	n, rest, _ := bytes.Cut(n, []byte(" "))
	return text.AllDigits(n) && (string(rest) == "more" || bytes.HasPrefix(rest, []byte("common frames ")) || bytes.HasPrefix(rest, []byte("lines matching ")) || bytes.HasPrefix(rest, []byte("levels")))
}

// isOCaml reports whether a line is a call of OCaml: Called from M.f in file "x.ml", line 1
func isOCaml(s []byte) bool {
	return (bytes.HasPrefix(s, []byte("Called from ")) || bytes.HasPrefix(s, []byte("Raised ")) || bytes.HasPrefix(s, []byte("Re-raised at "))) &&
		bytes.Contains(s, []byte(`file "`)) && bytes.Contains(s, []byte(`, line `))
}

// isRuby reports whether a line is a place of Ruby or Crystal: from x.rb:3:in 'f', x.cr:3:1 in 'f'
func isRuby(s []byte) bool {
	s = bytes.TrimPrefix(s, []byte("from "))
	n := bytes.IndexByte(s, ':')
	if n < 1 || bytes.IndexByte(s[:n], ' ') >= 0 || n+1 >= len(s) || !text.IsDigit(s[n+1]) {
		return false
	}
	for n++; n < len(s) && (text.IsDigit(s[n]) || s[n] == ':'); n++ {
	}
	rest, ok := bytes.CutPrefix(bytes.TrimLeft(s[n:], " "), []byte("in "))
	return ok && len(rest) > 1 && (rest[0] == '\'' || rest[0] == '`')
}

// isLua reports whether a line is a call of Lua: x.lua:1: in function 'f'
func isLua(s []byte) bool {
	n := bytes.Index(s, []byte(": in "))
	if n < 3 || !text.IsDigit(s[n-1]) || bytes.IndexByte(s[:n], ' ') >= 0 {
		return false
	}
	rest := s[n+len(": in "):]
	return bytes.HasPrefix(rest, []byte("function ")) || bytes.HasPrefix(rest, []byte("main chunk")) || bytes.HasPrefix(rest, []byte("local ")) ||
		bytes.HasPrefix(rest, []byte("upvalue ")) || bytes.HasPrefix(rest, []byte("method ")) || bytes.HasPrefix(rest, []byte("field "))
}

// isZig reports whether a line is a call of Zig: /app/x.zig:5:5: 0x1234 in main (x)
func isZig(s []byte) bool {
	n := bytes.Index(s, []byte(": 0x"))
	return n > 3 && isPlace(s[:n]) && bytes.IndexByte(s[:n], ' ') < 0 && bytes.Contains(s[n:], []byte(" in "))
}

// isPerl reports whether a line is a call of Perl: main::f(1) called at x.pl line 9
func isPerl(s []byte) bool {
	if last := s[len(s)-1]; !text.IsDigit(last) && last != '.' {
		return false
	}
	n := bytes.Index(s, []byte(" called at "))
	at := bytes.LastIndex(s, []byte(" line "))
	return n > 0 && at > n && at+len(" line ") < len(s) && text.IsDigit(s[at+len(" line ")])
}

// isGoPlace reports whether a line is the place of a call of Go: /app/main.go:8 +0x1d
func isGoPlace(s []byte) bool {
	if s[len(s)-1] == ')' {
		return isGinPlace(s)
	}
	n := bytes.LastIndexByte(s, ' ')
	return n > 0 && bytes.HasPrefix(s[n:], []byte(" +0x")) && isPlace(s[:n])
}

// isGinPlace reports whether a line is a place as Gin writes it: shop/main.go:30 (0x6e2c1)
func isGinPlace(s []byte) bool {
	if len(s) < 10 || s[len(s)-1] != ')' {
		return false
	}
	n := bytes.LastIndexByte(s, ' ')
	return n > 0 && bytes.HasPrefix(s[n:], []byte(" (0x")) && bytes.IndexByte(s[:n], ' ') < 0 && isPlace(s[:n])
}

// isGoFile reports whether a text is a file of Go and a line in it: /app/main.go:8
func isGoFile(s []byte) bool {
	n := bytes.LastIndexByte(s, ':')
	return n > 3 && text.AllDigits(s[n+1:]) && bytes.HasSuffix(s[:n], []byte(".go"))
}

// isClickHouse reports whether a line is a call of ClickHouse: 0. DB::f(int) @ 0x0c8a in /usr/bin/clickhouse
func isClickHouse(s []byte) bool {
	n, call, ok := bytes.Cut(s, []byte(". "))
	return ok && text.AllDigits(n) && (bytes.Contains(call, []byte(" @ 0x")) || bytes.HasPrefix(call, []byte("inlined from ")) ||
		bytes.HasPrefix(call, []byte("0x")) || bytes.Contains(call, []byte(") [0x")))
}

// announces reports whether a line of any level says that the lines behind it are its stack trace, as
// ClickHouse does.
func announces(line []byte) bool {
	return line[len(line)-1] == ':' && (bytes.HasSuffix(line, []byte(", Stack trace:")) ||
		bytes.HasSuffix(line, []byte(", Stack trace (when copying this message, always include the lines below):")))
}

// isAlso reports whether a line of Jenkins names an exception that belongs to the next one.
func isAlso(s []byte) bool {
	name, ok := bytes.CutPrefix(s, []byte("Also:   "))
	return ok && isPackaged(name)
}

// isPackaged reports whether a text begins with a name that has a dot, as an exception of Java has.
func isPackaged(s []byte) bool {
	name, _, _ := bytes.Cut(s, []byte(" "))
	return bytes.IndexByte(name, '.') > 0
}
