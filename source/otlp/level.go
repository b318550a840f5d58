package otlp

import (
	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/record/names"
)

// levelUnless is levelIn for a record without a level.
func (w *walker) levelUnless(level []byte, list []attribute, why *meaning.Why) (_ []byte, rest []attribute) {
	if len(level) > 0 {
		return level, list
	}
	return w.levelIn(list, why)
}

// levelIn returns the level that attributes name, nil for none, and the others of them. It is for
// records without a severity. why may be nil.
func (w *walker) levelIn(list []attribute, why *meaning.Why) (level []byte, rest []attribute) {
	at, best := -1, 0
	var beside names.Beside
	for i := range list {
		beside.Note(asString(list[i].key), list[i].value.bytes)
	}
	for i := range list {
		a := &list[i]
		if a.value.kind != text && a.value.kind != integer {
			continue
		}
		w.scratch = appendWord(w.scratch[:0], a.value)
		if l, place := beside.FieldLevel(asString(a.key), w.scratch); l != record.Other && (best == 0 || place < best) {
			at, best, level = i, place, w.words[l]
		}
	}
	if at < 0 {
		return w.stayingLevel(list, &beside, why), list
	}
	why.Level().Note(meaning.FromField, asString(list[at].key))
	return level, append(list[:at], list[at+1:]...)
}

// stayingLevel is levelIn for attributes that stay: those of [names.Beside.StayingLevel], and the
// objects of the Elastic Common Schema and of Roarr.
func (w *walker) stayingLevel(list []attribute, beside *names.Beside, why *meaning.Why) []byte {
	for i := range list {
		name, v := asString(list[i].key), list[i].value
		l := record.Other
		switch {
		case v.kind == text:
			w.scratch = appendWord(w.scratch[:0], v)
			l = beside.StayingLevel(name, w.scratch)
		case v.kind == nested && (name == "log" || name == "context"):
			member := map[string]string{"log": "level", "context": "logLevel"}[name]
			w.scratch = appendJSON(w.scratch[:0], v)
			if inner, ok := record.Lookup(w.scratch, member); ok && w.scratch[0] == '{' {
				name, l = name+"."+member, record.ParseLevel(record.TextOf(inner))
			}
		}
		if l != record.Other {
			why.Level().Note(meaning.FromField, name)
			return w.words[l]
		}
	}
	return nil
}
