package dryrun

import (
	"fmt"
	"strings"

	"blobtail/record/meaning"
	"blobtail/source/body"
	"blobtail/source/carry"
)

// Reasons are the places of the parts of a record's head, in words.
type Reasons struct {
	Time    string `json:"time_from"`
	Level   string `json:"level_from"`
	Service string `json:"service_from"`
	Message string `json:"message_from"`
}

const nameless = "nothing names one"

// ReasonsOf puts into words where a record that came this way has the parts of its head from.
func ReasonsOf(s body.Seen, by carry.Transport) Reasons {
	w := s.Why
	switch w.Service().Place {
	case meaning.FromPath:
		w.Service().Name = [...]string{carry.HTTP: "the path", carry.NATS: "the subject", carry.Syslog: "syslog.service"}[by]
	case meaning.FromFallback:
		w.Service().Name = [...]string{carry.HTTP: "the request, for all of its records", carry.NATS: "the message", carry.Syslog: nameless}[by]
	}
	none := "arrival"
	if len(w.Time().Passed) == 0 && s.Stamp.TimeUnread {
		none = "arrival; a time that came with it could not be read"
	}
	return Reasons{
		Time:    words(*w.Time(), "the text", none),
		Level:   words(*w.Level(), "the message", "none found"),
		Service: words(*w.Service(), "the message", nameless),
		Message: words(*w.Message(), "the text", "none found"),
	}
}

// words is a cause in words. text is the word for the message, and none that for nowhere.
func words(c meaning.Cause, text, none string) string {
	var b strings.Builder
	switch c.Place {
	case meaning.FromField:
		fmt.Fprintf(&b, "field %q", c.Name)
	case meaning.FromMember:
		fmt.Fprintf(&b, "member %q", c.Name)
	case meaning.FromFields:
		fmt.Fprintf(&b, "fields %q and %q together", c.Name, c.Also)
	case meaning.FromText:
		switch {
		case c.Name != "":
			fmt.Fprintf(&b, "field %q of the JSON in the message", c.Name)
		case c.Text != "":
			fmt.Fprintf(&b, "%s, %q", text, c.Text)
		default:
			b.WriteString(text)
		}
	case meaning.FromTrace:
		b.WriteString("a stack trace")
	case meaning.FromBefore:
		b.WriteString("the record before")
	case meaning.FromBehind:
		b.WriteString("the first record behind that has one")
	case meaning.FromProtocol:
		b.WriteString(protocols(c.Name))
	case meaning.FromPath, meaning.FromFallback:
		b.WriteString(c.Name)
	default:
		b.WriteString(none)
	}
	if c.By != "" {
		fmt.Fprintf(&b, ", a number of %s", c.By)
	}
	for _, p := range c.Passed {
		if p.Name == "" {
			fmt.Fprintf(&b, "; %s, %q, %s", text, p.Value, p.Reason)
			continue
		}
		fmt.Fprintf(&b, "; field %q = %s %s", p.Name, p.Value, p.Reason)
	}
	return b.String()
}

// protocols is a part of a protocol in words.
func protocols(name string) string {
	switch {
	case name == "":
		return "the protocol's"
	case strings.HasPrefix(name, "the "):
		return name
	}
	return "the protocol's (" + name + ")"
}
