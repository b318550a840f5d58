package meaning

import (
	"blobtail/record"
	"blobtail/record/names"
)

// Add adds a pair as a field. An empty one with a name of the head is none.
func (b *Parts) Add(p *names.Pair) {
	switch name := p.Field(); {
	case p.IsEmpty() && isHead([]byte(name)):
	case p.JSON:
		b.JSON(name, p.Value)
	default:
		b.Text(name, p.Value)
	}
}

// AddAll adds pairs.
func (b *Parts) AddAll(pairs []names.Pair) {
	for i := range pairs {
		b.Add(&pairs[i])
	}
}

// SetTime gives a head the time of a JSON value that a protocol has under a name; ok is false if it is none.
// original is a text for a field: that of the value, or the other time that the head had.
func (h *Head) SetTime(name string, value []byte, arrived int64) (original []byte, ok bool) {
	ns, ok := ReadTime(value, arrived)
	switch {
	case ok:
		if h.Time != 0 && h.Time != ns {
			original = record.AppendTime(nil, h.Time)
		}
		h.Time = ns
	case !emptyTime(value):
		original = record.TextOf(value)
		h.Unread = h.Unread || h.Time == 0
		h.Why.Time().Pass(name, original, NoTime)
	}
	return original, ok
}

// SetLevel gives a head a level, if there is one.
func (h *Head) SetLevel(c names.Choice) {
	if c.Text != nil {
		h.Level, h.Assumed = c.Text, false
		h.Why.Level().Note(FromField, c.Name)
	}
}

// SetService gives a head a service, if there is one.
func (h *Head) SetService(c names.Choice) {
	if c.Text != nil {
		h.Service = c.Text
		h.Why.Service().Note(FromField, c.Name)
	}
}

// Take gives a head the level and the service that it lacks, and returns the pairs that are fields.
func (h *Head) Take(pairs []names.Pair, v names.Vocabulary) (fields []names.Pair) {
	var level, service names.Choice
	if len(h.Level) == 0 {
		level = names.BestLevel(pairs, v)
		h.SetLevel(level)
	}
	if len(h.Service) == 0 {
		service = names.BestService(pairs, v)
		h.SetService(service)
	}
	fields = pairs[:0]
	for i := range pairs {
		if i+1 != level.Spent && i+1 != service.Spent {
			fields = append(fields, pairs[i])
		}
	}
	return fields
}
