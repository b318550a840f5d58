package api

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"blobtail/blobfmt"
	"blobtail/internal/door"
	"blobtail/reading"
	"blobtail/reading/form"
)

// days lists the days of services.
func (c *call) days() error {
	a, err := c.ask()
	if err != nil {
		return err
	}
	all, out, err := c.store.Days(c.r.Context(), a)
	if err != nil {
		return err
	}
	answer := form.Days{Days: make([]form.Day, 0, len(all)), Outcome: form.OutcomeOf(out)}
	for i := range all {
		d := &all[i]
		answer.Days = append(answer.Days, form.Day{Service: d.Service, Day: d.Name, Blobs: d.Blobs, Total: form.Total{
			Records: d.Records, Bytes: d.Raw, Stored: d.Stored, Unflushed: d.Unflushed, First: form.Stamp(d.First), Last: form.Stamp(d.Last),
		}})
	}
	return c.json(answer)
}

// blobs lists the blobs of services.
func (c *call) blobs() error {
	a, err := c.ask()
	if err != nil {
		return err
	}
	all, out, err := c.store.Blobs(c.r.Context(), a)
	if err != nil {
		return err
	}
	answer := form.Blobs{Blobs: make([]form.Blob, 0, len(all)), Outcome: form.OutcomeOf(out)}
	for i := range all {
		b := &all[i]
		if b.Name == "" {
			answer.Unflushed += b.Unflushed
			continue
		}
		answer.Blobs = append(answer.Blobs, form.Blob{
			Name: b.Name, Service: b.Service, Records: b.Records, Bytes: b.Raw, Stored: b.Stored, First: form.Stamp(b.First), Last: form.Stamp(b.Last),
		})
	}
	return c.json(answer)
}

// blob answers with one blob: with the stored bytes to clients that accept zstd, ask for a part
// or for the stored bytes, and decoded to all others.
func (c *call) blob() error {
	name := c.r.PathValue("name")
	partial, err := c.params.Flag("partial")
	if err != nil {
		return err
	}
	stored, err := c.params.Flag("stored")
	if err != nil {
		return err
	}
	body, warning, problem := c.store.Body(c.r.Context(), name)
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
	read := door.Read{From: reading.Oldest, To: reading.Newest, Bytes: int64(len(body))}
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
