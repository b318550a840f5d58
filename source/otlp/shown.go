package otlp

import (
	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/record/names"
)

// seen sets the time of a record without one: that of a member of the body with a name for it. The
// observed time counts if the message shows none either.
func (w *walker) seen(h *meaning.Head) {
	const day = 86_400e9
	h.Observed = timeOf(w.entry.seen)
	name, best := "observedTimeUnixNano", 0
	for _, m := range w.entry.members {
		place := names.TimePlace(asString(m.key))
		if place == 0 || best > 0 && place > best {
			continue
		}
		w.scratch = appendJSON(w.scratch[:0], m.value)
		if t, ok := meaning.ReadTime(w.scratch, w.to.Arrived()); ok && t%day != 0 && t <= w.to.Arrived()+int64(record.MaxAhead) {
			h.Time, best, name = t, place, "body."+string(m.key)
		}
	}
	h.Why.Time().Note(meaning.FromProtocol, name)
}

// journal makes a text of the message of journald that is an array of bytes.
func (a *attribute) journal() {
	if a.value.kind == nested && string(a.key) == "MESSAGE" {
		if raw := record.Walk(a.value.bytes).Bytes(); raw != nil {
			a.value = value{kind: text, bytes: raw}
		}
	}
}
