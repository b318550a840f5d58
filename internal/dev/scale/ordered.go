package scale

import "slices"

// ordered is a map that can be walked in the order of its keys. Adding is cheap, and the first
// walk after it sorts.
type ordered[V any] struct {
	all   map[string]V
	keys  []string // sorted; may have keys that are gone
	fresh []string // added since
	gone  bool
}

func newOrdered[V any]() *ordered[V] { return &ordered[V]{all: map[string]V{}} }

func (o *ordered[V]) set(key string, v V) {
	if _, ok := o.all[key]; !ok {
		o.fresh = append(o.fresh, key)
	}
	o.all[key] = v
}

func (o *ordered[V]) remove(key string) {
	delete(o.all, key)
	o.gone = true
}

// from returns the keys at or after a key, in order. They are valid until the next change.
func (o *ordered[V]) from(key string) []string {
	if len(o.fresh) > 0 || o.gone {
		keys := append(o.keys, o.fresh...)
		if o.gone {
			keys = slices.DeleteFunc(keys, func(k string) bool { _, ok := o.all[k]; return !ok })
		}
		slices.Sort(keys) // quick where most are sorted
		o.keys, o.fresh, o.gone = slices.Compact(keys), nil, false
	}
	i, _ := slices.BinarySearch(o.keys, key)
	return o.keys[i:]
}
