package text

import "bytes"

// prefixes are what programs write in front of each line of another program, and what some loggers
// write in front of a time. A line is read as it is without its prefix: its time, its level, its JSON,
// and the lines that belong to it.
var prefixes = table{
	'~': {
		{signs: "~ _| ", line: "web-1  | text"},                // docker compose, overmind, a service of Swarm
		{signs: "~ _│ ", line: "web          │ text"},          // Tilt
		{signs: "! ~ ", line: "web-7d4b9c6f5d-x2x9z web text"}, // stern
	},
	'h': { // load balancers of AWS
		{signs: "http ;9", line: "http 2026-11-20T10:00:06.257312Z text"},
		{signs: "https ;9", line: "https 2026-11-20T10:00:06.257312Z text"},
		{signs: "h2 ;9", line: "h2 2026-11-20T10:00:06.257312Z text"},
	},
	'g': {{signs: "grpcs ;9", line: "grpcs 2026-11-20T10:00:06.257312Z text"}},
	'w': {
		{signs: "ws ;9", line: "ws 2026-11-20T10:00:06.257312Z text"},
		{signs: "wss ;9", line: "wss 2026-11-20T10:00:06.257312Z text"},
	},
	't': {{signs: "tls &.& ;9", line: "tls 2.0 2026-11-20T10:00:06 text"}},
	'9': {
		{signs: "@ ~ _| ", line: "10:00:06 web.1  | text"},                      // foreman, honcho
		{signs: "&|~ _| ", line: "0|app  | text"},                               // pm2
		{signs: "&/RP&/~:", line: "0/RP0/ADMIN0:Nov 20 10:00:06.257 CET: text"}, // Cisco IOS XR
	},
	'R': {{signs: "RP/&/~:", line: "RP/0/RP0/CPU0:Nov 20 10:00:06.257 CET: text"}},
	'L': {
		{signs: "LC/&/~:", line: "LC/0/1/CPU0:Nov 20 10:00:06.257 CET: text"},
		{signs: "L ;9", line: "L 11/20/2026 - 10:00:06: text"}, // Source engine
	},
	'[': {
		{signs: "[pod/~] ", line: "[pod/web-0/web] text"}, // kubectl logs --prefix
		{signs: "[rank&]: ", line: "[rank0]: text"},       // torchrun
		{signs: "[rank&]:", line: "[rank0]:[E1120 10:00:06.257312 X.cpp:42] text"},
	},
	'(': {
		{signs: "(* pid=&) ", line: "(EngineCore_0 pid=812) text"},               // vLLM, Ray
		{signs: "(* pid=&, ip=~) ", line: "(Worker pid=812, ip=192.0.2.7) text"}, // Ray
	},
	'#': {{signs: "####<", line: "####<Nov 20, 2026 10:00:06 AM UTC> <Error> text"}}, // WebLogic
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
	s := line[at:min(len(line), at+longestPrefix)]
	if s[0] != '\x1b' && !mayPrefix(s) {
		return at
	}
	n, name := prefixOf(s)
	if levelMark(name) != noLevel {
		return at
	}
	return at + n
}

// prefixOf is the length of the prefix of a line, with the name in it.
func prefixOf(s []byte) (n int, name []byte) {
	f, n, name := prefixes.find(s)
	if f == nil && !IsDigit(s[0]) { // names begin with other bytes too
		_, n, name = prefixes.of('~', s)
	}
	return n, name
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
	next := s[min(SkipBlanks(s, n), len(s)-1)]
	if n < 6 && IsDigit(next) {
		switch string(s[:n]) { // those of load balancers of AWS, and of the Source engine
		case "http", "https", "h2", "grpcs", "ws", "wss", "tls", "L":
			return true
		}
	}
	return next == '|' || next == 0xe2 || s[2] == '/' || n > 6 && s[n-6] == '-' && isPod(s[:n])
}
