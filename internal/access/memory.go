package access

import (
	"encoding/json"
	"errors"
	"io/fs"
	"time"

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
	text, err := fsys.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var known map[string]map[string]time.Time
	if err == nil {
		err = json.Unmarshal(text, &known)
	}
	if err != nil {
		t.log.Warn().Err(err).Msg("the services that tokens have sent are not known; all are new")
		return
	}
	for id, services := range known {
		m := t.meters[id]
		if m == nil {
			continue
		}
		m.mu.Lock()
		m.known = services
		m.mu.Unlock()
	}
}

// save writes the services that tokens have sent.
func (t *Tokens) save() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.memory == "" {
		return
	}
	all, changed := make(map[string]map[string]time.Time), false
	for id, m := range t.meters {
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
		err = fsys.Replace(fsys.OS(), t.memory, text)
	}
	if err != nil {
		t.log.Warn().Err(err).Msg("the services that tokens have sent are not saved; they are new after a start")
	}
}
