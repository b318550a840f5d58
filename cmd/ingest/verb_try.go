package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/spelling"
	"blobtail/internal/when"
	"blobtail/record"
	"blobtail/record/forms"
	"blobtail/record/meaning"
	"blobtail/source/body"
	"blobtail/source/carry"
	"blobtail/source/dryrun"
	"blobtail/source/httpsource"
	"blobtail/source/syslog"
)

// tryCmd shows the records that an ingester makes of lines.
type tryCmd struct {
	File    string `arg:"" optional:"" help:"A file with lines as a program writes them; - or none is standard input." placeholder:"FILE"`
	Door    string `default:"text" help:"How the lines come: ${doors}." placeholder:"DOOR"`
	Service string `help:"The service that the sender names." placeholder:"NAME"`
	Query   string `help:"Parameters of the request, such as _level=prio&_time=when." placeholder:"PARAMETERS"`
	Join    bool   `help:"One message for the lines that belong together, in a door that takes one record a message."`
	Raw     bool   `help:"The file is a body as a shipper sends it, not lines."`
	Arrived string `help:"When the lines come; now by default." placeholder:"TIME"`
	Output  string `short:"o" default:"text" help:"text or json." placeholder:"FORM"`
	Limit   int    `short:"n" name:"limit" help:"Show so many records at most." placeholder:"N"`
}

// doorNames are the names of all doors.
func doorNames() (names []string) {
	for _, d := range carry.Doors() {
		names = append(names, d.Name)
	}
	return names
}

// run sends the lines through the door, and prints the records.
func (t *tryCmd) run(ctx context.Context, c config.Config, h handling, stdin io.Reader, stdout, stderr io.Writer) error {
	door, ok := carry.Named(t.Door)
	switch {
	case !ok:
		near := spelling.Near(t.Door, doorNames())
		if near != "" {
			near = "; did you mean " + near + "?"
		}
		return cli.Usagef("--door %s: want one of %s%s", t.Door, strings.Join(doorNames(), ", "), near)
	case t.Output != "text" && t.Output != "json":
		return cli.Usagef("--output %s: want text or json", t.Output)
	case t.Limit < 0:
		return cli.Usagef("--limit %d: want a number of records", t.Limit)
	}
	at := time.Now()
	if t.Arrived != "" {
		var err error
		if at, err = when.Time(t.Arrived, at.UTC()); err != nil {
			return cli.Usagef("--arrived: %w", err)
		}
	}
	lines, err := t.read(stdin)
	if err != nil {
		return err
	}
	o, err := dryOptions(c, h.fields, at)
	if err != nil {
		return err
	}
	r := &rehearsal{try: t, door: door, options: o, h: h, forms: c.Forms, table: forms.NewTable()}
	if err := r.run(ctx, lines); err != nil {
		return err
	}
	return r.print(stdout, cli.Console{Name: "ingest", Stderr: stderr})
}

// read reads the lines.
func (t *tryCmd) read(stdin io.Reader) ([]byte, error) {
	from := stdin
	if t.File != "" && t.File != "-" {
		f, err := os.Open(t.File)
		if err != nil {
			return nil, fmt.Errorf("open the lines: %w", err)
		}
		defer f.Close()
		from = f
	}
	lines, err := io.ReadAll(io.LimitReader(from, body.MaxDecoded+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the lines: %w", err)
	case len(lines) > body.MaxDecoded:
		return nil, fmt.Errorf("the lines have over %d MiB, and a request has no more; try the beginning: head -n 1000 FILE | ingest try", body.MaxDecoded>>20)
	}
	return lines, nil
}

// dryOptions are the settings of the sources as far as they matter for records.
func dryOptions(c config.Config, fields *meaning.Mapping, at time.Time) (dryrun.Options, error) {
	zone, err := c.Syslog.Location()
	if err != nil {
		return dryrun.Options{}, err
	}
	return dryrun.Options{
		Arrived: at, HTTP: httpsource.Options{Fields: fields}, Shippers: shipping(c),
		Syslog: syslog.Options{Service: c.Syslog.Service, Services: c.Syslog.Services, Zone: zone, Fields: fields},
	}, nil
}

// A rehearsal is one run of the lines.
type rehearsal struct {
	try     *tryCmd
	door    carry.Door
	options dryrun.Options
	h       handling
	forms   config.Forms
	table   forms.Table // of those that have a name

	by       carry.Transport
	answer   dryrun.Answer
	tried    []tried // as many as are shown
	accepted int
	rejected int
	lacks    record.Lacks // of the accepted ones
}

// tried is a record.
type tried struct {
	Line     json.RawMessage `json:"record,omitempty"` // as it would be stored
	Rejected string          `json:"rejected,omitempty"`
	Raw      string          `json:"raw,omitempty"` // of a rejected one
	*dryrun.Reasons
	Rule string `json:"rule,omitempty"` // the work of the rules of the configuration
	Form string `json:"form,omitempty"` // of the message
}

func (r *rehearsal) run(ctx context.Context, lines []byte) error {
	if len(bytes.TrimSpace(lines)) == 0 {
		return nil
	}
	p, err := r.pack(ctx, lines)
	if err != nil {
		return err
	}
	r.by = p.By
	if p, err = r.ask(p); err != nil {
		return err
	}
	o := r.options
	o.Watch = r.seen
	keep := &kept{}
	if r.h.forms != nil || r.h.rules != nil {
		o.Accept = r.h.filtered(keep, nil)
		o.Watch = func(s body.Seen) { keep.before(s); r.seen(s) }
	}
	if r.answer, err = dryrun.Send(ctx, p, o); err != nil {
		return err
	}
	r.ruled(keep)
	return nil
}

// ask adds the parameters to a request.
func (r *rehearsal) ask(p carry.Parcel) (carry.Parcel, error) {
	switch {
	case r.try.Query == "":
		return p, nil
	case p.By != carry.HTTP:
		return p, cli.Usagef("--query: the door %s takes no request of HTTP", r.door.Name)
	case strings.Contains(p.Path, "?"):
		p.Path += "&" + r.try.Query
	default:
		p.Path += "?" + r.try.Query
	}
	return p, nil
}

// pack packs the lines for the door.
func (r *rehearsal) pack(ctx context.Context, lines []byte) (p carry.Parcel, err error) {
	if r.try.Raw {
		return r.door.Raw(r.try.Service, lines)
	}
	c := carry.Cargo{Service: r.try.Service}
	if r.door.Lines {
		c.Records = []carry.Record{{Text: bytes.TrimSuffix(lines, []byte("\n"))}}
	} else if c.Records, err = r.messages(ctx, lines); err != nil {
		return p, err
	}
	if p, err = r.door.Pack(c); err != nil {
		err = &cli.UsageError{Err: err}
	}
	return p, err
}

// messages are the lines for a door that takes one record a message.
func (r *rehearsal) messages(ctx context.Context, lines []byte) (all []carry.Record, err error) {
	if !r.try.Join {
		for line := range bytes.Lines(lines) {
			if line = bytes.TrimRight(line, "\r\n"); len(bytes.TrimSpace(line)) > 0 {
				all = append(all, r.message(line))
			}
		}
		return all, nil
	}
	text, _ := carry.Named("text")
	p, err := text.Pack(carry.Cargo{Records: []carry.Record{{Text: lines}}})
	if err != nil {
		return nil, err
	}
	o := r.options
	o.Watch = func(s body.Seen) { all = append(all, r.message(bytes.Clone(s.Raw))) }
	a, err := dryrun.Send(ctx, p, o)
	if err == nil && a.Refused() {
		err = errors.New(a.Text)
	}
	return all, err
}

// message is a message of a door. A time that its protocol must have is that of arrival. A line
// that begins with a priority is a message of syslog already.
func (r *rehearsal) message(text []byte) carry.Record {
	const info = 6 // of journald, for the output of a service
	m := carry.Record{Text: text, Object: text[0] == '{' && json.Valid(text)}
	if r.door.Timed {
		m.Time = r.options.Arrived
	}
	switch {
	case strings.HasPrefix(r.door.Name, "syslog"):
		m.Whole = carry.HasPriority(text)
	case r.door.Name == "journald":
		m.Priority = info
	}
	return m
}

// seen notes a record.
func (r *rehearsal) seen(s body.Seen) {
	one := tried{Rejected: s.Rejected}
	if s.Rejected != "" {
		r.rejected++
		one.Raw = string(s.Raw)
	} else {
		r.accepted++
		r.lacks.Count(&s.Stamp)
		reasons := dryrun.ReasonsOf(s, r.by)
		if r.shows() {
			one.Form = r.formed(s.Line)
		}
		one.Line, one.Reasons = bytes.TrimSuffix(bytes.Clone(s.Line), []byte("\n")), &reasons
	}
	if r.shows() {
		r.tried = append(r.tried, one)
	}
}

// shows reports whether another record is shown.
func (r *rehearsal) shows() bool { return r.try.Limit == 0 || len(r.tried) < r.try.Limit }

// ruled notes the records that the rules have left out or masked.
func (r *rehearsal) ruled(k *kept) {
	if r.h.forms == nil && r.h.rules == nil {
		return
	}
	n := 0
	for i := range r.tried {
		t := &r.tried[i]
		if t.Rejected != "" {
			continue
		}
		line, ok := k.line(n)
		n++
		switch {
		case !ok:
			t.Rule = "left out by a rule of the configuration"
		case !bytes.Equal(line, t.Line):
			t.Line, t.Rule = line, "changed by a mask or a form of the configuration"
		}
	}
}

// formed tells of a record whether its message has the form of its service, or which form fits.
func (r *rehearsal) formed(line []byte) string {
	service, _ := record.LineService(line)
	for _, f := range r.forms {
		if !slices.ContainsFunc(f.Services, func(glob string) bool { return record.MatchService(glob, string(service)) }) {
			continue
		}
		form, _ := forms.Compile(f.Form) // the configuration is valid
		if form.Stage {
			return f.Form
		}
		if made, has := form.Append(nil, line, false); has {
			return fmt.Sprintf("%s: %s", f.Form, bytes.TrimSuffix(made[len(line)-len("}\n")+1:], []byte("}\n")))
		}
		return "the message has not the form " + f.Form
	}
	value, _ := record.Lookup(line, "msg")
	if fits := r.table.Fitting(record.TextOf(value)); fits != "" {
		return fmt.Sprintf("the message has the form %s; for its fields at a read, without a stored byte: forms: {%s: %[1]s}", fits, service)
	}
	return ""
}

// note is the remark that an answer of the native protocol has.
func (r *rehearsal) note() string {
	if r.answer.Note != "" {
		return r.answer.Note
	}
	return httpsource.Lacking(r.lacks, r.accepted)
}
