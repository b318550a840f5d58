package corpus

import (
	_ "embed" // of the stories
	"fmt"
	"strconv"
	"strings"

	"blobtail/record"
)

// The beginnings of the two messages of the incident.
const (
	newMessage = "card token expired before capture of order"
	warning    = "retrying capture after clock skew of"
)

// story is how a request goes.
type story struct {
	name    string // wild-... has one record that is not like the others, and job-... no user
	weights [2]int // of 1000 in all, before the deploy and since
	steps   []*step
}

// step writes a record.
type step struct {
	service   string
	level     record.Level
	low, high int  // ms from the record before
	oneIn     int  // the step is told once in so many times
	text      bool // a line of text
	msg, line pattern
}

// stories are those of the shop, each with its weights. A step has a service, a level, the
// milliseconds from the step before, how often it comes (/3 for once in three times), its message,
// and its fields: name=text, or name:JSON. A line "access" is the gateway's record of the answer.
//
//go:embed stories.txt
var stories string

// shorts are lines that several stories have.
func shorts(line string) string {
	kind, rest, _ := strings.Cut(line, " ")
	switch kind {
	case "access":
		of := strings.Fields(rest)
		level := map[byte]string{'2': "info", '4': "warn", '5': "error"}[of[2][0]]
		of[0], of[1] = "method="+of[0], "path="+of[1]
		return fmt.Sprintf("gateway %s 0-2 %s in $took ms -- %s %s status:%s duration_ms:$took user=$user client_ip=$ip bytes:$size",
			level, rest, of[0], of[1], of[2])
	case "place":
		return `web info 1-4 checkout of basket $basket begins -- basket=$basket user=$user
			orders info 2-9 order $order placed: $items items, $amount EUR -- order:$order items:$items amount:$amount user=$user
			stock info 2-15 reserved $items items for order $order -- order:$order items:$items
			payments debug 2-9 capture of order $order: asking issuer $issuer -- order:$order issuer=$issuer amount:$amount`
	case "skew":
		return `payments warn 60-200 ` + warning + ` $skew ms -- order:$order issuer=$issuer skew_ms:$skew attempt:2`
	case "expire":
		return `payments error 3100-3900 ` + newMessage + ` $order -- order:$order issuer=$issuer amount:$amount token=tok_$hex status:502`
	case "fail":
		of := strings.SplitN(rest, " ", 3)
		return fmt.Sprintf(`orders error %s payment of order $order failed: %s -- order:$order status:%s
			web error 1-4 checkout of basket $basket failed: orders answered %[3]s -- basket=$basket status:%[3]s user=$user
			%s`, of[0], of[2], of[1], shorts("access POST /checkout "+of[1]))
	}
	return line
}

func parseStories() (all []story) {
	for line := range strings.SplitSeq(strings.TrimSpace(stories), "\n") {
		if !strings.HasPrefix(line, "\t") {
			var s story
			_, _ = fmt.Sscan(line, &s.name, &s.weights[0], &s.weights[1])
			all = append(all, s)
			continue
		}
		last := &all[len(all)-1]
		for text := range strings.Lines(shorts(strings.TrimSpace(line))) {
			last.steps = append(last.steps, parseStep(strings.TrimSpace(text), strings.HasPrefix(last.name, "wild-text")))
		}
	}
	return all
}

// parseStep reads a step of JSON, or of a line of text.
func parseStep(line string, text bool) *step {
	of := strings.SplitN(line, " ", 4)
	msg, fields, _ := strings.Cut(of[3], " -- ")
	if strings.Contains(msg, `\`) {
		msg, _ = strconv.Unquote(`"` + msg + `"`)
	}
	s := &step{service: of[0], level: record.LevelOf([]byte(of[1])), oneIn: 1, text: text, msg: parsePattern(msg)}
	_, _ = fmt.Sscanf(of[2], "%d-%d/%d", &s.low, &s.high, &s.oneIn)
	form := "$time $msg"
	if !text {
		form = fmt.Sprintf(`{"ts":"$time","level":"%s","service":"%s","msg":"$msg","host":"%[2]s-$host",`+
			`"version":"$version"$request%s}`, s.level, s.service, members(fields))
	}
	s.line = parsePattern(form + "\n")
	return s
}

// members makes members of an object of fields.
func members(fields string) string {
	var b []byte
	for f := range strings.FieldsSeq(fields) {
		at := strings.IndexAny(f, "=:")
		b = append(append(append(b, `,"`...), f[:at]...), `":`...)
		if f[at] == '=' {
			b = append(record.AppendEscaped(append(b, '"'), []byte(f[at+1:])), '"')
		} else {
			b = append(b, f[at+1:]...)
		}
	}
	return string(b)
}
