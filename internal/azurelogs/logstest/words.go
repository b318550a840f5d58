package logstest

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// words is a text that grows in two forms: as it is in the log, and as a record has it.
type words struct {
	raw, want strings.Builder
	escape    func(rune) string // "": the rune is itself
}

// text adds a text.
func (w *words) text(s string) {
	for _, c := range s {
		if e := w.escape(c); e != "" {
			w.raw.WriteString(e)
		} else {
			w.raw.WriteRune(c)
		}
	}
	w.want.WriteString(s)
}

// as adds a text in a raw form of the caller's.
func (w *words) as(raw, want string) {
	w.raw.WriteString(raw)
	w.want.WriteString(want)
}

// masked adds an address's signature, which a record does not show.
func (w *words) masked(name, value string) {
	w.text(name)
	w.as(value, "XXXXX")
}

// html is the escape of the classic logs.
func html(c rune) string {
	switch c {
	case '&':
		return "&amp;"
	case '"':
		return "&quot;"
	case '<':
		return "&lt;"
	case '>':
		return "&gt;"
	case '\'':
		return "&#39;"
	}
	return ""
}

// newWords returns an empty text of the classic logs.
func newWords() *words { return &words{escape: html} }

// numeric adds a rune by its number.
func (w *words) numeric(m *maker, c rune) {
	if m.IntN(3) == 0 {
		w.as(fmt.Sprintf("&#x%X;", c), string(c))
	} else {
		w.as(fmt.Sprintf("&#%d;", c), string(c))
	}
}

// agents are texts of user agents without traps.
func agents() []string {
	return []string{
		"Microsoft Azure Storage Explorer, 1.20.1, win32, azcopy-node, 2.0.0, win32,  AzCopy/10.11.0 Azure-Storage/0.13 (go1.15, Windows_NT)",
		"azsdk-go-azblob/v1.6.1 (go1.26.0, linux)",
		"azsdk-net-Storage.Blobs/12.19.1 (.NET 8.0.4, Ubuntu 22.04.4 LTS)",
		"APN/1.0 Azure Blob FS/1.0 Hadoop/3.3.4",
		"curl/8.5.0",
	}
}

// sprinkle adds traps of quoted fields to a text.
func (w *words) sprinkle(m *maker) {
	if m.hit(Semicolon) {
		w.text(pick(m, []string{" (go1.15; Windows_NT)", ";", ";;; a;b", " 1;2.0;3"}))
	}
	if m.hit(Entity) {
		w.text(pick(m, []string{` said "no" & left`, " <script>alert('x')</script>", `"`, "a&b=<c>;'d'"}))
	}
	if m.hit(NumericEntity) {
		w.text(" caf")
		w.numeric(m, pick(m, []rune{'é', '\u2028', '☃', '😀', 'A', ';'}))
	}
	if m.hit(Twice) {
		w.text(pick(m, []string{" &lt;b&gt;", " &amp;amp;", " &#59;", " &quot;x&quot;"}))
	}
	if m.hit(NonASCII) {
		w.text(pick(m, []string{" grün", " 日本語", " Ωmega", " 😀"}))
	}
	if m.hit(Newline) {
		w.text(pick(m, []string{"\n", "\r\n", " first\nsecond\n\nfourth", "\nX-Header: a;b", "\n;", "a\n1.0;b"}))
	}
}

// forge adds a newline and the beginning of a forged line. The rest of the true line could be its
// end.
func (w *words) forge(m *maker, at string) {
	w.text(fmt.Sprintf("Mozilla/5.0\n2.0;%s;DeleteContainer;Success;202;1;1;authenticated;%s;%s;blob;https://%s.blob.core.windows.net/evil?restype=container;",
		at, m.o.Account, m.o.Account, m.o.Account))
	w.text(fmt.Sprintf(`"/%s/evil";%s;0;%s;2021-08-06;400;0;200;0;0;;;;;;forged agent`, m.o.Account, m.uuid(), m.address()))
}

// path is the path of an object within an account, with its container.
func (m *maker) path() string {
	return fmt.Sprintf("/%s/%s/%d.%s", pick(m, []string{"container1", "backup", "images", "$web"}),
		pick(m, []string{"2026/11", "a b", "x+y", "deep/er/still"}), m.IntN(100_000), pick(m, []string{"txt", "json", "tar.gz", "parquet"}))
}

// encode is a path as an address has it.
func encode(path string) string {
	var b strings.Builder
	for i := range len(path) {
		c := path[i]
		switch {
		case c < utf8.RuneSelf && (c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || strings.IndexByte("/.-_$", c) >= 0):
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// parameters adds the parameters of an address: those of a SAS if it has one.
func (w *words) parameters(m *maker, sas bool) {
	sep := "?"
	add := func(s string) { w.text(sep + s); sep = "&" }
	if m.hit(Design) {
		add("design=classic")
	}
	if sas {
		unmasked := m.hit(Signature)
		first := m.IntN(3)
		for i, p := range []string{"sv=2020-04-08", "se=2026-12-02T20%3A34%3A54Z", "sr=c", "sp=rwl"} {
			if i == first {
				add("")
				w.signature(m, unmasked)
			}
			add(p)
		}
		if m.IntN(4) == 0 && unmasked {
			add("")
			w.signature(m, true) // one more, at the end
		}
	}
	if m.IntN(2) == 0 {
		add("copy=1")
	}
	if m.IntN(2) == 0 {
		add("timeout=901")
	}
}

// signature adds the parameter of a signature; Azure masks most.
func (w *words) signature(m *maker, unmasked bool) {
	value := "XXXXX"
	if unmasked {
		value = m.signature()
	}
	w.masked("sig=", value)
}
