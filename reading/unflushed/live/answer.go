package live

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/record"
)

const (
	// maxLine is the length of the longest line. An escaped text of the longest
	// record is six times as long.
	maxLine    = 8*record.MaxRecord + 64
	readBuffer = 64 << 10
	// maxAsked is how many services an answer remembers as asked for.
	maxAsked = 1024
)

// The first words of the lines behind the records.
const (
	wordStored  = "stored"
	wordMissing = "missing"
	wordDamaged = "damaged"
	wordPartly  = "partly"
	wordError   = "error"
	wordEnd     = "end"
)

// Answer is the answer of an ingester. It is for one goroutine.
type Answer struct {
	// Self is the ingester that answers.
	Self Self
	// Snapshots are the ingesters with records in the answer: the process of each, by
	// id. Next reports the ones that broke off later.
	Snapshots map[string]string
	// RowsAge is the age of the list of ingesters when the question came. The answering
	// ingester chose by it the ones to ask. It is 0 if the list was read after the
	// question (never for a follower), and negative if no list was read.
	RowsAge time.Duration
	// Behind are the ids of ingesters that no longer remember all records behind the
	// positions of the question.
	Behind []string
	// Narrowed names the services that the token of the question may read, with commas
	// between, if the question is about others too: the answer lacks these. It is "" if
	// the answer has all services of the question.
	Narrowed string

	client    *Client
	query     Query
	positions Positions

	ctx     context.Context // of the caller
	request context.Context // of the request, which ends with its cause
	cancel  context.CancelCauseFunc
	body    io.ReadCloser
	in      *bufio.Scanner

	last    record.Entry // without its line
	records int
	asked   map[string]bool // services that were asked for, and have records here
	missing []Missing
	stored  []Stored
	err     error // that Next returns from now on
}

func newAnswer(ctx, request context.Context, c *Client, q Query, p *pulse, resp *http.Response, cancel context.CancelCauseFunc) *Answer {
	a := &Answer{client: c, query: q, ctx: ctx, request: request, cancel: cancel, asked: map[string]bool{}}
	a.body = &watched{resp.Body, c, p, cancel}
	a.in = bufio.NewScanner(a.body)
	a.in.Buffer(make([]byte, readBuffer), maxLine)
	a.in.Split(a.split)
	return a
}

// split splits the body behind its newlines. A last line without one is none. Behind the
// end it takes nothing, and waits for a byte or the end of the body.
func (a *Answer) split(data []byte, _ bool) (advance int, token []byte, err error) {
	if a.err != nil {
		return 0, nil, bufio.ErrFinalToken
	}
	end := bytes.IndexByte(data, '\n') + 1
	if end == 0 {
		return 0, nil, nil
	}
	return end, data[:end], nil
}

// watched is a body that cancels its request when it sends nothing for too long. Time
// counts only during a Read: the reader may pause in between as long as it needs.
type watched struct {
	io.ReadCloser
	client *Client
	pulse  *pulse
	cancel context.CancelCauseFunc
}

func (w *watched) Read(p []byte) (int, error) {
	late := time.AfterFunc(w.client.idle, func() { w.cancel(errIdle) })
	defer late.Stop()
	defer w.pulse.watch(w.client, w.client.idle, false, w.cancel)()
	return w.ReadCloser.Read(p)
}

// Positions are those for the next poll of a follower. Once Next has ended, a missing
// ingester has the position of this question, and after a cut all of them have. So the
// next poll asks for these records again. It does not do so for damage, which stays.
func (a *Answer) Positions() Positions {
	p, from := Positions{}, a.positions
	if _, cut := a.err.(*CutError); cut {
		from = a.query.After
	}
	maps.Copy(p, from)
	for _, m := range a.missing {
		if m.Damaged {
			continue
		}
		delete(p, m.ID)
		if was, ok := a.query.After[m.ID]; ok {
			p[m.ID] = was
		}
	}
	return p
}

// Close discards the rest of the answer.
func (a *Answer) Close() error {
	a.cancel(nil)
	if a.err == nil {
		a.err = errors.New("the answer is closed")
	}
	return a.body.Close()
}

// Next returns the next record. Its line is valid until the next call. After the last
// record Next returns io.EOF, or [*IncompleteError] if records are missing. A
// [*CutError] says that the answer broke off. Later calls return the same error.
func (a *Answer) Next() (record.Entry, error) {
	for a.err == nil {
		line, err := a.line()
		switch {
		case err != nil:
		case bytes.IndexByte(line, ' ') != 2*len(record.Origin{}): // no word is as long as an origin
			err = a.tail(line[:len(line)-1])
		default:
			var e record.Entry
			if e, err = a.record(line); err == nil {
				return e, nil
			}
		}
		if err != nil {
			if a.ctx.Err() != nil {
				err = a.ctx.Err()
			}
			a.err = &CutError{a.client.base.String(), err}
			a.cancel(nil)
		}
	}
	return record.Entry{}, a.err
}

// line reads a line with its newline. It is valid until the next call.
func (a *Answer) line() ([]byte, error) {
	if a.in.Scan() {
		return a.in.Bytes(), nil
	}
	err := a.in.Err()
	switch {
	case err == nil:
		err = fmt.Errorf("it ends after %d records: %w", a.records, io.ErrUnexpectedEOF)
	case errors.Is(err, bufio.ErrTooLong):
		err = fmt.Errorf("a line of more than %d bytes", maxLine)
	case errors.Is(context.Cause(a.request), errIdle):
		err = fmt.Errorf("%w for %s", errIdle, a.client.idle)
	case errors.Is(context.Cause(a.request), errHung):
		err = fmt.Errorf("%w, and gives no other sign of life", errIdle)
	}
	return nil, err
}

// record reads the line of a record and makes every possible check of it.
func (a *Answer) record(line []byte) (record.Entry, error) {
	var e record.Entry
	bad := func(what string) (record.Entry, error) {
		return record.Entry{}, fmt.Errorf("after %d records: %s: %.80q", a.records, what, line)
	}
	if len(a.missing) > 0 {
		return bad("a record behind the end")
	}
	var lower [2 * len(e.ID.Origin)]byte
	_, err := hex.Decode(e.ID.Origin[:], line[:len(lower)])
	hex.Encode(lower[:], e.ID.Origin[:])
	if err != nil || string(lower[:]) != string(line[:len(lower)]) {
		return bad("no origin")
	}
	number, rest, ok := bytes.Cut(line[33:], []byte{' '})
	index, valid := parseNumber(number, 32)
	if !ok || !valid {
		return bad("no index")
	}
	e.ID.Index, e.Line = uint32(index), rest
	var isTime bool
	if e.Time, isTime = record.LineTime(rest); !isTime {
		return bad("no canonical line")
	}
	service, ok := record.LineService(rest)
	switch {
	case !ok || !bytes.HasSuffix(rest, []byte("}\n")):
		return bad("no canonical line")
	case !a.asked[string(service)] && !a.ask(string(service)):
		return bad("a service that was not asked for")
	case e.Time < a.query.From || e.Time >= a.query.To && a.query.To != math.MaxInt64:
		return bad("a time that was not asked for")
	case a.records > 0 && e.Compare(&a.last) < 0:
		return bad("it is out of order")
	}
	a.last = record.Entry{Time: e.Time, ID: e.ID}
	a.records++
	return e, nil
}

// ask reports whether the question is about a service, and remembers it. Most records are
// of few services.
func (a *Answer) ask(service string) bool {
	if !record.ValidStored(service) || !a.query.Match(service) {
		return false
	}
	if len(a.asked) == maxAsked {
		clear(a.asked)
	}
	a.asked[service] = true
	return true
}

// parseNumber reads decimal digits as we write them.
func parseNumber(b []byte, bits int) (uint64, bool) {
	if len(b) == 0 || len(b) > 20 || b[0] == '+' || b[0] == '0' && len(b) > 1 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b), 10, bits)
	return n, err == nil
}

// tail reads a line behind the records; it sets a.err at the end.
func (a *Answer) tail(line []byte) error {
	word, rest, _ := strings.Cut(string(line), " ")
	switch word {
	case wordStored:
		if a.storedLine(rest) {
			return nil
		}
	case wordMissing, wordDamaged, wordPartly:
		id, rest, _ := strings.Cut(rest, " ")
		host, reason, _ := strings.Cut(rest, " ")
		if !isID(id) && id != "-" || host == "" || len(a.missing) == maxPositions {
			break
		}
		if host == "-" {
			host = ""
		}
		a.missing = append(a.missing, Missing{
			ID: id, Host: plain(host), Reason: plain(reason), Damaged: word == wordDamaged, Partly: word == wordPartly,
		})
		return nil
	case wordError:
		a.end(&IncompleteError{Missing: slices.Clone(a.missing), Damage: cmp.Or(plain(rest), "no reason is given")})
		return nil
	case wordEnd:
		var records, asked, answered int
		const form = "%d %d %d"
		_, err := fmt.Sscanf(rest, form, &records, &asked, &answered)
		if err != nil || rest != fmt.Sprintf(form, records, asked, answered) || answered < 0 || asked-answered != len(a.missing) {
			break
		}
		if records != a.records {
			return fmt.Errorf("%d records came, and it sent %d", a.records, records)
		}
		if answered < asked {
			a.end(&IncompleteError{Asked: asked, Answered: answered, Missing: slices.Clone(a.missing)})
		} else {
			a.end(io.EOF)
		}
		return nil
	}
	return fmt.Errorf("after %d records a line that is none: %.80q", a.records, line)
}

// end reads the end of the body, so that the connection can be used again.
func (a *Answer) end(err error) {
	a.err = err
	a.in.Scan()
}
