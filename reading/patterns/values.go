package patterns

import "bytes"

// number masks a run that begins with a digit, with its unit.
func (m *masker) number() {
	if m.edge() && m.host(m.i) {
		return
	}
	m.i += m.uuid(m.i)
	m.alnum()
	m.wild()
}

// alnum skips letters and digits.
func (m *masker) alnum() {
	for m.i < len(m.in) && m.in[m.i] < 0x80 && (class(m.in[m.i]) == letter || class(m.in[m.i]) == digit) {
		m.i++
	}
}

// uuid is the length of the UUID at i, or 0.
func (m *masker) uuid(i int) int {
	const length = 36
	if len(m.in)-i < length || m.in[i+8] != '-' || m.in[i+13] != '-' || m.in[i+18] != '-' || m.in[i+23] != '-' {
		return 0
	}
	for n, c := range m.in[i : i+length] {
		if n != 8 && n != 13 && n != 18 && n != 23 && !isHex(c) {
			return 0
		}
	}
	return length
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

// run masks a run that begins with a letter.
func (m *masker) run() {
	from, digits, hex := m.i, 0, true
	i := from
	for ; i < len(m.in); i++ {
		k := class(m.in[i])
		if k == digit {
			digits++
		} else if k != letter {
			break
		}
		hex = hex && isHex(m.in[i])
	}
	n := i - from
	next := byte(0)
	if i < len(m.in) {
		next = m.in[i]
	}
	switch {
	case hex && n == 8 && m.uuid(from) > 0:
		m.i += m.uuid(from)
		m.wild()
	case hex && n == 2 && next == ':' && m.mac(from):
		m.i += 17
		m.wild()
	case (next == '.' || next == '@' || next == '-') && m.edge() && m.host(from):
	case next == ':' && m.address(from, n):
	case digits == 0 && n == 3 && m.date(from):
	case digits == 0 && hex && n >= 8, digits > 0 && hex && n >= 6,
		hex && n <= 4 && m.afterWild(next):
		m.i = i
		m.wild()
	case digits == 0 || m.edge() && known(m.in[from:i]):
		m.copy(n)
	default:
		m.parts(from, i)
	}
}

// afterWild reports whether hex letters are a part of an address, as in fe80::1:abcd.
func (m *masker) afterWild(next byte) bool {
	n := len(m.out)
	return n > m.word+1 && m.out[n-2] == wild && m.out[n-1] == ':' && (next == ':' || next == '-')
}

// parts masks the digits of a name, as in storage442, or all of it if letters and digits alternate as
// they do in identifiers.
func (m *masker) parts(from, end int) {
	turns, digits := 0, 0
	for i := from + 1; i < end; i++ {
		if class(m.in[i]) != class(m.in[i-1]) {
			turns++
		}
		if class(m.in[i]) == digit {
			digits++
		}
	}
	if turns > 3 || turns > 1 && end-from >= 8 && digits > 2 {
		m.i = end
		m.wild()
		return
	}
	for m.i < end {
		if class(m.in[m.i]) != digit {
			m.copy(1)
			continue
		}
		for m.i < end && class(m.in[m.i]) == digit {
			m.i++
		}
		m.wild()
	}
}

// known reports whether a word with digits is a name. Behind a sign that joins names it is a part of
// another one, as in R12-M0-L1-U18.
func known(w []byte) bool {
	if len(w) > 7 {
		return false
	}
	switch string(bytes.ToLower(w)) {
	case "ssh2", "jk2", "ipv4", "ipv6", "sha1", "sha256", "sha512", "md5", "http2", "h2", "utf8", "log4j", "slf4j", "base64", "x86", "s3", "ec2", "k8s",
		"i18n", "l10n", "oauth2", "x509", "p2p", "ext2", "ext3", "ext4", "amd64", "arm64", "win32", "win64", "int32", "int64", "uint32", "uint64", "float64",
		"db2", "mp3", "mp4", "v1", "v2", "v3", "bzip2", "l1", "l2", "l3":
		return true
	}
	return false
}

// mac reports whether six pairs of hex digits are at i.
func (m *masker) mac(i int) bool {
	if len(m.in)-i < 17 {
		return false
	}
	for n, c := range m.in[i : i+17] {
		if n%3 == 2 && c != ':' || n%3 != 2 && !isHex(c) {
			return false
		}
	}
	return true
}

// host masks the name of a host, or an address of e-mail, by the last part of its name.
func (m *masker) host(from int) bool {
	i, dot, at := from, -1, false
	for ; i < len(m.in); i++ {
		switch c := m.in[i]; {
		case c == '.':
			dot = i
		case c == '@' && !at:
			at = true
		case c >= 0x80, c != '-' && c != '_' && class(c) != letter && class(c) != digit:
			goto end
		}
	}
end:
	for i > from && (m.in[i-1] == '.' || m.in[i-1] == '-') {
		if i--; i == dot {
			dot = bytes.LastIndexByte(m.in[from:i], '.') + from
		}
	}
	if dot <= from {
		return false
	}
	if i+1 < len(m.in) && m.in[i] == '/' && !at && (class(m.in[i+1]) == letter || m.in[i+1] == '.') { // registry.example.org/image
		m.i, _ = m.extent(i)
		m.wild()
		return true
	}
	if !topLevel(m.in[dot+1 : i]) {
		return false
	}
	m.i = i
	m.wild()
	return true
}

// topLevel reports whether a word ends the names of hosts.
func topLevel(w []byte) bool {
	switch string(w) {
	case "com", "net", "org", "edu", "gov", "mil", "int", "io", "dev", "app", "info", "biz", "local", "internal", "lan", "localdomain", "arpa", "cloud", "test", "example",
		"us", "uk", "de", "fr", "it", "es", "nl", "be", "ch", "at", "se", "no", "dk", "fi", "pl", "cz", "ru", "ua", "eu", "ca", "mx", "br", "ar", "cl", "co", "au", "nz", "jp", "cn", "hk", "tw", "kr", "in", "id", "sg", "th", "vn", "my", "ph", "tr", "gr", "ro", "hu", "pt", "ie", "il", "za", "om", "pe":
		return true
	}
	return false
}

// address masks the rest of a URL behind its scheme, and a path of Windows.
func (m *masker) address(from, n int) bool {
	rest := m.in[from+n:]
	switch {
	case bytes.HasPrefix(rest, []byte("://")) && len(rest) > 3 && class(rest[3]) != blank:
		m.copy(n + 3)
		m.i, _ = m.extent(m.i)
		m.out = append(m.out, wild)
		return true
	case n == 1 && len(rest) > 1 && rest[1] == '\\' && m.edge():
		m.i, _ = m.extent(from)
		m.wild()
		return true
	}
	return false
}

// date masks a day of the week or a month, if a date goes on behind it.
func (m *masker) date(from int) bool {
	rest := m.in[from+3:]
	if len(rest) < 3 {
		return false
	}
	name := string(m.in[from : from+3])
	switch name {
	case "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun":
		rest = bytes.TrimLeft(rest, " ,")
		if len(rest) < 3 || !isMonth(string(rest[:3])) && class(rest[0]) != digit {
			return false
		}
	default:
		if rest[0] == '/' && m.afterSlash() && isMonth(name) { // 10/Oct/2000
			break
		}
		rest = bytes.TrimLeft(rest, " -")
		if !isMonth(name) || len(rest) == 0 || class(rest[0]) != digit {
			return false
		}
	}
	m.i += 3
	m.wild()
	return true
}

func (m *masker) afterSlash() bool {
	n := len(m.out)
	return n > m.word+1 && m.out[n-1] == '/' && m.out[n-2] == wild
}

func isMonth(w string) bool {
	switch w {
	case "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec":
		return true
	}
	return false
}

// object masks a message that is a JSON object: its names stay, and its values are masked.
func (m *masker) object() {
	for m.i < len(m.in) && len(m.ends) < maxWords {
		c := m.in[m.i]
		switch {
		case class(c) == blank:
			m.blanks()
		case c == '"':
			m.member()
		case class(c) == digit, c == '-':
			for m.i < len(m.in) && (class(m.in[m.i]) == digit || bytes.IndexByte([]byte("+-.eE"), m.in[m.i]) >= 0) {
				m.i++
			}
			m.wild()
		case class(c) == control:
			m.i++
			m.wild()
		default:
			m.copy(1)
		}
	}
	if m.i < len(m.in) {
		m.form |= cut
	}
}

// member masks a text of JSON, unless it is a name. Equal texts of a list are one.
func (m *masker) member() {
	end := m.i + 1
	for end < len(m.in) && m.in[end] != '"' {
		if m.in[end] == '\\' {
			end++
		}
		end++
	}
	if end = min(end+1, len(m.in)); end < len(m.in) && m.in[end] == ':' || bytes.HasPrefix(m.in[end:], []byte(" :")) {
		for m.i < end {
			if c := m.in[m.i]; class(c) == control || class(c) == blank && c != ' ' {
				m.i++
				m.wild()
			} else {
				m.copy(1)
			}
		}
		return
	}
	whole := m.in[end-1] == '"' && end-1 > m.i
	m.i = end
	switch w := m.out[m.word:]; {
	case !whole:
		m.out = append(m.out, '"', phrase)
	case bytes.HasSuffix(w, []byte{'"', phrase, '"', ','}):
		m.out = m.out[:len(m.out)-1]
	default:
		m.out = append(m.out, '"', phrase, '"')
	}
}
