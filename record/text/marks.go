package text

import (
	"blobtail/record/times"
)

// longestMark is how many bytes the text in a bracket in front of a time may have.
const longestMark = 64

// nest is the mark of a logger that writes the month first.
const nest = "[Nest] &  - "

// marks are what loggers write in front of a time, with the blanks behind it.
var marks = table{
	'<': {
		{signs: "<&>1 ", line: "<34>1 2026-11-20T15:04:05Z web1 app - text"},
		{signs: "<&>&: ~: ", line: "<186>48: web-sw1: Nov 20 15:04:05.120: text"}, // Cisco
		{signs: "<&>~: ", line: "<189>45: *Nov 20 15:04:05.257: text"},
		{signs: "<&>_", line: "<34>Nov 20 15:04:05 web1 app: text"}, // syslog
	},
	'9': {
		{signs: "& <&>1 ", line: "86 <40>1 2026-11-20T15:04:05Z web1 app - text"}, // Heroku
		{signs: "& <&>_", line: "17 <13>Nov 20 15:04:05 web1 app: text"},
		{signs: "&: _", line: "45: Nov 20 15:04:05.257: text"},
		{signs: "&:^ ", line: "1:M 20 Nov 2026 15:04:05.123 * text"}, // Redis
	},
	'[': {
		{signs: nest, line: "[Nest] 812  - 11/20/2026, 3:04:05 PM     LOG text"},
		{signs: "[^ ;@", of: "DIWEC", line: "[E 15:04:05 web:2239] text"}, // Tornado, Jupyter
		{signs: "[^ ;9999", of: "DIWEC", line: "[E 261120 15:04:05 web:2239] text"},
		{signs: "[~:~,;9999-", line: "[ns_server:error,2026-11-20T15:04:05.257Z,ns_1@web1:<0.812.0>:x:y:1]text"}, // Couchbase
		{signs: "[*]_", line: "[24214] 2026/11/20 15:04:05.319440 [INF] text"},                                   // NATS, AWS Lambda
	},
	'(':         {{signs: "(*)_", line: "(812) 2026-11-20 15:04:05 text"}},
	'*':         {{signs: "?", line: "*Nov 20 15:04:05.257: text"}}, // Cisco, before its clock is set
	'.':         {{signs: ".", line: ".Nov 20 15:04:05.257: text"}},
	'#':         {{signs: "# Time: ", line: "# Time: 2026-11-20T15:04:05.257312Z"}},              // MySQL, its log of slow queries
	'=':         {{signs: "=*==== ", line: "=ERROR REPORT==== 20-Nov-2026::15:04:05"}},           // Erlang
	alone | ',': {{signs: "^, [", line: "I, [2026-11-20T15:04:05.123456 #812]  INFO -- : text"}}, // Ruby
	'^': {
		{signs: "$ _", line: "INFO  [main] 2026-11-20 15:04:05,123 text"}, // log4j, Cassandra
		{signs: "$\t_", line: "INFO\t2026-11-20 15:04:05,123 text"},
		{signs: "~: ;9999/99/99 @", line: "WEB: 2026/11/20 15:04:05 text"}, // a prefix of Go's log
		{signs: "$;[", line: "EROR[11-20|15:04:05.257] text"},              // go-ethereum
	},
	'~': {{signs: "~: ;9999/99/99 @", line: "web: 2026/11/20 15:04:05 text"}},                     // a prefix of Go's log
	't': {{signs: "type=~ msg=audit(", line: "type=SYSCALL msg=audit(1795187045.257:812): text"}}, // auditd
	'n': {{signs: "node=~ type=~ msg=audit(", line: "node=web1 type=SYSCALL msg=audit(1795187045.257:812): text"}},
}

// marked finds a time behind marks in front of it. Behind them is the level, or they say it.
func (t *Stamp) marked(r *times.Reader, line []byte, at int) bool {
	const mostMarks = 5
	for i := range mostMarks {
		if at >= len(line) || i > 0 && line[at]-'a' < 26 { // a name comes first
			break
		}
		f, n, _ := marks.find(line[at:])
		if n == 0 {
			break
		}
		at += n
		place := SkipColours(line, at)
		if place < len(line) && line[place] == '[' {
			place++
		}
		other := r
		if f.signs == nest || f.signs[0] == '$' && len(line) > place+2 && line[place+2] == '-' { // of vLLM
			short := *r
			short.MonthFirst, short.MonthDay = true, f.signs != nest
			other = &short
		}
		if t.at(other, line, place, false) {
			if line[0] != '<' && line[0] != '=' && formLevel(line, false) == nil && Level(r, line[:place], false) == nil {
				t.Rest = line[place+len(t.Text):]
			}
			return true
		}
	}
	return false
}
