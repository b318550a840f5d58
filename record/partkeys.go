package record

// partKeys are the first keys of the last record by parts. Most records of a request have the
// keys of the one before. Then a comparison shows the form of each key, and that none is
// repeated. The number behind a repeated key depends only on the keys before it, so it is the same
// too. partKeys does for parts the work that [shape] does for objects.
type partKeys struct {
	keys    []partKey
	text    []byte
	renames bool // the record had Head.Renames
	on      bool // each key of the record so far is the next one here
	used    int  // of these keys by the record, while on; its fields are noted when it leaves them
}

// begin begins a record.
func (k *partKeys) begin(renames bool) {
	k.on, k.used = true, 0
	if k.renames != renames {
		k.renames = renames
		k.cut(0)
	}
}

// A partKey is offsets into the text: of the name as it was given, and of the key with its
// comma, quotes and colon.
type partKey struct {
	name, key, end int32
	hash           uint32
	tag            Tag
}

// Bounds of the memory of partKeys.
const (
	keptPartKeys   = 64
	longestPartKey = 64
)

// next returns the next key, if that is its name, otherwise nil.
func (k *partKeys) next(p *Scanner, name string) *partKey {
	if !k.on {
		return nil
	}
	if k.used < len(k.keys) {
		key := &k.keys[k.used]
		if string(k.text[key.name:key.key]) == name {
			k.used++
			if key.tag != 0 {
				p.note(key.tag, k.used-1)
			}
			return key
		}
	}
	k.leave(p)
	k.cut(k.used)
	return nil
}

// leave notes the fields with these keys: the next key is compared with each of them.
func (k *partKeys) leave(p *Scanner) {
	if !k.on {
		return
	}
	k.on = false
	for at := range k.keys[:k.used] {
		key, from := &k.keys[at], len(p.names)
		p.names = append(p.names, k.text[key.key+2:key.end-2]...)
		p.Fields = append(p.Fields, Field{flags: keyDirty, name: int32(from), nameEnd: int32(len(p.names)), hash: key.hash, Tag: key.tag})
		p.seen.add(key.hash)
	}
}

// cut forgets the keys from the one with this number on.
func (k *partKeys) cut(at int) {
	if at < len(k.keys) {
		k.text = k.text[:k.keys[at].name]
		k.keys = k.keys[:at]
	}
}

// learn notes the key of the newest field of a record, which has the number at, if all keys
// before it are here.
func (k *partKeys) learn(at int, name string, key []byte, f *Field) {
	if len(k.keys) != at || at >= keptPartKeys || len(key) > longestPartKey {
		return
	}
	from := len(k.text)
	k.text = append(k.text, name...)
	start := len(k.text)
	k.text = append(append(append(k.text, ',', '"'), key...), '"', ':')
	k.keys = append(k.keys, partKey{name: int32(from), key: int32(start), end: int32(len(k.text)), hash: f.hash, tag: f.Tag})
}
