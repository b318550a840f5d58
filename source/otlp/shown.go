package otlp

import (
	"slices"

	"blobtail/record"
)

// seen sets the time of a record without one: that of a member of the body with a name for it. The
// observed time counts if the message shows none either.
func (w *walker) seen(h *record.Head) {
	const day, ahead = 86_400e9, int64(record.MaxAhead)
	h.Observed = timeOf(w.entry.seen)
	if h.Why != nil {
		h.Why.Time.Name = "observedTimeUnixNano"
	}
	best := 0
	for _, m := range w.entry.members {
		place := record.TimePlace(asString(m.key))
		if place == 0 || best > 0 && place > best {
			continue
		}
		w.scratch = appendJSON(w.scratch[:0], m.value)
		if t, ok := record.ReadTime(w.scratch, w.to.Arrived()); ok && t%day != 0 && t <= w.to.Arrived()+ahead {
			h.Time, best = t, place
			if h.Why != nil {
				h.Why.Time = record.Cause{Place: record.FromMember, Name: "body." + string(m.key)}
			}
		}
	}
}

// journal makes texts of the arrays of bytes in the body, if that is an entry of journald.
func (w *walker) journal() {
	members := w.entry.members
	if !slices.ContainsFunc(members, func(m attribute) bool { return string(m.key) == "__REALTIME_TIMESTAMP" }) {
		return
	}
	for i := range members {
		if v := &members[i].value; v.kind == nested && v.bytes[0] == '[' {
			if raw := record.Walk(v.bytes).Bytes(); raw != nil {
				*v = value{kind: text, bytes: raw}
			}
		}
	}
}
