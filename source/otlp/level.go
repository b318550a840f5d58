package otlp

import (
	"strconv"

	"blobtail/record/meaning"
	"blobtail/record/names"
)

// levelIn gives a head without a level that of attributes, and returns those that are fields.
func (w *walker) levelIn(list []attribute, h *meaning.Head) (rest []attribute) {
	if len(h.Level) > 0 || len(list) == 0 {
		return list
	}
	w.pairs = w.pairs[:0]
	for i := range list {
		v, word := list[i].value, []byte(nil)
		switch s := &w.entry.set; v.kind {
		case text, nested:
			word = v.bytes
		case integer:
			from := len(s.text)
			s.text = strconv.AppendInt(s.text, int64(v.bits), 10)
			word = s.text[from:]
		}
		w.pairs = append(w.pairs, names.Pair{Name: asString(list[i].key), Value: word, JSON: v.kind != text})
	}
	c := names.BestLevel(w.pairs, names.OfOTLP)
	if h.SetLevel(c); c.Spent > 0 {
		list = append(list[:c.Spent-1], list[c.Spent:]...)
	}
	return list
}
