// Package lease keeps a table that says of each ingester whether it may hold
// unflushed records. All ingesters of a store share it. Readers decide by its rows
// whether a read is complete.
//
//	table ingesters, partition i, one row for each log directory
//	       | before the first acknowledgement,     | List
//	       | then every 10 s                       |
//	   Announcer -> Enter -> buffer            readers, other ingesters
//
// An ingester makes an [Announcer] and runs it. It calls [Announcer.Enter] before it
// appends a request. That fails while the row cannot say that the ingester holds
// records. A reader calls [List] and asks every ingester in State [Holding]. One that
// does not answer makes the read incomplete, however long it has been silent.
//
// # The lease
//
// A row is a lease. The last written state is also kept next to the log (file
// notes.go). Three rules tie both together:
//
//   - The file enters Holding after the row has. It leaves Holding, durably, before the
//     row is asked to. So a file that says Holding implies a row that does, and an
//     ingester that starts while the tables are away goes on accepting records.
//   - Every write of the row is conditional on the version that was read or written
//     last. So a write that arrives late cannot put Idle over Holding. Of two ingesters
//     on copies of one log the second one notices.
//   - Idle and Stopped are written only when the log holds no unflushed record, and
//     Idle only after ten minutes of that.
//
// A row that says Holding also has a floor (file floor.go): no unflushed record
// is older. It falls like the row enters Holding, and rises like the row leaves it: the
// floor of the file is never below that of the row.
//
// With [Options.Auto] the announcer also finds a lane that no other ingester has.
// Correct reads do not depend on lanes. The form of a row is in docs/reference/format-shipped.md.
//
// # The floor
//
// The floor bounds the times of records and not their arrival, so a reader may compare it with a
// range. A read of a range that ends at or below the floor of an ingester that does not answer is
// complete without it. The floor falls before the acknowledgement of an older record: the row
// first, then the file. It rises with a beat, when no unflushed record is older: the file first,
// then the row.
//
// It moves in steps. It stays a quarter of an hour behind now, so records of now cost no write.
// It falls to an hour ago for a later record of the last hour, and stays an hour behind for an
// hour. For an older record it falls to the start of that record's day. The price: while the
// tables are away, an ingester refuses records that are older than its floor. The floor does not
// rise meanwhile, so these are the same records as before.
//
// # Rows and lanes
//
// The row of an ingester belongs to its log directory, not to its process. Tables cannot delete
// a row, so a row per process would leave one behind at each start. After a crash the old one
// would say for ever that records are missing, although the next start has stored them. So the 8
// random digits are drawn once per log and kept in it. The column process tells starts apart. If
// a log directory was copied, the copy (another inode) takes a new id if the row says that its
// ingester holds records, because the original may run. If two use one row one after the other,
// the one that finds another process there takes a new id. The row has a store, because in Azure
// the containers of an account share their tables.
//
// Lanes are settled without a lock. An ingester first writes its lane into its row, and then
// reads the other rows. So of two on one lane at least one sees the other, and the one that
// started later moves. The earlier one waits a moment for that, and moves itself if the other
// does not, because the other may have read before. Every ingester reads again every 10 s, to
// mend collisions that an outage hid.
//
// Only the times of rows are corrected by the store's clock, because their readers compare them.
package lease

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
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
	// Silence is how long a row may be old before its ingester counts as silent.
	Silence = time.Minute
	// ahead is how far apart two clocks may be.
	ahead = 5 * time.Minute
	// Memory is how long the row of an ended ingester is shown if it left nothing
	// behind.
	Memory = 24 * time.Hour
	// Lanes is the number of lanes that ingesters may have; they count from 0.
	Lanes = 99
)

// State says whether an ingester may hold unflushed records.
type State string

// The states of a row.
const (
	// Holding: the log may have unflushed records.
	Holding State = "holding"
	// Idle: the log had no such record, and gets none before the row says Holding.
	Idle State = "idle"
	// Stopped: the ingester ended without unflushed records, or an operator gave it up.
	Stopped State = "stopped"
)

// Ingester is the content of a row. Its times are by the store's clock, as far as the
// ingester knew it. Those of Lost are by the ingester's own clock.
type Ingester struct {
	ID      string // of its log directory; 8 hex digits
	Process string // 8 hex digits, new with each start
	Store   string // which of the stores that share a table: a container, or ""
	StoreID string // the id in the store's object _store; "" while it is not known
	State   State
	// BestEffort says that the ingester acknowledges records also while its row cannot
	// be written, so readers cannot rely on the row.
	BestEffort bool
	Lane       int
	Address    string // URL where other ingesters and readers reach it; "" when not known
	Host       string
	Version    string
	Oldest     time.Time // arrival of the oldest unflushed record; zero when there is none
	Started    time.Time
	At         time.Time // when the row was written
	GivenUp    time.Time // when [Forget] was called on it: its unflushed records since Oldest are lost
	// Position is the durable end of the log when the row was written: 32 bits of its
	// segment's number, 32 of the offset there; 0 is not known.
	Position uint64
	// Floor is a time that no unflushed record is before, of a row that says Holding;
	// zero: not known. See [Ingester.Spares].
	Floor time.Time
	// Lost is the loss that the ingester found and no operator has acknowledged.
	Lost Loss
	Shipping

	acked   time.Time // Until of the loss that an operator acknowledged last
	version string    // of the row
}

// Shipping says what is known of a copy of the log in the store.
type Shipping struct {
	// Ships is the least that the ingester acknowledges, disk or shipped, if it ships its log. Then
	// another may adopt it. "": it ships none.
	Ships   string
	Adopter string // the ingester that has adopted it
}

// Loss is a span of arrival in which records may be lost, by the ingester's clock.
// The zero value is none.
type Loss struct {
	Since time.Time `json:"lost_since,omitzero"` // zero with an Until: not known
	Until time.Time `json:"lost_until,omitzero"`
}

// Any reports whether something was lost.
func (l Loss) Any() bool { return !l.Until.IsZero() }

// join is a span that covers both.
func (l Loss) join(o Loss) Loss {
	switch {
	case !o.Any():
		return l
	case !l.Any():
		return o
	}
	return Loss{Since: slices.MinFunc([]time.Time{l.Since, o.Since}, time.Time.Compare), Until: later(l.Until, o.Until)}
}

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

// after is l, or none if an operator has acknowledged all up to its Until.
func (l Loss) after(acked time.Time) Loss {
	if !l.Until.After(acked) {
		return Loss{}
	}
	return l
}

// Live reports whether the ingester is running, as far as that can be known at now. A
// row from well ahead of now is from a wrong clock: it would be live for as long as
// that.
func (i Ingester) Live(now time.Time) bool {
	age := now.Sub(i.At)
	return i.State != Stopped && age < Silence && age > -ahead
}

// MayHold reports whether the ingester may hold unflushed records at now, or get some: its
// log may have some, or it is running.
func (i Ingester) MayHold(now time.Time) bool { return i.State == Holding || i.Live(now) }

// Spares reports whether a read of records before a time, in Unix nanoseconds, needs no answer of
// an ingester with a row that says Holding: by its floor it holds none of them. A read to
// math.MaxInt64 goes up to the newest and needs it.
func (i *Ingester) Spares(to int64) bool {
	return !i.Floor.IsZero() && !i.BestEffort && to != math.MaxInt64 && !time.Unix(0, to).After(i.Floor)
}

// Whole says up to when a read is whole without the answers of ingesters with these
// floors; "": that is not known.
func Whole(floors ...time.Time) string {
	if len(floors) == 0 {
		return ""
	}
	least := slices.MinFunc(floors, time.Time.Compare)
	if least.IsZero() {
		return ""
	}
	without := "it"
	if len(floors) > 1 {
		without = "them"
	}
	return fmt.Sprintf("; records before %s are whole without %s", least.UTC().Format(time.RFC3339), without)
}

// latest is how far a record's time may be ahead of its ingester's clock (24 h), plus a
// margin for clocks that differ.
const latest = 25 * time.Hour

// LostFrom names the records that a read from a time on lacks for good, with a remedy; "": it
// lacks none.
func (i *Ingester) LostFrom(from int64) string {
	if !i.Lost.Any() || !time.Unix(0, from).Before(i.Lost.Until.Add(latest)) {
		return ""
	}
	since := "before "
	if !i.Lost.Since.IsZero() {
		since = "between " + i.Lost.Since.UTC().Format(timeLayout) + " and "
	}
	return fmt.Sprintf("has lost records that it took %s%s: `ingest forget --lost %s` acknowledges that", since, i.Lost.Until.UTC().Format(timeLayout), i.ID)
}

// Forgotten reports whether the row is of no more interest. The ingester is gone for
// long, and no record is missing because of it.
func (i Ingester) Forgotten(now time.Time) bool {
	return now.Sub(i.At) > Memory && i.State != Holding && !i.Lost.Any()
}

// RowError says that a row of the table cannot be read: it is not an ingester's,
// or a newer version wrote it, or one that is too old.
type RowError struct {
	ID     string
	Reason error // [storage.ErrOlder] of a row that only an older version wrote
}

func (e *RowError) Error() string {
	return fmt.Sprintf("row %s of table %s: %s", e.ID, Table, e.Reason)
}

// Unwrap returns the reason.
func (e *RowError) Unwrap() error { return e.Reason }

// List returns the rows of the ingesters of one store in any state, in order of their
// ids. Rows that cannot be read are left out, and the error joins a [*RowError] for
// each. After any other error nothing is returned. An absent table is [storage.ErrNotExist]: no
// ingester was ever announced, or an operator removed the table.
func List(ctx context.Context, tables storage.TableStore, store string) ([]Ingester, error) {
	l, err := scan(ctx, tables, store)
	if err != nil {
		return nil, err
	}
	return l.rows, errors.Join(l.bad...)
}

// Older returns an error that is [storage.ErrOlder] if only older versions wrote the row of an
// ingester of the store. It is nil if the rows cannot be listed, or not within 5 s.
func Older(ctx context.Context, tables storage.TableStore, store string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := List(ctx, tables, store); errors.Is(err, storage.ErrOlder) {
		return err
	}
	return nil
}

// listing is the rows of one store.
type listing struct {
	rows []Ingester
	bad  []error  // a [*RowError] for each row that cannot be read
	ids  []string // of all rows, readable or not
}

func scan(ctx context.Context, tables storage.TableStore, store string) (l listing, err error) {
	for row, err := range tables.Scan(ctx, Table, Partition, "", "", 0) {
		if err != nil {
			return listing{}, fmt.Errorf("list the ingesters: %w", err)
		}
		if s, _ := row.Props["store"].(string); s != store {
			continue
		}
		l.ids = append(l.ids, row.Key)
		i, err := decode(row)
		if err != nil {
			l.bad = append(l.bad, err)
			continue
		}
		l.rows = append(l.rows, i)
	}
	return l, nil
}

// Unread separates the error of unreadable rows from any other error. With unreadable
// rows the rest of a list is still good.
func Unread(err error) (rows, rest error) {
	if _, ok := errors.AsType[*RowError](err); ok {
		return err, nil
	}
	return nil, err
}

// get returns the row of one ingester in any store; one without an ID when there is none.
func get(ctx context.Context, tables storage.TableStore, id string) (Ingester, error) {
	// A space is the least character that keys may have.
	for row, err := range tables.Scan(ctx, Table, Partition, id, id+" ", 1) {
		if errors.Is(err, storage.ErrNotExist) {
			break
		}
		if err != nil {
			return Ingester{}, fmt.Errorf("read the row of ingester %s: %w", id, err)
		}
		return decode(row)
	}
	return Ingester{}, nil
}

// timeLayout has the same width for every time, like that in blobs' metadata.
const timeLayout = "2006-01-02T15:04:05.000000000Z"

// properties returns, by the names of the row's properties, the fields with their values.
func (i *Ingester) properties() map[string]any {
	return map[string]any{
		"process": &i.Process, "store": &i.Store, "storeid": &i.StoreID, "state": (*string)(&i.State),
		"besteffort": &i.BestEffort, "lane": &i.Lane, "address": &i.Address, "host": &i.Host, "version": &i.Version,
		"position": &i.Position, "at": &i.At, "started": &i.Started, "oldest": &i.Oldest, "floor": &i.Floor, "forgotten": &i.GivenUp,
		"ships": &i.Ships, "adopter": &i.Adopter,
		"lostsince": &i.Lost.Since, "lostuntil": &i.Lost.Until, "lostacked": &i.acked,
	}
}

// row is the row of the table.
func (i Ingester) row() storage.Row {
	props := map[string]any{"format": int64(Format)}
	for name, field := range i.properties() {
		switch v := field.(type) {
		case *string:
			if *v != "" {
				props[name] = *v
			}
		case *int:
			props[name] = int64(*v)
		case *uint64:
			props[name] = int64(*v)
		case *bool:
			if *v {
				props[name] = true
			}
		case *time.Time:
			if !v.IsZero() {
				props[name] = v.UTC().Format(timeLayout)
			}
		}
	}
	return storage.Row{Key: i.ID, Props: props, Version: i.version}
}

func decode(row storage.Row) (Ingester, error) {
	f, ok := row.Props["format"].(int64)
	switch {
	case !ok || f < Format:
		return Ingester{}, &RowError{row.Key, errors.New("it is not an ingester's")}
	case f > Format:
		return Ingester{}, &RowError{row.Key, fmt.Errorf("it is in format %d, and this version reads format %d: use a newer one", f, Format)}
	}
	i := Ingester{ID: row.Key, version: row.Version}
	fields := i.properties()
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		text, _ := row.Props[name].(string)
		n, _ := row.Props[name].(int64)
		switch v := fields[name].(type) {
		case *string:
			*v = text
		case *int:
			*v = int(n)
		case *uint64:
			*v = uint64(n)
		case *bool:
			*v, _ = row.Props[name].(bool)
		case *time.Time:
			if text == "" && v != &i.At && v != &i.Started {
				continue
			}
			var err error
			if *v, err = time.Parse(timeLayout, text); err != nil {
				return Ingester{}, &RowError{row.Key, fmt.Errorf("property %s: %.40q is no time", name, text)}
			}
		}
	}
	// A row that only an older version wrote has no state. If it ended in order, it left nothing
	// behind, and no program can remove its row.
	if i.State == "" {
		if stopped, _ := row.Props["stopped"].(bool); !stopped {
			return Ingester{}, &RowError{row.Key, storage.ErrOlder}
		}
		i.State = Stopped
	}
	if i.State != Holding && i.State != Idle && i.State != Stopped {
		return Ingester{}, &RowError{row.Key, fmt.Errorf("state %.40q is not known: use a newer version", i.State)}
	}
	return i, nil
}
