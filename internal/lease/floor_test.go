package lease_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/lease"
	"blobtail/storage"
	"blobtail/storage/fsys"
	"blobtail/storage/fsys/simdisk"
	"blobtail/storage/storagetest"
)

// floors has the row have a floor: the log has records of these times.
func (w *ward) floors(o *lease.Options) {
	o.Earliest = func() (earliest int64, some bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		earliest = math.MaxInt64
		for _, t := range w.times {
			earliest = min(earliest, t.UnixNano())
		}
		return earliest, len(w.times) > 0
	}
}

// sends puts a record of a time into the log.
func (w *ward) sends(p *lease.Announcer, at time.Time) error {
	leave, err := p.Enter(context.Background(), at.UnixNano())
	if err != nil {
		return err
	}
	defer leave()
	w.took()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.times = append(w.times, at)
	return nil
}

// must is sends that must succeed, and so many writes of the row at most.
func (w *ward) must(p *lease.Announcer, writes int, ages ...time.Duration) {
	w.t.Helper()
	time.Sleep(time.Millisecond) // not at the moment of a beat, which is at half a second
	w.counted()
	for _, age := range ages {
		if err := w.sends(p, time.Now().Add(-age)); err != nil {
			w.t.Fatal(err)
		}
	}
	if n := w.counted(); n != writes {
		w.t.Errorf("records of the ages %v cost %d writes, want %d", ages, n, writes)
	}
}

// keeps checks the floors of the row and of the notes, by how long ago they are.
func (w *ward) keeps(disk fsys.FS, row, file time.Duration) {
	w.t.Helper()
	of, _ := floorOf(w.t, disk)
	for name, c := range map[string]struct {
		got  time.Time
		want time.Duration
	}{"row": {w.row().Floor, row}, "file": {of, file}} {
		want := time.Now().Add(-c.want)
		if c.want >= 2*time.Hour {
			want = want.Truncate(24 * time.Hour)
		} else {
			want = want.Truncate(time.Minute)
		}
		if !c.got.Equal(want) {
			w.t.Errorf("after %v: the floor of the %s is %v, want %v", time.Since(epoch), name, c.got, want)
		}
	}
}

const (
	hour  = time.Hour
	today = 15 * time.Minute
	aDay  = 24 * time.Hour
)

// noon waits until the noon after some days: before that hours ago may be the day before.
func noon() { time.Sleep(36 * time.Hour) }

// Records of now cost no write beyond the one that enters Holding. The first record that is
// late costs one write, and later ones of its day none. In the last hour it is one for all.
func TestFloorCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		noon()
		w, disk := newWard(t), logDisk(t)
		p := w.launch(disk, w.floors).Announcer
		time.Sleep(2 * time.Second)
		w.says(lease.Idle)
		w.must(p, 1, 0)
		w.keeps(disk, today, today)
		time.Sleep(time.Second) // the row says of a record now
		var now []time.Duration
		for n := range 500 {
			now = append(now, time.Duration(n)*time.Second, -time.Duration(n)*time.Hour)
		}
		w.must(p, 0, now...)
		w.must(p, 1, 30*time.Minute, 16*time.Minute, 58*time.Minute)
		w.keeps(disk, hour, hour)
		w.must(p, 1, 3*aDay, 3*aDay+11*hour, 3*aDay-11*hour, 2*hour)
		w.keeps(disk, 3*aDay, 3*aDay)
		w.must(p, 1, 9*aDay)
		w.must(p, 0, 9*aDay+11*hour, 4*aDay, 3*aDay, 2*aDay, aDay, 40*time.Minute, 0)
		w.keeps(disk, 9*aDay, 9*aDay)
		w.must(p, 1, 200*365*aDay)
		if floor := w.row().Floor; floor.Year() != 1800 {
			t.Errorf("the floor is %v", floor)
		}
		// Of the least times there is no floor.
		if err := w.sends(p, time.Unix(0, math.MinInt64)); err != nil {
			t.Fatal(err)
		}
		if floor := w.row().Floor; !floor.IsZero() {
			t.Errorf("the floor is %v", floor)
		}
	})
}

// The floor rises with a beat, and costs no write of its own. It rises as far as the oldest
// record that is in no blob.
func TestFloorRises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		noon()
		w, disk := newWard(t), logDisk(t)
		p := w.launch(disk, w.floors).Announcer
		w.must(p, 1, 0)
		w.must(p, 1, 3*aDay)
		w.must(p, 0, aDay)
		time.Sleep(11 * time.Second)
		w.keeps(disk, 3*aDay, 3*aDay)
		w.flushes(time.Now().Add(-2 * aDay))
		w.counted()
		time.Sleep(time.Minute)
		w.keeps(disk, aDay, aDay)
		if n := w.counted(); n > 6 {
			t.Errorf("%d writes in a minute", n)
		}
		w.flushes(time.Now())
		time.Sleep(11 * time.Second)
		w.says(lease.Holding)
		w.keeps(disk, today, today)
		// One late record of the last hour is followed by more.
		w.must(p, 1, 40*time.Minute)
		w.flushes(time.Now())
		time.Sleep(30 * time.Second)
		w.keeps(disk, hour, hour)
		w.must(p, 0, 30*time.Minute, 59*time.Minute)
		w.flushes(time.Now())
		w.must(p, 0, 0) // or the row says idle
		time.Sleep(hour)
		w.keeps(disk, hour+30*time.Second, hour+30*time.Second) // that record is in no blob
		if err := w.sends(p, time.Now()); err != nil {
			t.Fatal(err)
		}
		w.flushes(time.Now().Add(-time.Minute))
		time.Sleep(11 * time.Second)
		w.keeps(disk, today, today)
		// While the store is away records get older, and the floor stays under them.
		floor := w.row().Floor
		w.flushes(time.Now())
		w.must(p, 0, 14*time.Minute)
		time.Sleep(5 * hour)
		if got := w.row().Floor; got.Before(floor) || got.After(floor.Add(2*time.Minute)) {
			t.Errorf("the floor was %v and is %v", floor, got)
		}
	})
}

// A late record is accepted after the row has its floor, and then the file. If one of the
// two fails it is refused, and records of now are accepted all the same.
func TestFloorFallsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		noon()
		w, disk := newWard(t), logDisk(t)
		p := w.launch(disk, w.floors).Announcer
		w.must(p, 1, 0)
		time.Sleep(time.Second)
		for name, fault := range map[string]storagetest.Fault{
			"lost": {Before: storagetest.ErrFault}, "refused": {Before: storage.ErrUnauthorized}, "hangs": {Delay: hour}, "changes": {Before: storage.ErrChanged},
		} {
			w.setFault(storagetest.Times(-1, storagetest.Swap, "", fault))
			time.Sleep(501 * time.Millisecond)
			if err := w.sends(p, time.Now().Add(-3*aDay)); err == nil || !strings.Contains(err.Error(), "readers would miss") {
				t.Errorf("the write of the row %s: a late record gives %v", name, err)
			}
			w.keeps(disk, today, today)
			if err := w.sends(p, time.Now()); err != nil {
				t.Errorf("the write of the row %s: a record of now is refused: %v", name, err)
			}
			if err := p.Denied(); err != nil {
				t.Errorf("the write of the row %s: %v", name, err)
			}
		}
		// It is written, and no answer comes.
		w.setFault(storagetest.Times(-1, storagetest.Swap, "", storagetest.Fault{After: storagetest.ErrFault}))
		time.Sleep(501 * time.Millisecond)
		if err := w.sends(p, time.Now().Add(-3*aDay)); err == nil {
			t.Error("accepted without an answer")
		}
		w.keeps(disk, 3*aDay, today)
		w.setFault(nil)
		disk.SetFault(func(op simdisk.Op) error {
			if op.Kind == "sync" || op.Kind == "syncdir" {
				return errors.New("no space left")
			}
			return nil
		})
		time.Sleep(501 * time.Millisecond)
		if err := w.sends(p, time.Now().Add(-3*aDay)); err == nil {
			t.Error("accepted while the file says otherwise")
		}
		disk.SetFault(nil)
		time.Sleep(501 * time.Millisecond)
		if err := w.sends(p, time.Now().Add(-3*aDay)); err != nil {
			t.Error(err)
		}
		w.keeps(disk, 3*aDay, 3*aDay)
	})
}

// slow are tables that hold a write back: it is carried out when its caller has given up.
type slow struct {
	storage.TableStore
	mu   sync.Mutex
	hold bool
	held []storage.Row
}

func (s *slow) holds(hold bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = hold
}

func (s *slow) Swap(ctx context.Context, table, partition string, row storage.Row) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hold {
		s.held = append(s.held, row)
		return "", errors.New("no answer")
	}
	return s.TableStore.Swap(ctx, table, partition, row)
}

// The file rises before the row. A write of the row that is lost leaves the lower floor
// there. One that comes late does not get over a floor that has fallen meanwhile.
func TestFloorRisesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		noon()
		w, disk := newWard(t), logDisk(t)
		s := &slow{TableStore: w.tables()}
		p := launch(t, s, identity{ID: "0badcafe"}, w.on(disk, logDir), w.floors)
		<-p.First()
		w.must(p.Announcer, 1, 0)
		w.must(p.Announcer, 1, 3*aDay)
		w.flushes(time.Now())
		time.Sleep(2 * time.Second)
		s.holds(true)
		time.Sleep(10 * time.Second)
		w.keeps(disk, 3*aDay, today)
		s.holds(false)
		if err := w.sends(p.Announcer, time.Now().Add(-3*aDay)); err != nil { // as before, and yet the row is written
			t.Fatal(err)
		}
		w.keeps(disk, 3*aDay, 3*aDay)
		s.mu.Lock()
		held := s.held
		s.mu.Unlock()
		if len(held) == 0 {
			t.Fatal("no write came late")
		}
		for _, row := range held {
			if _, err := s.TableStore.Swap(t.Context(), lease.Table, lease.Partition, row); !errors.Is(err, storage.ErrChanged) {
				t.Errorf("a late write gives %v", err)
			}
		}
		w.keeps(disk, 3*aDay, 3*aDay)
		// The file cannot be written: the row keeps its floor.
		w.flushes(time.Now())
		disk.SetFault(func(op simdisk.Op) error {
			if op.Kind == "sync" || op.Kind == "syncdir" {
				return errors.New("no space left")
			}
			return nil
		})
		time.Sleep(30 * time.Second)
		w.keeps(disk, 3*aDay, 3*aDay)
		disk.SetFault(nil)
		time.Sleep(11 * time.Second)
		w.keeps(disk, today, today)
	})
}

// A start goes on with the floor of the file, without the tables, and until it has read its
// log. A crash between the file and the row leaves the lower floor in the row.
func TestFloorOfStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		noon()
		w, disk := newWard(t), logDisk(t)
		p := w.launch(disk, w.floors)
		w.must(p.Announcer, 1, 0)
		w.must(p.Announcer, 1, 3*aDay)
		time.Sleep(time.Second)
		disk = p.end(disk)
		w.away()
		begun := time.Now()
		slowly := func(o *lease.Options) {
			o.Replayed = func() bool { return time.Since(begun) > hour }
		}
		p = w.launch(disk, w.floors, slowly)
		if err := w.sends(p.Announcer, time.Now().Add(-3*aDay)); err != nil {
			t.Errorf("a record above the floor of the file: %v", err)
		}
		if err := w.sends(p.Announcer, time.Now().Add(-5*aDay)); err == nil {
			t.Error("a record below the floor of the file is accepted without the tables")
		}
		w.setFault(nil)
		w.flushes(time.Now())
		time.Sleep(30 * time.Minute)
		w.keeps(disk, 3*aDay, 3*aDay)
		w.must(p.Announcer, 1, 5*aDay)
		w.keeps(disk, 5*aDay, 5*aDay)
		w.must(p.Announcer, 0, 0)
		w.flushes(time.Now().Add(-hour))
		time.Sleep(31 * time.Minute)
		time.Sleep(11 * time.Second)
		w.keeps(disk, hour, hour) // a record is half an hour old
		// The start has no notes: the records in the log may be of any time, until the start has
		// read them.
		w.must(p.Announcer, 1, 7*aDay)
		disk = p.end(disk)
		if err := disk.Remove(filepath.Join(logDir, "lease")); err != nil {
			t.Fatal(err)
		}
		begun = time.Now()
		p = launch(t, w.tables(), identity{ID: "0badcaff"}, w.on(disk, logDir), w.floors, slowly)
		<-p.First()
		if err := w.sends(p.Announcer, time.Now()); err != nil {
			t.Fatal(err)
		}
		rows, err := lease.List(t.Context(), w.store, "")
		if err != nil || len(rows) != 2 || !rows[1].Floor.IsZero() || rows[1].State != lease.Holding {
			t.Errorf("the rows are %+v, %v", rows, err)
		}
		time.Sleep(hour + 11*time.Second)
		if rows, err = lease.List(t.Context(), w.store, ""); err != nil || !rows[1].Floor.Equal(time.Now().Add(-7*aDay-hour-12*time.Second).Truncate(aDay)) {
			t.Errorf("the rows are %+v, %v", rows, err)
		}
	})
}

// A start that enters Holding while its log has records has a floor under these.
func TestFloorOfNewRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		noon()
		w, disk := newWard(t), logDisk(t)
		w.took()
		w.times = append(w.times, time.Now().Add(-4*aDay))
		o := lease.Options{ID: "0badcafe"}
		w.on(disk, logDir)(&o)
		w.floors(&o)
		a := announcerOf(t, w.tables(), o)
		if err := w.sends(a, time.Now()); err != nil {
			t.Fatal(err)
		}
		w.keeps(disk, 4*aDay, 4*aDay)
	})
}

// The file of commit a960ca37 has no state beside a floor. It says that the row holds.
func TestFloorWithoutState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		noon()
		w, disk := newWard(t), logDisk(t)
		p := w.launch(disk, w.floors)
		w.must(p.Announcer, 1, 0)
		disk = p.end(disk)
		path := filepath.Join(logDir, "lease")
		text, err := fsys.ReadFile(disk, path)
		as := bytes.Replace(text, []byte(`"state":"holding"`), []byte(`"state":""`), 1)
		if err != nil || bytes.Equal(as, text) || !bytes.Contains(text, []byte(`"floor":"`)) {
			t.Fatalf("the notes are %s, %v", text, err)
		}
		if err := fsys.Replace(disk, path, as); err != nil {
			t.Fatal(err)
		}
		w.away()
		p = w.launch(disk, w.floors)
		if err := w.sends(p.Announcer, time.Now()); err != nil {
			t.Error(err)
		}
	})
}

// A copy of a log relies on no floor, and with best effort there is none: the ingester accepts
// records with any row.
func TestFloorUnreliable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		noon()
		w, dir := newWard(t), t.TempDir()
		p := launch(t, w.tables(), identity{ID: "0badcafe"}, w.on(fsys.OS(), dir), w.floors)
		<-p.First()
		w.must(p.Announcer, 1, 0)
		time.Sleep(time.Second)
		twin := copyDir(t, dir)
		w.away()
		q := launch(t, w.tables(), identity{ID: "0badcafe"}, w.on(fsys.OS(), twin), w.floors)
		<-q.First()
		if err := w.sends(q.Announcer, time.Now()); err == nil {
			t.Error("a copy accepts a record by the file of the first log")
		}
		w.setFault(nil)
		p.kill()
		q.kill()
		time.Sleep(time.Minute)
		b := launch(t, w.tables(), identity{ID: "0badcafe"}, w.on(fsys.OS(), dir), w.floors, func(o *lease.Options) { o.BestEffort = true })
		<-b.First()
		time.Sleep(11 * time.Second)
		if r := w.row(); !r.Floor.IsZero() || !r.BestEffort || r.State != lease.Holding {
			t.Errorf("with best effort the row is %+v", r)
		}
		b.kill()
	})
}

// Spares compares the end of a range with the floor.
func TestSpares(t *testing.T) {
	floor := time.Date(2026, 11, 26, 3, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		row  lease.Ingester
		to   int64
		want bool
	}{
		{lease.Ingester{Floor: floor}, floor.UnixNano(), true},
		{lease.Ingester{Floor: floor}, floor.UnixNano() + 1, false},
		{lease.Ingester{Floor: floor}, math.MinInt64, true},
		{lease.Ingester{Floor: floor}, math.MaxInt64, false},
		{lease.Ingester{Floor: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}, math.MaxInt64, false},
		{lease.Ingester{Floor: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}, math.MaxInt64 - 1, true},
		{lease.Ingester{Floor: floor, BestEffort: true}, 0, false},
		{lease.Ingester{}, math.MinInt64, false},
	} {
		if got := c.row.Spares(c.to); got != c.want {
			t.Errorf("floor %v, best effort %v, up to %d: %v", c.row.Floor, c.row.BestEffort, c.to, got)
		}
	}
	for _, c := range []struct {
		floors []time.Time
		want   string
	}{
		{nil, ""},
		{[]time.Time{floor}, "; records before 2026-11-26T03:00:00Z are whole without it"},
		{[]time.Time{floor, floor.Add(-hour)}, "; records before 2026-11-26T02:00:00Z are whole without them"},
		{[]time.Time{floor, {}}, ""},
	} {
		if got := lease.Whole(c.floors...); got != c.want {
			t.Errorf("%v: %q", c.floors, got)
		}
	}
}
