package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"blobtail/internal/access"
	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/record/ack"
)

// An expiry is the end of a token, as people write it.
type expiry struct {
	text string
	span config.Duration // from now on
	at   time.Time       // zero: the span counts
}

// UnmarshalText reads a duration, or a date as the file of tokens has it.
func (e *expiry) UnmarshalText(text []byte) error {
	e.text = string(text)
	at, ok := access.ParseExpires(e.text)
	if e.at = at; ok {
		return nil
	}
	if err := e.span.UnmarshalText(text); err != nil {
		return fmt.Errorf("%w; or a date, for example 2027-06-01 or 2027-06-01T12:00:00Z", err)
	}
	return nil
}

// after returns the end of a token that is made now.
func (e *expiry) after(now time.Time) (time.Time, error) {
	const instead = "for example 90d, or no --expires for a token that is accepted for ever"
	switch {
	case !e.at.IsZero() && !e.at.After(now):
		return e.at, fmt.Errorf("that is in the past, and nobody could use the token; want a later date, or a duration, %s", instead)
	case !e.at.IsZero():
		return e.at.UTC(), nil
	case e.span <= 0:
		return e.at, fmt.Errorf("want a duration, %s", instead)
	}
	return now.Add(time.Duration(e.span)).Truncate(time.Second), nil
}

// tokenCmd has the verbs that change the file of tokens.
type tokenCmd struct {
	New struct {
		ID       string   `arg:"" help:"Letters, digits, - and _: the name of the sender or reader." placeholder:"ID"`
		Write    []string `help:"A service, or a glob of services, that it may send records of." placeholder:"GLOB"`
		Read     []string `help:"A service, or a glob of services, that it may read." placeholder:"GLOB"`
		Peer     bool     `xor:"role" help:"It is for ingesters, which answer readers for each other."`
		Operator bool     `xor:"role" help:"It may read the metrics."`
		Expires  *expiry  `help:"How long it is accepted, such as 90d, or until when (UTC), such as 2027-06-01 (default: for ever)." placeholder:"END"`
	} `cmd:"" help:"Make a token, or another secret of one that exists, and print it once."`
	List   struct{} `cmd:"" help:"List the tokens. Their secrets are not known."`
	Revoke struct {
		ID string `arg:"" placeholder:"ID"`
	} `cmd:"" help:"Remove a token. Ingesters that run accept it no more a few seconds later."`

	File string `help:"File of tokens (default: access.tokens of the configuration)." placeholder:"FILE"`
}

// run does the work of a verb.
func (t *tokenCmd) run(verb, file string, stdout, stderr io.Writer) error {
	console := cli.Console{Name: "ingest", Stderr: stderr}
	if strings.HasPrefix(verb, "token new") {
		return t.add(file, console, stdout)
	}
	if file == "" {
		return cli.Usagef("which file of tokens? Give --file, or access.tokens in the configuration")
	}
	if strings.HasPrefix(verb, "token list") {
		return listTokens(file, stdout)
	}
	if err := access.Revoke(file, t.Revoke.ID); err != nil {
		return err
	}
	console.Note("token %s is removed from %s; ingesters that run accept it for a few seconds more", t.Revoke.ID, file)
	return nil
}

// add makes a token. Only the token is on stdout, for scripts.
func (t *tokenCmd) add(file string, console cli.Console, stdout io.Writer) error {
	secret, hash := access.NewSecret()
	e := access.Entry{ID: t.New.ID, Hash: hash, Write: t.New.Write, Read: t.New.Read}
	switch {
	case t.New.Peer:
		e.Role = access.Peer
	case t.New.Operator:
		e.Role = access.Operator
	}
	if d := t.New.Expires; d != nil {
		var err error
		if e.Expires, err = d.after(time.Now()); err != nil {
			return &cli.UsageError{Err: fmt.Errorf("--expires %s: %w", d.text, err)}
		}
	}
	if err := e.Check(); err != nil {
		return &cli.UsageError{Err: err}
	}
	idle := len(e.Write)+len(e.Read) == 0 && e.Role == ""
	if file == "" {
		if idle {
			return errIdle(e.ID)
		}
		fmt.Fprintf(stdout, "%s.%s\n\ntokens:\n%s", e.ID, secret, e.Text(2))
		return nil
	}
	if known, err := exists(file, e.ID); err != nil {
		return err
	} else if idle && !known {
		return errIdle(e.ID)
	}
	done, err := access.Add(file, e)
	if errors.Is(err, access.ErrExists) {
		return &cli.UsageError{Err: err}
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s.%s\n", e.ID, secret)
	switch {
	case done.Dropped:
		console.Note("token %s had two secrets; the older one is not accepted any more", e.ID)
	case done.Rotated:
		console.Note("token %s has two secrets now; when all its clients have the new one, run this again, and the old one goes", e.ID)
	default:
		console.Note("token %s is in %s; this is the only time that its secret is shown", e.ID, file)
	}
	return nil
}

func errIdle(id string) error {
	return cli.Usagef("token %s could do nothing; give --write GLOB, --read GLOB, --peer or --operator", id)
}

// exists reports whether a file has a token. A file that is missing has none.
func exists(file, id string) (bool, error) {
	list, err := access.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return slices.ContainsFunc(list, func(t *access.Token) bool { return t.ID == id }), err
}

// listTokens prints a table of the tokens.
func listTokens(file string, stdout io.Writer) error {
	list, err := access.Read(file)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tSECRETS\tWRITES\tREADS\tROLE\tEXPIRES\tLIMITS\tCERTIFICATE")
	dash := func(texts ...string) string { return cmp.Or(cli.SafeLine(strings.Join(texts, " ")), "-") }
	for _, t := range list {
		expires := "never"
		if !t.Expires.IsZero() {
			expires = t.Expires.UTC().Format(time.RFC3339)
			if time.Now().After(t.Expires) {
				expires += " (expired)"
			}
		}
		limits := t.Limits.String()
		if t.Ack > ack.Disk {
			limits = strings.TrimPrefix(limits+", ack "+t.Ack.String(), ", ")
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", t.ID, t.Secrets(), dash(t.Write...), dash(t.Read...), dash(string(t.Role)),
			expires, dash(limits), dash(t.Certificate...))
	}
	return w.Flush()
}
