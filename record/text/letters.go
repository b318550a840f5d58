package text

import (
	"bytes"
	"strings"
)

// letters are the forms of lines in which a letter is the level: at their beginning or, if timed, right
// behind their time. of are the letters that the form may have. A form with a level has that, and one
// without letters and level has the level as a word behind it, in any case. [fit] has the signs.
var letters = [...]struct {
	form, of, level string
	timed           bool
	line            string
}{
	{"^9999 @", "IWEF", "", false, "I1120 10:00:06.257312   812 x.cc:7] text"},              // glog, klog
	{"^999999 @", "IWEF", "", false, "I261120 10:00:06.257312 812 1@x.go:7 text"},           // CockroachDB
	{"^99999999 @", "IWEF", "", false, "I20261120 10:00:06.257312   812 x.cc:7] text"},      // glog since 0.5
	{"^0000 00:00:", "IWEF", "", false, "E0000 00:00:1795168806.257312   812 x.cc:7] text"}, // Abseil before its start
	{"[^9999 @", "IWEF", "", false, "[E1120 10:00:06.257312 X.cpp:42] text"},                // PyTorch
	{"[^ ~:&] ", "IWEF", "", false, "[W TensorImpl.h:1156] text"},                           // PyTorch up to 2.2
	{"^ (&) ~:", "VDIWE", "", false, "E (2312) esp-tls: text"},                              // ESP-IDF
	{"^ (@) ~:", "VDIWE", "", false, "E (10:00:06.257) esp-tls: text"},
	{"[@][^][", "VDIWE", "", false, "[10:00:06][W][modbus:521]: text"}, // ESPHome
	{"[@][C][", "", "config", false, "[10:00:06][C][logger:185]: text"},
	{"[@][VV][", "", "verbose", false, "[10:00:06][VV][sensor:093]: text"},
	{"[^][~:&", "VDIWE", "", false, "[W][modbus:521]: text"},
	{"[C][~:&", "", "config", false, "[C][logger:185]: text"},
	{"[_&][^][~:&", "VDIWE", "", false, "[  2312][E][WiFi.cpp:123] begin(): text"}, // Arduino on ESP32
	{"[@ ^] ", "VDIWEF", "", false, "[10:00:06 E] text"},                           // Serilog
	{"^/*(_&):", "VDIWEF", "", false, "E/Shop    ( 1234): text"},                   // Android, logcat -v brief
	{"_^/*(_&):", "VDIWEF", "", true, "11-20 10:00:06.257 E/Shop    ( 1234): text"},
	{"_& _& ^ *:", "VDIWEF", "", true, "11-20 10:00:06.257  1234  5678 E Shop    : text"},          // Android
	{"_~ _& _& ^ *:", "VDIWEF", "", true, "11-20 10:00:06.257 10123  1234  5678 W Shop    : text"}, // Android, with users
	{": ^ ~:&] ", "IWEF", "", true, "2026-11-20 10:00:06.257312: W tensorflow/x.cc:42] text"},      // TensorFlow, XLA
	{" ^ _~  _[", "DIWEF", "", true, "2026-11-20T10:00:06.257+0000 I  NETWORK  [x] text"},          // MongoDB up to 4.2
	{" ^9 _~  _[", "D", "", true, "2026-11-20T10:00:06.257+0000 D1 REPL     [x] text"},
	{" ^  SHARDING [", "DIWEF", "", true, "2026-11-20T10:00:06.257+0000 I  SHARDING [x] text"},
	{" ^9 SHARDING [", "D", "", true, "2026-11-20T10:00:06.257+0000 D2 SHARDING [x] text"},
	{" ^  ELECTION [", "DIWEF", "", true, "2026-11-20T10:00:06.257+0000 I  ELECTION [x] text"},
	{" ^  INITSYNC [", "DIWEF", "", true, "2026-11-20T10:00:06.257+0000 I  INITSYNC [x] text"},
	{" ^  RECOVERY [", "DIWEF", "", true, "2026-11-20T10:00:06.257+0000 I  RECOVERY [x] text"},
	{" ^  ROLLBACK [", "DIWEF", "", true, "2026-11-20T10:00:06.257+0000 I  ROLLBACK [x] text"},
	{" [^:", "VIWEF", "", true, "2026-11-20 10:00:06.257312841 [W:onnxruntime:, x.cc:42 f] text"}, // ONNX Runtime
	{"_PID[&] ", "", "", true, "2026-11-20T10:00:06  PID[3096] Error       text"},                 // Azure App Service
}

// formLevel returns the level of a line in one of the forms of letters.
func formLevel(line []byte, timed bool) []byte {
	if !mayLetter(line, timed) {
		return nil
	}
	return letterOf(line, timed)
}

// letterOf is formLevel for a line that may have such a form.
func letterOf(line []byte, timed bool) []byte {
	line = line[:min(len(line), Reach)]
	for i := range letters {
		f := &letters[i]
		if f.timed != timed {
			continue
		}
		switch n, _, letter := fit(f.form, line); {
		case n == 0:
		case f.level != "":
			return []byte(f.level)
		case letter == nil:
			if word, _, _ := bytes.Cut(line[n:], []byte(" ")); levelMark(word) != noLevel && word[0]-'A' < 26 {
				return word
			}
		case strings.IndexByte(f.of, letter[0]) >= 0:
			return letter
		}
	}
	return nil
}

// tagged returns the level of a line of logfmt or of klog behind the host and the tag of syslog:
// web1 dockerd[812]: time="2026-11-20T10:00:00Z" level=error msg=x
func tagged(rest []byte) []byte {
	at := bytes.Index(rest[:min(len(rest), Reach)], []byte(": "))
	if at < 1 || rest[at-1] != ']' && !IsNameByte(rest[at-1]) {
		return nil
	}
	if word, ok := logfmtLevel(rest[at+2:]); ok {
		return word
	}
	return formLevel(rest[at+2:], false)
}

// mayLetter reports whether a line may have one of the forms of letters, by its first bytes.
func mayLetter(line []byte, timed bool) bool {
	at := 0
	if timed {
		at = SkipBlanks(line, 0)
	}
	if at+4 >= len(line) {
		return false
	}
	switch c, next := line[at], line[at+1]; {
	case c == '[':
		return next == ' ' || next-'A' < 26 || IsDigit(next) && !timed && line[min(at+5, len(line)-1)] != '-'
	case c-'A' < 26:
		return next == ' ' || next == '/' || IsDigit(next) || c == 'P' && next == 'I'
	default:
		return timed && (IsDigit(c) || c == ':' && next == ' ' && line[at+3] == ' ' || at > 1 && (c|0x20)-'a' < 26)
	}
}

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
	for n < len(line) && IsDigit(line[n]) {
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

// isTornado reports whether a line begins as that of Tornado and Jupyter does, with a letter and a
// time in one bracket: [E 2026-11-20 10:00:00.257 ServerApp], [I 261120 10:00:00 web:2239],
// [W 10:00:00 App].
func isTornado(line []byte) bool {
	const least = len("[E 10:00:00 a]")
	return len(line) > least && line[0] == '[' && line[2] == ' ' && (isClock(line[3:5], line[5:]) || AllDigits(line[3:7])) && bytes.IndexByte([]byte("DIWEC"), line[1]) >= 0
}
