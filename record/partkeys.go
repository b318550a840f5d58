package record

// partKeys are the first keys of the last record by parts. Most records of a request have the
// keys of the one before. Then a comparison shows the form of each key, and that none is
// repeated. The number behind a repeated key depends only on the keys before it, so it is the
// same too. It is for parts what [shape] is for objects.
type partKeys struct {
	keys    []partKey
	text    []byte
	renames bool // the record had Head.Renames
	on      bool // each key of the record so far is the next one here
}

// begin begins a record.
func (k *partKeys) begin(renames bool) {
	if k.on = true; k.renames != renames {
		k.renames = renames
		k.cut(0)
	}
}

// A partKey is offsets into the text: of the name as it was given, and of the key with its
// comma, quotes and colon.
type partKey struct {
	name, key, end int32
	hash           uint32
	known          name
}

// Bounds of the memory of partKeys.
const (
	keptPartKeys   = 64
	longestPartKey = 64
)

// next adds a field with the next key, if that is its name. Otherwise it returns nil.
func (k *partKeys) next(p *Parser, name string) *partKey {
	if !k.on {
		return nil
	}
	at := len(p.fields)
	if at < len(k.keys) {
		key := &k.keys[at]
		if string(k.text[key.name:key.key]) == name {
			from := len(p.names)
			p.names = append(p.names, k.text[key.key+2:key.end-2]...)
			p.fields = append(p.fields, field{flags: keyDirty, name: int32(from), nameEnd: int32(len(p.names)), hash: key.hash, known: key.known})
			if key.known != 0 {
				p.slots[key.known] = int32(at)
				p.found |= 1 << key.known
			}
			return key
		}
	}
	k.on = false
	for i := range p.fields {
		p.seen.add(p.fields[i].hash)
	}
	k.cut(at)
	return nil
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
func (k *partKeys) learn(at int, name string, key []byte, f *field) {
	if len(k.keys) != at || at >= keptPartKeys || len(key) > longestPartKey {
		return
	}
	from := len(k.text)
	k.text = append(k.text, name...)
	start := len(k.text)
	k.text = append(append(append(k.text, ',', '"'), key...), '"', ':')
	k.keys = append(k.keys, partKey{name: int32(from), key: int32(start), end: int32(len(k.text)), hash: f.hash, known: f.known})
}
