package carry

import (
	"cmp"
	"fmt"
	"strings"
)

// userNotice is the priority of messages that are given none, as of the command logger.
const userNotice = 1*8 + 5

// syslogHost is the host of messages of syslog.
const syslogHost = "web1"

// messagesOf frames messages by their lengths (RFC 6587), so that they may have line feeds.
func messagesOf(c Cargo, header func(r Record, tag string) string) (Parcel, error) {
	// The tag is a word.
	tag := cmp.Or(strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || r == ':' || r == '[' {
			return '-'
		}
		return r
	}, c.Service), "app")
	var b []byte
	for _, r := range c.Records {
		head := ""
		if !r.Whole {
			head = fmt.Sprintf("<%d>%s", cmp.Or(r.Priority, userNotice), header(r, tag))
		}
		b = fmt.Appendf(b, "%d %s%s", len(head)+len(r.Text), head, r.Text)
	}
	return Parcel{By: Syslog, Body: b}, nil
}

// rfc5424 has six digits of a second at most.
func rfc5424(c Cargo) (Parcel, error) {
	return messagesOf(c, func(r Record, tag string) string {
		return "1 " + r.Time.UTC().Format("2006-01-02T15:04:05.000000Z") + " " + syslogHost + " " + tag + " - - - "
	})
}

// rfc3164 has whole seconds, and no zone: it is that of the host, here UTC.
func rfc3164(c Cargo) (Parcel, error) {
	return messagesOf(c, func(r Record, tag string) string {
		return r.Time.UTC().Format("Jan _2 15:04:05") + " " + syslogHost + " " + tag + ": "
	})
}

// HasPriority reports whether a text begins with a priority, as messages of syslog do.
func HasPriority(text []byte) bool {
	n := 1
	for n < len(text) && n < len("<191") && text[n]-'0' < 10 {
		n++
	}
	return n > 1 && n < len(text) && text[0] == '<' && text[n] == '>'
}
