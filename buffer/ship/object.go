package ship

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/s2"

	"blobtail/buffer/runlog"
	"blobtail/buffer/wal"
	"blobtail/record"
	"blobtail/storage"
)

const (
	format = "1"
	// mostRaw is the size from which on an object gets no further record, before it is compressed.
	mostRaw = 8 << 20
)

// object is a part of a log in the store, or the mark of an adopter behind all of them.
type object struct {
	number   int
	store    string
	random   string    // by which a writer recognises its own after a lost answer
	adopter  string    // whose mark it is, "" for a part of a log
	from, to wal.Pos   // of a part
	until    time.Time // when the records of a part were gathered, by the clock of its ingester
	body     []byte
}

func prefix(id string) string { return "_wal/" + id + "/" }

func key(id string, number int) string { return fmt.Sprintf("%s%08d", prefix(id), number) }

func (o *object) key(id string) string { return key(id, o.number) }

func newObject(number int, store string) *object {
	random := make([]byte, 8)
	rand.Read(random)
	return &object{number: number, store: store, random: hex.EncodeToString(random)}
}

// create makes the object under the log of an ingester. taken is the object that has its name already.
func (o *object) create(ctx context.Context, blobs storage.BlobStore, id string) (taken *object, err error) {
	meta := map[string]string{"format": format, "store": o.store, "object": o.random}
	if o.adopter != "" {
		meta["adopter"] = o.adopter
	} else {
		meta["from"], meta["to"] = strconv.FormatUint(uint64(o.from), 10), strconv.FormatUint(uint64(o.to), 10)
		meta["until"] = strconv.FormatInt(o.until.UnixMilli(), 10)
	}
	err = blobs.Create(ctx, o.key(id), o.body, storage.Attrs{ContentType: "application/octet-stream", Metadata: meta})
	if !errors.Is(err, storage.ErrExist) {
		return nil, err
	}
	there, err := blobs.Stat(ctx, o.key(id))
	if err != nil {
		return nil, err
	}
	if there.Metadata["object"] == o.random {
		return nil, nil // the answer to an earlier attempt was lost
	}
	return parse(there)
}

// list returns the objects under the log of an ingester, in order. Those of a newer version are an error.
func list(ctx context.Context, blobs storage.BlobStore, id string) (all []*object, err error) {
	for b, err := range blobs.List(ctx, prefix(id), "") {
		if err != nil {
			return nil, fmt.Errorf("list what was shipped: %w", err)
		}
		o, err := parse(b)
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	// Behind 99999999 the order of names is not that of numbers.
	slices.SortFunc(all, func(x, y *object) int { return cmp.Compare(x.number, y.number) })
	return all, nil
}

func parse(b storage.Blob) (*object, error) {
	name := b.Key[strings.LastIndexByte(b.Key, '/')+1:]
	n, err := strconv.Atoi(name)
	if err != nil || !strings.HasSuffix(key("", n), "/"+name) || b.Metadata["format"] != format {
		return nil, fmt.Errorf("%s: it is no part of a log in format %s: use a newer version, or remove what is not ours", b.Key, format)
	}
	o := &object{number: n, store: b.Metadata["store"], random: b.Metadata["object"], adopter: b.Metadata["adopter"]}
	if o.adopter != "" {
		return o, nil
	}
	from, err1 := strconv.ParseUint(b.Metadata["from"], 10, 64)
	to, err2 := strconv.ParseUint(b.Metadata["to"], 10, 64)
	until, err3 := strconv.ParseInt(b.Metadata["until"], 10, 64)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("%s: %w: its metadata: %w", b.Key, storage.ErrDamaged, err)
	}
	o.from, o.to, o.until = wal.Pos(from), wal.Pos(to), time.UnixMilli(until)
	return o, nil
}

// appendRecord appends a record of a log to the body of an object, before it is compressed.
func appendRecord(p []byte, r *wal.Record) []byte {
	place := runlog.PlaceOrigin(r.Pos, *r.Segment)
	p = append(append(p, r.Type), place[:]...)
	return append(binary.AppendUvarint(p, uint64(len(r.Payload))), r.Payload...)
}

// requests calls f with the requests of the object, in order.
func (o *object) requests(ctx context.Context, blobs storage.BlobStore, id string, f func(*record.Request) error) error {
	raw, err := o.read(ctx, blobs, id)
	for err == nil && len(raw) > 0 {
		var place record.Origin
		if len(raw) < 1+len(place) {
			return o.damaged(id, "it ends within a record")
		}
		typ := raw[0]
		raw = raw[1+copy(place[:], raw[1:]):]
		n, used := binary.Uvarint(raw)
		if used <= 0 || n > uint64(len(raw)-used) {
			return o.damaged(id, "it ends within a record")
		}
		err = runlog.Requests(typ, raw[used:used+int(n)], place, f)
		raw = raw[used+int(n):]
	}
	return err
}

func (o *object) read(ctx context.Context, blobs storage.BlobStore, id string) ([]byte, error) {
	r, err := blobs.Get(ctx, o.key(id), 0, -1)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	if len(body) < 4 {
		return nil, o.damaged(id, "it is cut short")
	}
	// A step of three bytes copies 64 at most. So damage to the length takes no memory.
	n, err := s2.DecodedLen(body[4:])
	if err == nil && n > 64*len(body) {
		err = fmt.Errorf("so few cannot become %d bytes", n)
	}
	var raw []byte
	if err == nil {
		raw, err = s2.Decode(nil, body[4:])
	}
	if err == nil && checksum(raw) != binary.LittleEndian.Uint32(body) {
		err = errors.New("its checksum differs")
	}
	if err != nil {
		return nil, o.damaged(id, err.Error())
	}
	return raw, nil
}

// appendBody appends the body of an object. Snappy costs a third of the CPU of the fastest zstd, and an
// object lives for minutes.
func appendBody(dst, raw []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, checksum(raw))
	dst = slices.Grow(dst, s2.MaxEncodedLen(len(raw)))
	return dst[:len(dst)+len(s2.EncodeSnappy(dst[len(dst):cap(dst)], raw))]
}

func checksum(raw []byte) uint32 { return crc32.Checksum(raw, crc32.MakeTable(crc32.Castagnoli)) }

func (o *object) damaged(id, reason string) error {
	return fmt.Errorf("%s: %w: %s", o.key(id), storage.ErrDamaged, reason)
}
