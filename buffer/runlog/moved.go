package runlog

import (
	"fmt"
	"time"

	"blobtail/record"
)

// Ships reports whether the log alone has the records of one of its records: not those of a message,
// which its server has too.
func Ships(typ byte, payload []byte) bool {
	return typ == TypeParked || typ == TypeRuns && len(payload) > 0 && payload[0]&hasReply == 0
}

// Requests calls f with the requests of a record of another log, which [Ships]. Accepted, they have
// the identities that they had there. place is the origin that the record's place gave.
func Requests(typ byte, payload []byte, place record.Origin, f func(*record.Request) error) error {
	switch typ {
	case TypeRuns:
		r := new(record.Request)
		head, err := ParseRuns(payload, 0, func(_ *Head, run *Run) { move(r, run) })
		if err != nil {
			return err
		}
		r.Origin, r.Sum, r.Outcome, r.DefaultTime = head.Origin, head.Sum, head.Outcome, head.DefaultTime
		r.Came = time.UnixMilli(head.Arrived)
		if r.Origin.IsZero() {
			r.Origin = place
		}
		return f(r)
	case TypeParked:
		batch, head, err := ParseParked(payload)
		if err != nil {
			return err
		}
		for e := range batch.Runs.All() {
			if int(e.End()) > len(payload)-head {
				return fmt.Errorf("%w: it ends behind its record", errRun)
			}
			var run Run
			if _, err := run.parse(payload[head+int(e.Pos):][:e.Len], batch.Service); err != nil {
				return err
			}
			r := &record.Request{Came: time.UnixMilli(batch.Since), Origin: run.Origin}
			move(r, &run)
			if err := f(r); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("a record of type %d of another log: %w", typ, ErrNewer)
}

// move appends the lines of a run to a request. The runs of a service come in the order of time.
func move(r *record.Request, run *Run) {
	if n := len(r.Services); n == 0 || r.Services[n-1] != run.Service {
		r.Services = append(r.Services, run.Service)
	}
	for rows := run.rows(); rows.next(); {
		n := len(r.Lines)
		r.Lines = append(r.Lines, record.Line{
			Time: rows.time, Off: uint32(len(r.Data)), Len: uint32(len(rows.line)),
			Service: uint32(len(r.Services) - 1), Shift: int32(rows.index - uint32(n)),
		})
		r.Data = append(r.Data, rows.line...)
	}
}
