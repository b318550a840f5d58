package body

import "bytes"

// headLetter returns the level that a letter or a sign says in the heads of Ruby's Logger
// ("E, [2026-11-20T10:00:00 #7] ERROR -- : x") and of Redis ("1:M 20 Nov 2026 10:00:00.257 # x").
func headLetter(line []byte) []byte {
	if len(line) > 4 && string(line[1:4]) == ", [" && bytes.IndexByte([]byte("DIWEF"), line[0]) >= 0 {
		return line[:1]
	}
	if isTornado(line) {
		return line[1:2]
	}
	n := 0
	for n < len(line) && isDigit(line[n]) {
		n++
	}
	const stamp = "20 Nov 2026 10:00:00.257"
	if n == 0 || len(line) < n+len(":M ")+len(stamp)+len(" # ") || line[n] != ':' || bytes.IndexByte([]byte("MSCX"), line[n+1]) < 0 || line[n+2] != ' ' {
		return nil
	}
	line = line[n+len(":M "):]
	if mark := line[len(stamp):]; isClock(line[12:14], line[14:]) && mark[0] == ' ' && mark[2] == ' ' {
		switch mark[1] {
		case '.', '-':
			return []byte("debug")
		case '*':
			return []byte("info")
		case '#':
			return []byte("warn")
		}
	}
	return nil
}

// androidLetter returns the level in a line of Android's logcat, behind its time or without one:
// "E/Tag( 1234): x", "11-20 10:00:00.257  1234  5678 E Tag: x".
func androidLetter(line []byte, timed bool) []byte {
	at := skipBlanks(line, 0)
	if at+4 >= len(line) {
		return nil
	}
	if timed && isDigit(line[at]) {
		for range 2 {
			from := at
			for at < len(line) && isDigit(line[at]) {
				at++
			}
			if from == at {
				return nil
			}
			at = skipBlanks(line, at)
		}
		if at+3 < len(line) && line[at+1] == ' ' && isAndroid(line[at]) && bytes.IndexByte(line[at+2:min(len(line), at+longestMark)], ':') > 0 {
			return line[at : at+1]
		}
		return nil
	}
	if line[at+1] != '/' || !isAndroid(line[at]) {
		return nil
	}
	tag := line[at+2 : min(len(line), at+longestMark)]
	end, open := bytes.Index(tag, []byte("):")), bytes.IndexByte(tag, '(')
	if open < 1 || end <= open || !allDigits(bytes.TrimLeft(tag[open+1:end], " ")) {
		return nil
	}
	return line[at : at+1]
}

// isAndroid reports whether a letter is a level of Android.
func isAndroid(c byte) bool {
	switch c {
	case 'V', 'D', 'I', 'W', 'E', 'F':
		return true
	}
	return false
}

// isTornado reports whether a line begins as that of Tornado and Jupyter does, with a letter and a
// time in one bracket: [E 2026-11-20 10:00:00.257 ServerApp], [I 261120 10:00:00 web:2239],
// [W 10:00:00 App].
func isTornado(line []byte) bool {
	const least = len("[E 10:00:00 a]")
	return len(line) > least && line[0] == '[' && line[2] == ' ' && (isClock(line[3:5], line[5:]) || allDigits(line[3:7])) && bytes.IndexByte([]byte("DIWEC"), line[1]) >= 0
}

// isGlog reports whether a line begins as I1120 15:04:05 does.
func isGlog(line []byte) bool {
	const least = len("I1120 15:04:05")
	return len(line) > least && bytes.IndexByte([]byte("IWEF"), line[0]) >= 0 && allDigits(line[1:5]) && line[5] == ' ' && isClock(line[6:8], line[8:])
}
