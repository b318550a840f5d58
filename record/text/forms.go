package text

import "bytes"

// starts are the forms of lines that begin with a letter or a sign that is their level.
var starts = table{
	alone | '9': {
		{signs: "^9999 @", of: "IWEF", line: "I1120 10:00:06.257312   812 x.cc:7] text"},         // glog, klog, Abseil
		{signs: "^999999 @", of: "IWEF", line: "I261120 10:00:06.257312 812 1@x.go:7 text"},      // CockroachDB
		{signs: "^99999999 @", of: "IWEF", line: "I20261120 10:00:06.257312   812 x.cc:7] text"}, // glog since 0.5
	},
	alone | ' ': {
		{signs: "^ (&) ~:", of: "VDIWE", line: "E (2312) esp-tls: text"}, // ESP-IDF
		{signs: "^ (@) ~:", of: "VDIWE", line: "E (10:00:06.257) esp-tls: text"},
	},
	alone | '/': {{signs: "^/*(_&):", of: "VDIWEF", line: "E/Shop    ( 1234): text"}},                          // Android, logcat -v brief
	alone | ',': {{signs: "^, [9", of: "DIWEF", line: "E, [2026-11-20T10:00:06.257312 #812] ERROR -- : text"}}, // Ruby
	'[': {
		{signs: "[^9999 @", of: "IWEF", line: "[E1120 10:00:06.257312 X.cpp:42] text"}, // PyTorch
		{signs: "[^ ~:&] ", of: "IWEF", line: "[W TensorImpl.h:1156] text"},            // PyTorch up to 2.2
		{signs: "[@][^][", of: "VDIWE", line: "[10:00:06][W][modbus:521]: text"},       // ESPHome
		{signs: "[@][C][", level: "config", line: "[10:00:06][C][logger:185]: text"},
		{signs: "[@][VV][", level: "verbose", line: "[10:00:06][VV][sensor:093]: text"},
		{signs: "[^][~:&", of: "VDIWE", line: "[W][modbus:521]: text"},
		{signs: "[C][~:&", level: "config", line: "[C][logger:185]: text"},
		{signs: "[_&][^][~:&", of: "VDIWE", line: "[  2312][E][WiFi.cpp:123] begin(): text"}, // Arduino on ESP32
		{signs: "[@ ^] ", of: "VDIWEF", line: "[10:00:06 E] text"},                           // Serilog
		{signs: "[^ @", of: "DIWEC", line: "[W 10:00:06.257 NotebookApp] text"},              // Tornado, Jupyter
		{signs: "[^ 9999", of: "DIWEC", line: "[E 261120 10:00:06 web:2239] text"},
		{signs: "[~:+,9999-", line: "[ns_server:error,2026-11-20T10:00:06.257Z,ns_1@web1:<0.812.0>:x:y:1]text"}, // Couchbase
	},
	'9': { // MySQL, Redis
		{signs: "& [System] [MY-", level: "info", line: "0 [System] [MY-010116] [Server] text"},
		{signs: "&:^ & ~ & @ # ", level: "warn", line: "1:M 20 Nov 2026 10:00:06.257 # text"},
		{signs: "&:^ & ~ & @ . ", level: "debug", line: "1:M 20 Nov 2026 10:00:06.257 . text"},
		{signs: "&:^ & ~ & @ - ", level: "debug", line: "1:M 20 Nov 2026 10:00:06.257 - text"},
		{signs: "&:^ & ~ & @ ? ", of: "*", level: "info", line: "1:M 20 Nov 2026 10:00:06.257 * text"},
	},
}

// behinds are the forms of lines in which a letter, or a word, is the level right behind the time.
var behinds = table{
	alone | '/': {{signs: "^/*(_&):", of: "VDIWEF", line: "11-20 10:00:06.257 E/Shop    ( 1234): text"}},
	'9': {
		{signs: "& _& ^ *:", of: "VDIWEF", line: "11-20 10:00:06.257  1234  5678 E Shop    : text"},                         // Android
		{signs: "& _& _& ^ *:", of: "VDIWEF", line: "11-20 10:00:06.257 10123  1234  5678 W Shop    : text"},                // with users
		{signs: "& [System] [MY-", level: "info", line: "2026-11-20T10:00:06.257312Z 0 [System] [MY-010116] [Server] text"}, // MySQL
	},
	'~': {{signs: "~ _& _& ^ *:", of: "VDIWEF", line: "11-20 10:00:06.257 u0_a123  1234  5678 W Shop    : text"}},
	':': {{signs: ": ^ ~:&] ", of: "IWEF", line: "2026-11-20 10:00:06.257312: W tensorflow/x.cc:42] text"}}, // TensorFlow, XLA
	alone | ' ': { // MongoDB up to 4.2
		{signs: "^ _~  _[", of: "DIWEF", line: "2026-11-20T10:00:06.257+0000 I  NETWORK  [x] text"},
		{signs: "^  $ [", of: "DIWEF", line: "2026-11-20T10:00:06.257+0000 I  SHARDING [x] text"},
	},
	alone | '9': {
		{signs: "^9 _~  _[", of: "D", line: "2026-11-20T10:00:06.257+0000 D1 REPL     [x] text"},
		{signs: "^9 $ [", of: "D", line: "2026-11-20T10:00:06.257+0000 D2 SHARDING [x] text"},
	},
	',': { // Azure App Service, PostgreSQL
		{signs: ",+,", line: "2026-11-20T10:00:06,Error,shop,text"},
		{signs: ",%+,", line: `2026-11-20 10:00:06.257 UTC,"alice","shop",812,"[local]",6561e,1,"",,3/5,0,ERROR,42P01,"text"`},
	},
	']': {{signs: "] +/~: ", line: "[2026-11-20 10:00:06 +0000] critical/ApiListener: text"}},                  // Icinga 2
	'[': {{signs: "[^:", of: "VIWEF", line: "2026-11-20 10:00:06.257312841 [W:onnxruntime:, x.cc:42 f] text"}}, // ONNX Runtime
	'P': {{signs: "PID[&] +", of: "CEWIV", line: "2026-11-20T10:00:06  PID[3096] Error       text"}},           // Azure App Service
}

// formLevel returns the level of a line in one of the forms.
func formLevel(line []byte, timed bool) []byte {
	t := &starts
	if timed {
		t, line = &behinds, line[SkipBlanks(line, 0):]
	}
	f, _, word := t.find(line)
	if f != nil && f.level != "" {
		return []byte(f.level)
	}
	return word
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
