package readapi

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"blobtail/blobfmt"
	"blobtail/internal/budget"
	"blobtail/internal/door"
	"blobtail/query"
	"blobtail/readapi/form"
)

// blobBytes is the memory of a listed blob, and of its text in the answer.
const blobBytes = 400

// days lists the days of services.
func (c *call) days() error {
	answer := form.Days{Days: []form.Day{}}
	result, err := c.each(func(blobs *query.Reader, q query.Query, service string) (query.Summary, error) {
		days, sum, err := blobs.List(c.r.Context(), q, time.Time{})
		for i := range days {
			if d := &days[i]; touches(q.Range, d) {
				answer.Days = append(answer.Days, form.Day{Service: service, Day: d.Name, Blobs: d.Blobs, Total: totalOf(d)})
			}
		}
		return sum, err
	})
	if err != nil {
		return err
	}
	answer.Outcome = result
	return c.json(answer)
}

// blobs lists the blobs of services.
func (c *call) blobs() error {
	answer := form.Blobs{Blobs: []form.Blob{}}
	result, err := c.each(func(blobs *query.Reader, q query.Query, service string) (sum query.Summary, err error) {
		days, err := c.daysOf(blobs, q, &sum)
		if err != nil {
			return sum, err
		}
		for _, day := range days {
			list, part, err := blobs.List(c.r.Context(), q, day)
			sum.Join(&part)
			if err == nil {
				err = budget.Of(c.r.Context()).Take(blobBytes * int64(len(list)))
			}
			if err != nil {
				return sum, err
			}
			for i := range list {
				b := &list[i]
				switch {
				case b.Name == "":
					answer.Unflushed += b.Unflushed
				case touches(q.Range, b):
					answer.Blobs = append(answer.Blobs, form.Blob{
						Name: b.Name, Service: service, Records: b.Records, Bytes: b.Raw, Stored: b.Stored, First: stamp(b.First), Last: stamp(b.Last),
					})
				}
			}
		}
		return sum, nil
	})
	if err != nil {
		return err
	}
	answer.Outcome = result
	return c.json(answer)
}

// each calls list for each service of the request, with the query of the request.
func (c *call) each(list func(blobs *query.Reader, q query.Query, service string) (query.Summary, error)) (form.Outcome, error) {
	q, mode, err := c.query()
	if err != nil {
		return form.Outcome{}, err
	}
	rng := q.Range
	q.Range = query.Always() // unflushed records are listed by their days
	result, err := c.run(q, mode, func(blobs *query.Reader, q query.Query) (sum query.Summary, err error) {
		q.Range = rng
		services := q.Services
		for _, service := range services {
			q.Services = []string{service}
			part, err := list(blobs, q, service)
			if none, ok := errors.AsType[*query.NoServiceError](err); ok { // the others may exist
				sum.Absent, err = append(sum.Absent, none), nil
			}
			sum.Join(&part)
			if err != nil {
				return sum, err
			}
		}
		if len(sum.Absent) == len(services) {
			return query.Summary{}, sum.Absent[0]
		}
		return sum, nil
	})
	if err != nil {
		return form.Outcome{}, err
	}
	return outcome(result, &q.Filter), nil
}

// touches reports whether a total has records that may be in a range.
func touches(rng query.Range, t *query.Total) bool {
	return t.Last >= rng.From && (t.First < rng.To || rng.To == query.Newest)
}

func totalOf(t *query.Total) form.Total {
	return form.Total{Records: t.Records, Bytes: t.Raw, Stored: t.Stored, Unflushed: t.Unflushed, First: stamp(t.First), Last: stamp(t.Last)}
}

// daysOf returns the days that the range of a query touches. If they are many, it lists those
// with records.
func (c *call) daysOf(blobs *query.Reader, q query.Query, sum *query.Summary) (days []time.Time, err error) {
	const day, few = 24 * time.Hour, 3
	if rng := q.Range; rng.From != query.Oldest && rng.To != query.Newest && rng.To-rng.From <= int64(few*day) {
		for at := time.Unix(0, rng.From).UTC().Truncate(day); at.UnixNano() < rng.To; at = at.Add(day) {
			days = append(days, at)
		}
		return days, nil
	}
	list, part, err := blobs.List(c.r.Context(), q, time.Time{})
	sum.Join(&part)
	for i := range list {
		at, perr := time.Parse(time.DateOnly, list[i].Name)
		if perr == nil && touches(q.Range, &list[i]) {
			days = append(days, at)
		}
	}
	return days, err
}

// blob answers with one blob: with the stored bytes to clients that accept zstd, ask for a part
// or for the stored bytes, and decoded to all others.
func (c *call) blob() error {
	name := c.r.PathValue("name")
	partial, err := c.params.flag("partial")
	if err != nil {
		return err
	}
	stored, err := c.params.flag("stored")
	if err != nil {
		return err
	}
	body, warning, problem := c.client.Body(c.r.Context(), name)
	if problem != nil && body == nil {
		return problem
	}
	h := c.w.Header()
	if warning != nil {
		h.Set("Blobtail-Warning", headerText(warning.Error()))
	}
	part := c.r.Header.Get("Range") != ""
	if problem == nil && !part {
		problem = whole(name, body)
	}
	read := door.Read{From: query.Oldest, To: query.Newest, Bytes: int64(len(body))}
	if of, err := blobfmt.ParseName(name); err == nil {
		read.Services = []string{of.Service}
	}
	read.Incomplete = problem != nil
	door.Note(c.r).Add(read)
	if problem != nil && !partial {
		return &door.Refusal{
			Status: http.StatusBadGateway, Title: "Damaged blob",
			Reason: fmt.Sprintf("%v; add partial=1 to have the rest of it", problem),
		}
	}
	if !part || problem != nil { // a part is not checked, and says nothing of the blob
		h.Set(form.TrailerComplete, bit(problem == nil))
	}
	if problem != nil {
		h.Set(form.TrailerProblems, headerText(problem.Error()))
	}
	zstd := part || accepts(c.r.Header, "zstd")
	h.Set("Vary", "Accept-Encoding")
	h.Set("Etag", fmt.Sprintf(`"%016x%s"`, xxhash.Sum64(body), map[bool]string{true: "", false: "-decoded"}[stored || zstd]))
	switch {
	case stored:
		h.Set("Content-Type", form.Stored)
		h.Set("Content-Disposition", `attachment; filename="`+fileOfBlob(name)+`.zst"`)
	case zstd:
		h.Set("Content-Type", blobfmt.ContentType)
		h.Set("Content-Encoding", blobfmt.ContentEncoding)
	default:
		return c.decoded(name, body)
	}
	http.ServeContent(c.w, c.r, "", time.Time{}, bytes.NewReader(body))
	return nil
}

// fileOfBlob is a name for a file with a blob.
func fileOfBlob(name string) string { return strings.ReplaceAll(name, "/", "-") }

// whole finds out whether a body is a whole blob without damage.
func whole(name string, body []byte) error {
	d := blobfmt.NewDecoder(1)
	index, err := d.ReadIndex(name, int64(len(body)), func(off, n int64) ([]byte, error) { return body[off : off+n], nil })
	if err != nil {
		return err
	}
	at := 0
	for frame, err := range d.Walk(name, body) {
		if err != nil {
			return err
		}
		if at == len(index.Blocks) || index.Blocks[at].Offset != frame.Offset {
			return fmt.Errorf("%s: its blocks are not those of its index", name)
		}
		at++
	}
	if at != len(index.Blocks) {
		return fmt.Errorf("%s: %d of its %d blocks are there", name, at, len(index.Blocks))
	}
	return nil
}

// decoded answers with the lines of a blob. Its damage is known.
func (c *call) decoded(name string, body []byte) error {
	c.w.Header().Set("Content-Type", blobfmt.ContentType)
	if c.r.Method == http.MethodHead {
		return nil
	}
	for frame, err := range blobfmt.NewDecoder(1).Walk(name, body) {
		if err != nil {
			continue
		}
		if _, err := c.w.Write(frame.Lines); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
	return nil
}

// accepts reports whether a client names an encoding among those that it accepts.
func accepts(h http.Header, encoding string) bool {
	for _, header := range h.Values("Accept-Encoding") {
		for entry := range strings.SplitSeq(header, ",") {
			name, parameters, _ := strings.Cut(entry, ";")
			if !strings.EqualFold(strings.TrimSpace(name), encoding) {
				continue
			}
			weight, ok := strings.CutPrefix(strings.TrimSpace(parameters), "q=")
			q, err := strconv.ParseFloat(weight, 64)
			return !ok || err == nil && q > 0
		}
	}
	return false
}
