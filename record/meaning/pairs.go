package meaning

import "blobtail/record/names"

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
