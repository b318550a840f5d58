package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"blobtail/internal/cli"
	"blobtail/record"
	"blobtail/source/body"
)

// print prints the records, and the sum and the note: with JSON the note is on stderr. The error is
// errSaid if not all are accepted.
func (r *rehearsal) print(stdout io.Writer, console cli.Console) error {
	w := bufio.NewWriter(stdout)
	for i := range r.tried {
		if r.try.Output == "json" {
			line, err := json.Marshal(r.tried[i])
			if err != nil {
				return err
			}
			_, _ = w.Write(append(line, '\n')) // Flush has the error
			continue
		}
		r.tried[i].print(w, i+1)
	}
	if r.try.Output == "text" {
		r.sum(w)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print the records: %w", err)
	}
	refused, json := r.answer.Refused(), r.try.Output == "json"
	if note := r.note(); note != "" && json {
		console.Note("note: %s", note)
	}
	switch {
	case refused && json:
		return fmt.Errorf("refused: %d %s", r.answer.Status, strings.TrimSpace(r.answer.Text))
	case refused, r.rejected > 0:
		return errSaid
	}
	return nil
}

// print prints a record in words.
func (t *tried) print(w io.Writer, n int) {
	if t.Rejected != "" {
		fmt.Fprintf(w, "%d  rejected: %s\n", n, cli.SafeLine(t.Rejected))
		quote(w, t.Raw)
		return
	}
	head := map[string]string{}
	var fields []string
	for key, value := range record.Fields(t.Line) {
		switch name := string(key); name {
		case "ts", "level", "service", "msg":
			head[name] = string(record.TextOf(value))
		default:
			fields = append(fields, name+"="+string(record.Bare(value)))
		}
	}
	level := head["level"]
	if level == "" {
		level = "-"
	}
	fmt.Fprintf(w, "%d  %s  %s  %s\n", n, head["ts"], cli.SafeLine(level), head["service"])
	quote(w, head["msg"])
	if len(fields) > 0 {
		fmt.Fprintf(w, "   %s\n", cli.SafeLine(strings.Join(fields, " ")))
	}
	for i, part := range [...]string{t.Time, t.Level, t.Message, t.Service, t.Rule, t.Form} {
		name := [...]string{"time", "level", "message", "service", "rule", "form"}[i]
		if part != "" {
			fmt.Fprintf(w, "   %s: %s\n", name, cli.SafeLine(part))
		}
	}
}

// quote prints the lines of a text behind a mark.
func quote(w io.Writer, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintf(w, "   | %s\n", cli.SafeLine(line))
	}
}

// sum says how many records were accepted and rejected, or that all were refused.
func (r *rehearsal) sum(w io.Writer) {
	if more := r.accepted + r.rejected - len(r.tried); more > 0 {
		fmt.Fprintf(w, "and %s more\n", cli.Thousands(more))
	}
	switch {
	case r.answer.Refused():
		fmt.Fprintf(w, "refused: %d %s\n", r.answer.Status, cli.SafeLine(strings.TrimSpace(r.answer.Text)))
	case r.accepted+r.rejected == 0:
		fmt.Fprintln(w, "there are no lines")
	default:
		fmt.Fprintf(w, "%s accepted, %s rejected\n", cli.Thousands(r.accepted), cli.Thousands(r.rejected))
	}
	if note := r.note(); note != "" {
		fmt.Fprintf(w, "note: %s\n", cli.SafeLine(note))
	}
}

// kept keeps the lines that the rules pass on, by their places among all accepted ones.
type kept struct {
	lines map[int][]byte
	count int         // accepted records that were seen
	place map[int]int // of the request that comes next: by place, the number of the record
}

// before notes a record before the rules.
func (k *kept) before(s body.Seen) {
	if k.place == nil {
		k.place = map[int]int{}
	}
	if s.Rejected == "" {
		k.place[s.Place] = k.count
		k.count++
	}
}

// Accept implements [body.Accepter]: it is behind the rules.
func (k *kept) Accept(_ context.Context, q *record.Request) (record.Receipt, error) {
	if k.lines == nil {
		k.lines = map[int][]byte{}
	}
	for i, l := range q.Lines {
		if n, ok := k.place[int(q.Index(uint32(i)))]; ok && q.Services[l.Service] != record.RejectedService {
			k.lines[n] = append([]byte(nil), q.Data[l.Off:l.Off+l.Len-1]...)
		}
	}
	k.place = nil
	return record.Receipt{Wait: func(context.Context, bool) error { return nil }}, nil
}

// line returns the line of an accepted record. ok is false if the rules have left it out.
func (k *kept) line(n int) (line []byte, ok bool) {
	line, ok = k.lines[n]
	return line, ok
}
