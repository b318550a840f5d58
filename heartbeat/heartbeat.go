// Package heartbeat tells ingesters, and who reads, which ingesters are alive:
// each keeps one row in a table up to date, and all may read them.
//
// An ingester makes an [Announcer] and runs it; with [Options.Auto] it also finds
// a lane that no other has. Who wants to know calls [List] and asks each row
// whether it is [Ingester.Live]. Which row is an ingester's own, and which lane it
// had last, it keeps beside its log: see [Identity].
//
//	table ingesters, partition i, one row for each log directory
//	       | every 10 s, or when needed      | List
//	   Announcer -> lane -> blobwriter    logquery ingesters, other ingesters
//
// Nothing here is needed to take, keep or store a record: rows may be missing,
// stale or wrong, and all it costs is a few conflicts for names and a worse
// answer to the question who is there. The form of a row is in docs/FORMAT.md.
package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blobtail/storage"
)

// Where the rows are.
const (
	Table     = "ingesters"
	Partition = "i"
)

// Format is the version of a row.
const Format = 1

const (
	// Silence is how long a row may be old before its ingester counts as gone.
	Silence = time.Minute
	// ahead is how far apart two clocks may be.
	ahead = 5 * time.Minute
	// Memory is how long a row is shown of an ingester that is gone and left
	// nothing behind.
	Memory = 24 * time.Hour
	// Lanes is the number of lanes that ingesters may have; they count from 0.
	Lanes = 99
)

// Ingester is what a row says. All its times are by the store's clock, as far as
// the ingester knew it.
type Ingester struct {
	ID      string // of its log directory; 8 hex digits
	Process string // 8 hex digits, new with each start
	Store   string // which of the stores that share a table: a container, or ""
	Lane    int
	Address string // URL where other ingesters and readers reach it; "" when not known
	Host    string
	Version string
	Oldest  time.Time // arrival of the oldest record that is in no blob; zero when there is none
	Started time.Time
	At      time.Time // when the row was written
	Stopped bool      // it has ended with all in blobs, or was given up
	GivenUp time.Time // when [Forget] was called on it: what it had since Oldest is lost
}

// Live tells whether the ingester is running, as far as one can know at now. A
// row from well ahead of now is of a clock that was wrong: it would be live for as
// long as that.
func (i Ingester) Live(now time.Time) bool {
	age := now.Sub(i.At)
	return !i.Stopped && age < Silence && age > -ahead
}

// Forgotten tells whether the row is of no more interest: gone for long, and
// nothing is missing because of it.
func (i Ingester) Forgotten(now time.Time) bool {
	return now.Sub(i.At) > Memory && (i.Stopped || i.Oldest.IsZero())
}

// RowError says that a row of the table cannot be read: it is not an ingester's,
// or a newer version wrote it.
type RowError struct {
	ID     string
	Reason string
}

func (e *RowError) Error() string {
	return fmt.Sprintf("row %s of table %s: %s", e.ID, Table, e.Reason)
}

// List returns the rows of the ingesters of one store, in order of their ids,
// whether they are live or not. No table means that no ingester was ever there: no
// rows and no error. Rows that cannot be read are left out, and the error joins a
// [*RowError] for each; after any other error nothing is returned.
func List(ctx context.Context, tables storage.TableStore, store string) ([]Ingester, error) {
	var found []Ingester
	var bad []error
	for row, err := range tables.Scan(ctx, Table, Partition, "", "", 0) {
		if errors.Is(err, storage.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list the ingesters: %w", err)
		}
		if s, _ := row.Props["store"].(string); s != store {
			continue
		}
		i, err := decode(row)
		if err != nil {
			bad = append(bad, err)
			continue
		}
		found = append(found, i)
	}
	return found, errors.Join(bad...)
}

// timeLayout has the same width for every time, like that in blobs' metadata.
const timeLayout = "2006-01-02T15:04:05.000000000Z"

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timeLayout)
}

func (i Ingester) row() storage.Row {
	props := map[string]any{
		"format": int64(Format), "process": i.Process, "store": i.Store, "lane": int64(i.Lane),
		"address": i.Address, "host": i.Host, "version": i.Version, "oldest": formatTime(i.Oldest),
		"started": formatTime(i.Started), "at": formatTime(i.At), "stopped": i.Stopped,
	}
	if !i.GivenUp.IsZero() {
		props["forgotten"] = formatTime(i.GivenUp)
	}
	return storage.Row{Key: i.ID, Props: props}
}

func decode(row storage.Row) (Ingester, error) {
	f, ok := row.Props["format"].(int64)
	switch {
	case !ok || f < Format:
		return Ingester{}, &RowError{row.Key, "it is not an ingester's"}
	case f > Format:
		return Ingester{}, &RowError{row.Key, fmt.Sprintf("it is in format %d, and this version reads format %d: use a newer one", f, Format)}
	}
	i := Ingester{ID: row.Key}
	i.Process, _ = row.Props["process"].(string)
	i.Store, _ = row.Props["store"].(string)
	i.Address, _ = row.Props["address"].(string)
	i.Host, _ = row.Props["host"].(string)
	i.Version, _ = row.Props["version"].(string)
	i.Stopped, _ = row.Props["stopped"].(bool)
	lane, _ := row.Props["lane"].(int64)
	i.Lane = int(lane)
	for _, p := range []struct {
		name string
		t    *time.Time
	}{{"at", &i.At}, {"started", &i.Started}, {"oldest", &i.Oldest}, {"forgotten", &i.GivenUp}} {
		text, _ := row.Props[p.name].(string)
		if text == "" && (p.t == &i.Oldest || p.t == &i.GivenUp) {
			continue
		}
		var err error
		if *p.t, err = time.Parse(timeLayout, text); err != nil {
			return Ingester{}, &RowError{row.Key, fmt.Sprintf("property %s: %.40q is no time", p.name, text)}
		}
	}
	return i, nil
}
