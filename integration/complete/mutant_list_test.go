package complete_test

// anotherStart removes a rule: an ingester that answers a question reports another
// ingester with its id.
var anotherStart = edit{"reading/unflushed/live/peers/peers.go", `				l.other = errAnother
`, `				l.other = nil
`}

// lossUntold removes a rule: an ingester that answers a question reports losses in the rows
// of others.
var lossUntold = edit{"reading/unflushed/live/fan.go", `		case lost != "":`, `		case lost != "" && f == nil:`}

// mutants are the rules that a complete read rests on, each left out. Rules of callers
// are left out of their stand-ins in this package.
var mutants = []mutant{
	// Duties of an ingester.
	{name: "acknowledged before the row says holding", edits: []edit{{"internal/lease/lease.go",
		`		if a.o.BestEffort {
			return func() {}, nil
		}
`, `		if try != nil {
			return func() {}, nil
		}
`}}},
	{name: "idle written without a condition", first: 238, edits: []edit{{"internal/lease/lease.go",
		`	version, err := a.tables.Swap(ctx, Table, Partition, next.row())
	if err != nil {
`, `	version := ""
	if want.state == Holding {
		version, err = a.tables.Swap(ctx, Table, Partition, next.row())
	} else {
		err = a.tables.Upsert(ctx, Table, Partition, []storage.Row{next.row()})
	}
	if err != nil {
`}}},
	{name: "the file leaves holding after the row", first: 69, edits: []edit{{"internal/lease/lease.go",
		`		if err := a.notes.change(func(n *notes) { n.say(claim{"", unknown}) }); err != nil {
			return err
		}
`, ``}}},
	{name: "a start assumes that the row says holding", edits: []edit{{"internal/lease/announcer.go",
		`a.holding.Store(notes.State == Holding)`, `a.holding.Store(true)`}}},
	{name: "idle while the log has records", edits: []edit{{"internal/lease/lease.go",
		`	if _, some := a.o.Oldest(); some {
		a.busy.Store(now.UnixNano())
		return claim{Holding, a.lifted()}
	}
`, ``}}},
	{name: "stopped while the log has records", first: 1236, edits: []edit{{"internal/lease/announcer.go",
		`		if empty && a.rest(0).state != Holding {
`, `		if empty || a.rest(0).state != Holding || a.ended != nil {
`}}},
	{name: "a copy relies on the file of the first log", first: 322, edits: []edit{{"internal/lease/notes.go",
		`		n.State, n.Writers = "", nil
`, ``}}},
	{name: "a copy writes the row of the first log", first: 322, edits: []edit{{"internal/lease/notes.go",
		`		n.State, n.Writers = "", nil
`, `		n.State = ""
`}}},
	{name: "the row of another process taken for the own", edits: []edit{{"internal/lease/lease.go",
		`	return row.Process == a.process || slices.Contains(a.notes.Writers, row.Process)
`, `	return row.Process == a.process || len(row.Process) > 0 || slices.Contains(a.notes.Writers, row.Process)
`}}},
	{name: "a table that lost rows is no loss", edits: []edit{{"internal/lease/lease.go",
		`	a.lost = a.lost.join(Loss{Since: now, Until: now})
`, `	_ = now
`}}},
	{name: "a record below the floor acknowledged", first: 19, edits: []edit{{"internal/lease/lease.go",
		`a.holding.Load() && oldest >= a.floor.Load() {`, `a.holding.Load() {`}}},
	{name: "the floor rises over records in the log", first: 206, edits: []edit{{"internal/lease/floor.go",
		`		earliest = t
	}
	switch`, `		_ = t
	}
	switch`}}},
	{name: "a start takes the floor of the file for none", first: 1673, edits: []edit{{"internal/lease/announcer.go",
		`a.floor.Store(notes.floor())`, `a.floor.Store(unknown)`}}},

	// Duties of the ingester that answers a reader.
	{name: "whoever answers at an address is believed", first: 1361, edits: []edit{{"reading/unflushed/live/alone.go",
		`	if err = a.Self.mustBe(want); err == nil {
`, `	if err = want.mustBe(want); err == nil {
`}, {"reading/unflushed/live/fan.go",
		`		snapshots[s.peer.ID] = s.answer.Self.Process
`, `		snapshots[s.peer.ID] = s.peer.Process
`}}},
	{name: "an old list of the others called a new one", first: 488, edits: []edit{{"reading/unflushed/live/fan.go",
		`f.rowsAge = max(0, came.Sub(roll.Listed))`, `f.rowsAge = 0 * came.Sub(roll.Listed)`}}},

	// Duties of a reader.
	{name: "blobs listed before ingesters are asked", first: 23, edits: []edit{{"reading/run.go",
		`	if q, told, err = m.shares.gather(ctx, s.r.o.Logs, m); err != nil {
`, `	early := map[string]bool{}
	s.r.o.Blobs.Over(func(store storage.BlobStore) storage.BlobStore {
		for b := range store.List(ctx, "", "") {
			early[b.Key] = true
		}
		return store
	})
	if q, told, err = m.shares.gather(ctx, s.r.o.Logs, m); err != nil {
`}, {"reading/run.go",
		`	reader := s.r.o.Blobs
`, `	reader := s.r.o.Blobs.Over(func(store storage.BlobStore) storage.BlobStore { return listed{store, early} })
`}, {"reading/run.go",
		`// note tells the guard`, `// listed is a store of which a listing was made before.
type listed struct {
	storage.BlobStore
	early map[string]bool
}

func (l listed) List(ctx context.Context, prefix, after string) iter.Seq2[storage.Blob, error] {
	return func(yield func(storage.Blob, error) bool) {
		for b, err := range l.BlobStore.List(ctx, prefix, after) {
			if (err != nil || l.early[b.Key]) && !yield(b, err) {
				return
			}
		}
	}
}

// note tells the guard`}, {"reading/run.go",
		`	"errors"
	"slices"
`, `	"errors"
	"iter"
	"slices"
`}, {"reading/run.go",
		`	"blobtail/record"
`, `	"blobtail/record"
	"blobtail/storage"
`}}},
	{name: "rows from a list that was read before", edits: []edit{{"reading/unflushed/unflushed.go",
		`	gathered atomic.Int64
`, `	gathered atomic.Int64
	cached   *survey
`}, {"reading/unflushed/roster.go",
		`	s := &survey{begun: time.Now(), done: make(chan struct{})}
`, `	if r.cached != nil {
		return r.cached
	}
	s := &survey{begun: time.Now(), done: make(chan struct{})}
	r.cached = s
`}}},
	{name: "no answer is compared with the rows", first: 149, edits: []edit{{"reading/unflushed/roster.go",
		`h.any && i.Process != "" && h.snapshots[i.ID] == i.Process && i.StoreID == k.store`, `h.any`}}},
	{name: "the process is not compared", first: 446, edits: []edit{{"reading/unflushed/roster.go",
		`h.snapshots[i.ID] == i.Process`, `h.snapshots[i.ID] != ""`}, {"reading/unflushed/live/self.go",
		`	case want.Process != "" && s.Process != want.Process:
`, `	case s.Process == "" && want.Process != "":
`}, anotherStart}},
	{name: "the asked ingester does not look whose its row is", first: 446, edits: []edit{anotherStart}},
	{name: "the store is not compared", first: 39, edits: []edit{{"reading/unflushed/ask.go",
		`case self.Store == k.store && k.store != "":`, `case self.Store != "" && k.store != "":`}, {"reading/unflushed/live/self.go",
		`case s.Store != want.Store:`, `case s.Store == "" && want.Store == "":`}}},
	{name: "a silent row believed to hold nothing", edits: []edit{{"reading/unflushed/roster.go",
		`		if i.State == lease.Holding && !answered {
`, `		if i.State == lease.Holding && !answered && i.Live(k.now) {
`}, {"reading/unflushed/live/fan.go",
		`		case errs[i] != nil && holding:
`, `		case errs[i] != nil && holding && p.Live(roll.Now):
`}}},
	{name: "a silent row left out by the range", first: 395, edits: []edit{{"reading/unflushed/roster.go",
		`		if !h.told[i.ID] {
`, `		if !h.told[i.ID] && (i.Live(known.now) || i.Oldest.IsZero() || q.Range.To > i.Oldest.UnixNano()) {
`}, {"reading/unflushed/live/fan.go",
		`		case errs[i] != nil && holding:
`, `		case errs[i] != nil && holding && (p.Live(roll.Now) || p.Oldest.IsZero() || f.query.To > p.Oldest.UnixNano()):
`}}},
	{name: "a range that reaches beyond the floor needs no answer", edits: []edit{{"internal/lease/heartbeat.go",
		`return !i.Floor.IsZero() && !i.BestEffort && to != math.MaxInt64 && !time.Unix(0, to).After(i.Floor)`,
		`return !i.Floor.IsZero() && !i.BestEffort && to != math.MaxInt64 && !time.Unix(0, to).After(i.Floor.Add(time.Hour))`}}},
	{name: "a range up to the newest needs no answer", edits: []edit{{"internal/lease/heartbeat.go",
		` && to != math.MaxInt64 && !time.Unix(0, to).After(i.Floor)`, ` && (to == math.MaxInt64 || !time.Unix(0, to).After(i.Floor))`}}},
	{name: "rows that tell of a loss believed", edits: []edit{{"reading/unflushed/roster.go",
		`if lost != "" && !slices`, `if lost != "" && i.GivenUp.After(i.At) && !slices`}, lossUntold, {"internal/dev/testkit/box/process.go",
		`	if loss := h.lost(); err == nil && loss.Any() {
`, `	if loss := h.lost(); err == nil && loss.Any() && ctx == nil {
`}}},
	{name: "the asked ingester does not tell of losses in other rows", first: 116861, edits: []edit{lossUntold}},
	{name: "tables that cannot be read are no matter", first: 130, edits: []edit{{"reading/unflushed/roster.go",
		`	default:
		report.problem(fmt.Errorf("the table of ingesters cannot be read, so nobody knows`, `	case h == nil:
		report.problem(fmt.Errorf("the table of ingesters cannot be read, so nobody knows`}}},
	{name: "the asked ingester's old list will do", first: 488, edits: []edit{{"reading/unflushed/roster.go",
		`		if h.any && h.rowsAge != 0 {
`, `		if h.any && h.rowsAge < 0 {
`}}},

	// Promises to a sender: see the repeats of package buffer.
	{name: "an origin without its outcome taken for a repeat", edits: []edit{{"buffer/repeats.go",
		`	case o.outcome.Same(r.Outcome):
`, `	case len(r.Lines) > 0:
`}}},
}
