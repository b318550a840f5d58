package access

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"github.com/rs/zerolog"

	"blobtail/storage/fsys"
)

// saveEvery is how often Run saves the services that tokens have sent.
const saveEvery = time.Minute

// Remember reads the services that tokens have sent from a file, and has Run save them
// there: else all services would be new after a start, and the limit of new services would
// reject their records. It is called before Run. A file that is missing or damaged is
// logged, and is no error.
func (t *Tokens) Remember(path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.memory = path
	recall(path, t.meters, t.log)
}

// save writes the services that tokens have sent.
func (t *Tokens) save() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.memory != "" {
		keep(t.memory, t.meters, t.log)
	}
}

// Everybody limits the new services of all senders together. Any number of goroutines may use it.
type Everybody struct {
	token Token
	path  string // of the services that were sent; "": they are not kept
	log   zerolog.Logger
}

// everybody is the id in the file.
const everybody = "everybody"

// NewEverybody makes a limit of new services within an hour; 0: none. It reads the services that were
// sent from a file, and Run saves them there; "" for none. A file that is missing or damaged is logged,
// and is no error.
func NewEverybody(services int, path string, log zerolog.Logger) *Everybody {
	e := &Everybody{token: Token{ID: everybody, Limits: Limits{Services: services}, meter: new(meter)}, path: path, log: log}
	if path != "" && services > 0 {
		recall(path, e.meters(), log)
	}
	return e
}

func (e *Everybody) meters() map[string]*meter { return map[string]*meter{everybody: e.token.meter} }

// Take charges a service if it is new. Before one is refused, held is asked whether it is not new;
// nil: nobody is. The error is a [LimitError] if there have been too many within an hour.
func (e *Everybody) Take(service string, held func(service string) bool) error {
	err := e.token.TakeService(service)
	if err != nil && held != nil && held(service) {
		return e.token.takeService(service, true)
	}
	return err
}

// Run saves the services every minute, and once more when ctx ends.
func (e *Everybody) Run(ctx context.Context) {
	if e.path != "" && e.token.Limits.Services > 0 {
		everyMinute(ctx, func() { keep(e.path, e.meters(), e.log) })
	}
}

// everyMinute calls save until ctx ends, and then once more.
func everyMinute(ctx context.Context, save func()) {
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	defer save()
	for {
		select {
		case <-tick.C:
			save()
		case <-ctx.Done():
			return
		}
	}
}

// recall reads the services of meters from a file.
func recall(path string, meters map[string]*meter, log zerolog.Logger) {
	text, err := fsys.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var known map[string]map[string]time.Time
	if err == nil {
		err = json.Unmarshal(text, &known)
	}
	if err != nil {
		log.Warn().Err(err).Str("file", path).Msg("the services that were sent are not known; all are new")
		return
	}
	for id, services := range known {
		m := meters[id]
		if m == nil {
			continue
		}
		m.mu.Lock()
		m.known = services
		m.mu.Unlock()
	}
}

// keep writes the services of meters to a file, if they have changed.
func keep(path string, meters map[string]*meter, log zerolog.Logger) {
	all, changed := make(map[string]map[string]time.Time), false
	for id, m := range meters {
		m.mu.Lock()
		changed = changed || m.changed
		m.changed = false
		if len(m.known) > 0 {
			services := make(map[string]time.Time, len(m.known))
			for service, last := range m.known {
				services[service] = last.Truncate(time.Second)
			}
			all[id] = services
		}
		m.mu.Unlock()
	}
	if !changed {
		return
	}
	text, err := json.Marshal(all)
	if err == nil {
		err = fsys.Replace(fsys.OS(), path, text)
	}
	if err != nil {
		log.Warn().Err(err).Str("file", path).Msg("the services that were sent are not saved; they are new after a start")
	}
}
