package text

import (
	"bytes"
)

// prefixes are what programs write in front of each line of another program, and what some loggers
// write in front of a time. A line is read as it is without its prefix: its time, its level, its JSON,
// and the lines that belong to it. [fit] has the signs of a form.
var prefixes = [...]struct{ form, line string }{
	{"~ _| ", "web-1  | text"},                // docker compose, overmind, a service of Swarm
	{"~ _│ ", "web          │ text"},          // Tilt
	{"@ ~ _| ", "10:00:06 web.1  | text"},     // foreman, honcho
	{"&|~ _| ", "0|app  | text"},              // pm2
	{"[pod/~] ", "[pod/web-0/web] text"},      // kubectl logs --prefix
	{"! ~ ", "web-7d4b9c6f5d-x2x9z web text"}, // stern
	{"[rank&]: ", "[rank0]: text"},            // torchrun
	{"[rank&]:", "[rank0]:[E1120 10:00:06.257312 X.cpp:42] text"},
	{"(* pid=&) ", "(EngineCore_0 pid=812) text"},               // vLLM, Ray
	{"(* pid=&, ip=~) ", "(Worker pid=812, ip=192.0.2.7) text"}, // Ray
	{"RP/&/~:", "RP/0/RP0/CPU0:Nov 20 10:00:06.257 CET: text"},  // Cisco IOS XR
	{"LC/&/~:", "LC/0/1/CPU0:Nov 20 10:00:06.257 CET: text"},
	{"&/RP&/~:", "0/RP0/ADMIN0:Nov 20 10:00:06.257 CET: text"},
	{"http >", "http 2026-11-20T10:00:06.257312Z text"}, // load balancers of AWS
	{"https >", "https 2026-11-20T10:00:06.257312Z text"},
	{"h2 >", "h2 2026-11-20T10:00:06.257312Z text"},
	{"grpcs >", "grpcs 2026-11-20T10:00:06.257312Z text"},
	{"ws >", "ws 2026-11-20T10:00:06.257312Z text"},
	{"wss >", "wss 2026-11-20T10:00:06.257312Z text"},
	{"tls &.& >", "tls 2.0 2026-11-20T10:00:06 text"},
	{"####<", "####<Nov 20, 2026 10:00:06 AM UTC> <Error> text"}, // WebLogic
	{"L >", "L 11/20/2026 - 10:00:06: text"},                     // Source engine
}

// longestPrefix is how many bytes a prefix may have: the names of a pod and of a container are
// long.
const longestPrefix = 400

// SkipPrefix skips the prefix of a line, and returns the place behind it; at if there is none.
func SkipPrefix(line []byte, at int) int {
	if len(line) < at+4 {
		return at
	}
	switch first, second, third := line[at], line[at+1], line[at+2]; {
	case IsDigit(second) && (first == '[' || IsDigit(third)), first-'A' < 26 && second-'A' < 26 && third-'A' < 26: // most times, and levels
		return at
	}
	return at + prefixOf(line[at:])
}

// prefixOf is the length of the prefix of a line of four bytes or more.
func prefixOf(s []byte) int {
	code := 0
	if s[0] != '\x1b' && !mayPrefix(s) {
		return 0
	}
	if s = s[:min(len(s), longestPrefix)]; s[0] == '\x1b' {
		code = skipCodes(s, 0)
	}
	if code == len(s) {
		return 0
	}
	for i := range prefixes {
		form := prefixes[i].form
		if c := s[code]; c != form[0] && (form[0] > '@' || form[0] == '(' || form[0] == '#') && (form[0] != '~' || IsDigit(c)) {
			continue
		}
		if n, name, _ := fit(form, s); n > 0 && levelMark(name) == noLevel {
			return n
		}
	}
	return 0
}

// mayPrefix reports whether the first word of a line may be a prefix. It spares nearly all lines the
// search.
func mayPrefix(s []byte) bool {
	c := s[0]
	if (c|0x20)-'a' >= 26 {
		return c == '(' || c == '#' || c == '[' && (s[1] == 'p' || s[1] == 'r') ||
			IsDigit(c) && (!IsDigit(s[1]) || s[2] == ':' || s[2] == '|')
	}
	n := bytes.IndexByte(s, ' ')
	if n < 1 || n+2 >= len(s) {
		return s[2] == '/'
	}
	at := n + 1
	for at+1 < len(s) && s[at] == ' ' {
		at++
	}
	if n < 6 && IsDigit(s[at]) {
		switch string(s[:n]) { // those of load balancers of AWS, and of the Source engine
		case "http", "https", "h2", "grpcs", "ws", "wss", "tls", "L":
			return true
		}
	}
	return s[at] == '|' || s[at] == 0xe2 || s[2] == '/' || n > 6 && s[n-6] == '-' && isPod(s[:n])
}
