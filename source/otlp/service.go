package otlp

import (
	"slices"

	"blobtail/record/names"
)

// Options are the settings of the protocol. The zero value is ready for use.
type Options struct {
	// ServiceFrom has the attributes that name the service of a resource without a service.name, in the
	// order in which they are tried. Empty: none do.
	ServiceFrom []string
}

// nameService finds the service of the resource. Its service.name stays out of the attributes.
func (w *walker) nameService() {
	const own = "service.name"
	s := &w.resource
	w.service, w.named = nil, own
	for i := range s.list {
		if a := &s.list[i]; string(a.key) == own && a.value.kind != null {
			w.scratch = appendWord(w.scratch[:0], a.value)
			// It is long-lived, unlike the scratch.
			s.text = append(s.text, w.scratch...)
			w.service = s.text[len(s.text)-len(w.scratch):]
			s.list = append(s.list[:i], s.list[i+1:]...)
			break
		}
	}
	if len(w.service) == 0 {
		w.deriveService()
	}
}

// deriveService finds the attribute of the resource that its service is derived from. If the sender may
// not send records of that service, they keep the one that they have without.
func (w *walker) deriveService() {
	list := w.resource.list
	at := names.Best(len(list), func(i int) int {
		if v := &list[i].value; v.kind != text || len(v.bytes) == 0 {
			return 0
		}
		return slices.Index(w.from, asString(list[i].key)) + 1
	})
	if at >= 0 && w.to.Takes(list[at].value.bytes) {
		w.service, w.named = list[at].value.bytes, string(list[at].key)
	}
}
