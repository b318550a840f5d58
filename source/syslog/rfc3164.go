package syslog

import "bytes"

const (
	// longestTag and longestPrefix bound names, so that a text with a colon far behind is
	// not taken for one.
	longestTag    = 64
	longestPrefix = 64
	// mostPrefixes is how many names with colons may stand in front of a time.
	mostPrefixes = 3
)

// rfc3164 reads all behind the priority in the form of most devices: time, host, tag and
// text. RFC 3164 describes the forms of its time, and requires nothing.
//
//	Nov 20 15:04:05 web1 sshd[812]: text
//	2026-11-20T15:04:05.123+01:00 web1 sshd[812]: text   rsyslog, syslog-ng
//	Nov 20 15:04:05 filterlog[12]: text                  pfSense
//	45: rtr1: *Nov 20 15:04:05.123 UTC: %SYS-5-X: text   Cisco IOS
//	45: xr1 RP/0/CPU0:Nov 20 15:04:05 : ifmgr[2]: text   Cisco IOS XR
//	: 2026 Nov 20 15:04:05 UTC: %SYS-5-X: text           Cisco Nexus
//	Nov 20 2026 15:04:05 asa1 : %ASA-6-302013: text      Cisco ASA
func (p *parser) rfc3164(b []byte, m *message) bool {
	b = bytes.TrimLeft(b, " ")
	ns, n := p.stamp(b)
	for i := 0; n == 0; i++ {
		at := bytes.IndexByte(b[:min(len(b), longestPrefix)], ':')
		if i == mostPrefixes || at < 0 || !p.prefix(b[:at], m) {
			return false
		}
		b = bytes.TrimLeft(b[at+1:], " ")
		ns, n = p.stamp(b)
	}
	m.time, m.stamp = ns, b[:n]
	rest := b[n:]
	before := len(rest)
	rest = bytes.TrimLeft(rest, " ")
	switch {
	case len(rest) > 0 && rest[0] == ':':
		rest = bytes.TrimLeft(rest[1:], " ") // the host, if any, came before the time
	case before == len(rest) && before > 0:
		return false // a time within a word
	default:
		rest = hostOf(rest, m)
	}
	if name, pid, n := tagOf(rest); n > 0 {
		m.app, m.procID, rest = name, pid, afterSpace(rest[n:])
	}
	m.msgID = mnemonic(rest)
	m.msg = rest
	return true
}

// prefix reads a name in front of a time: a sequence number, the host, then a part of it.
// IOS XR has the host and the part in one.
func (p *parser) prefix(name []byte, m *message) bool {
	if at := bytes.IndexByte(name, ' '); at > 0 && bytes.IndexByte(name[at:], '/') > 0 {
		return p.prefix(name[:at], m) && p.prefix(name[at+1:], m)
	}
	for _, c := range name {
		if !isLetter(c) && !isDigit(c) && c != '.' && c != '-' && c != '_' && c != '/' {
			return false
		}
	}
	switch {
	case len(name) == 0:
	case allDigits(name):
		m.sequence = name
	case bytes.IndexByte(name, '/') < 0 && m.host == nil:
		m.host = name
	default:
		m.node = name
	}
	return true
}

// hostOf cuts off the host, if there is one. A line without a priority may be of a log that
// is no syslog. It has a host only if a tag follows.
func hostOf(b []byte, m *message) (rest []byte) {
	if bytes.HasPrefix(b, []byte("last message repeated ")) || bytes.HasPrefix(b, []byte("message repeated ")) {
		return b
	}
	if _, _, n := tagOf(b); n > 0 {
		return b
	}
	host, rest, _ := word(b)
	if len(rest) == 0 || !isHost(host) {
		return b
	}
	rest = bytes.TrimLeft(rest, " ")
	if m.priority < 0 {
		if _, _, n := tagOf(rest); n == 0 {
			return b
		}
	}
	m.host = value(bytes.TrimSuffix(host, []byte(":")))
	if bytes.HasPrefix(rest, []byte(": ")) {
		rest = rest[2:]
	}
	return rest
}

// isHost reports whether a word may be a name or an address.
func isHost(word []byte) bool {
	for _, c := range word {
		if !isLetter(c) && !isDigit(c) && c < 0x80 && !isHostByte(c) {
			return false
		}
	}
	return len(word) > 0 && word[0] != '%'
}

func isHostByte(c byte) bool {
	switch c {
	case '.', '_', '-', ':', '/', '@', '%', '[', ']':
		return true
	}
	return false
}

// tagOf reads the tag that b begins with: name: or name[id]: or name[id]. n is its length,
// with its colon; 0 if there is none. A name that the text follows without a colon is no
// tag: each first word of a sentence would make a service.
func tagOf(b []byte) (name, id []byte, n int) {
	letters := false
	for n < len(b) && n < longestTag && isTagByte(b[n]) {
		letters = letters || isLetter(b[n]) || b[n] >= 0x80
		n++
	}
	if !letters || n == len(b) || b[0] == '%' || bytes.HasPrefix(b, []byte("*%")) {
		return nil, nil, 0
	}
	name = b[:n]
	if b[n] == '[' {
		end := bytes.IndexByte(b[n:min(len(b), n+longestTag)], ']')
		if end < 2 {
			return nil, nil, 0
		}
		id = b[n+1 : n+end]
		n += end + 1
	}
	switch {
	case n < len(b) && b[n] == ':' && (n+1 == len(b) || b[n+1] == ' ' || id != nil):
		return name, id, n + 1
	case id != nil && (n == len(b) || b[n] == ' '):
		return name, id, n
	}
	return nil, nil, 0
}

func isTagByte(c byte) bool {
	switch c {
	case ':', '[', ']', '"', '=', '<', '>', ',', ';', '|', '{', '}', 0x7f:
		return false
	}
	return c > ' '
}

// mnemonic returns the name of a message of Cisco's devices: SYS-5-CONFIG_I of
// "%SYS-5-CONFIG_I: text". Wireless controllers write a * in front of it.
func mnemonic(b []byte) []byte {
	b = bytes.TrimPrefix(b, []byte("*"))
	if len(b) < 2 || b[0] != '%' {
		return nil
	}
	end := bytes.IndexByte(b[:min(len(b), longestTag)], ':')
	if end < 0 {
		return nil
	}
	name := bytes.TrimRight(b[1:end], " ")
	dashes := 0
	for _, c := range name {
		if !isLetter(c) && !isDigit(c) && c != '-' && c != '_' {
			return nil
		}
		if c == '-' {
			dashes++
		}
	}
	if dashes < 2 {
		return nil
	}
	return name
}
