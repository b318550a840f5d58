package dir

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"syscall"

	"blobtail/storage"
	"blobtail/storage/fsys"
)

// An object's file is the body and then one zstd skippable frame. All numbers are
// little endian:
//
//	magic    4  0x184D2A5D, a skippable frame that is not the index's
//	length   4  of all that follows
//	attrs    n  lines "name=value\n": content-type, content-encoding, metadata
//	body     8  length of the body, that is, the offset of the frame
//	n        4  length of attrs
//	crc      4  CRC-32C of attrs, body, n
//	end      4  "btO1"
//
// A file with this end, a matching crc and lengths that add up to its size is whole.
// zstd -dc prints the body and skips the frame.
const (
	frameMagic  = 0x184D2A5D
	frameHead   = 8
	frameEnd    = "btO1"
	frameTail   = 8 + 4 + 4 + 4
	maxFrame    = 4 << 10 // bytes read from a file's end, more than any frame takes
	contentType = "content-type"
	contentEnc  = "content-encoding"
)

// errForeign says that a file has no frame: it is of another program, or was cut short.
var errForeign = errors.New("the end is missing")

// appendFrame appends the frame for a body of the given length. The attributes
// have been checked: no value holds a newline.
func appendFrame(dst []byte, bodyLen int64, a storage.Attrs) []byte {
	var attrs []byte
	line := func(name, value string) {
		if value != "" {
			attrs = fmt.Appendf(attrs, "%s=%s\n", name, value)
		}
	}
	line(contentType, a.ContentType)
	line(contentEnc, a.ContentEncoding)
	for _, name := range slices.Sorted(maps.Keys(a.Metadata)) {
		line(name, a.Metadata[name])
	}
	dst = binary.LittleEndian.AppendUint32(dst, frameMagic)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(attrs)+frameTail))
	start := len(dst)
	dst = append(dst, attrs...)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(bodyLen))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(attrs)))
	dst = binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli()))
	return append(dst, frameEnd...)
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) } // made once, in crc32

// parseFrame finds the frame at the end of a file of the given size. tail is the end of
// the file. parseFrame returns the length of the body before the frame.
func parseFrame(tail []byte, size int64) (bodyLen int64, a storage.Attrs, err error) {
	n := len(tail) - frameTail
	if n < frameHead || string(tail[len(tail)-len(frameEnd):]) != frameEnd {
		return 0, a, errForeign
	}
	end := tail[n:]
	bodyLen = int64(binary.LittleEndian.Uint64(end))
	attrsLen := int64(binary.LittleEndian.Uint32(end[8:]))
	if attrsLen > int64(n-frameHead) || bodyLen != size-frameTail-attrsLen-frameHead {
		return 0, a, errors.New("lengths do not add up")
	}
	attrs := tail[n-int(attrsLen) : n]
	sum := crc32.Checksum(tail[n-int(attrsLen):n+12], castagnoli())
	head := tail[n-int(attrsLen)-frameHead:]
	if sum != binary.LittleEndian.Uint32(end[12:]) ||
		binary.LittleEndian.Uint32(head) != frameMagic ||
		int64(binary.LittleEndian.Uint32(head[4:])) != attrsLen+frameTail {
		return 0, a, errors.New("attributes fail their check")
	}
	values := map[string]string{}
	for line := range strings.Lines(string(attrs)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		values[name] = value
	}
	a = storage.Attrs{ContentType: values[contentType], ContentEncoding: values[contentEnc]}
	delete(values, contentType)
	delete(values, contentEnc)
	if len(values) > 0 {
		a.Metadata = values
	}
	return bodyLen, a, nil
}

// describe reads the attributes of an open file, with one read of its end. A damaged file
// is not as it was written: cut short, or changed. For it describe returns the size of
// the file, no attributes, and [storage.ErrDamaged].
func describe(f fsys.File, key string) (storage.Blob, error) {
	fi, err := f.Stat()
	if err != nil {
		return storage.Blob{}, err
	}
	if !fi.Mode().IsRegular() {
		return storage.Blob{}, storage.ErrNotExist
	}
	size := fi.Size()
	tail := make([]byte, min(size, maxFrame))
	_, err = io.ReadFull(io.NewSectionReader(f, size-int64(len(tail)), int64(len(tail))), tail)
	b := storage.Blob{Key: key, Size: size, Created: fi.ModTime(), Version: version(fi, tail)}
	if err != nil {
		return b, fmt.Errorf("%w: %v", storage.ErrDamaged, err)
	}
	bodyLen, attrs, err := parseFrame(tail, size)
	if errors.Is(err, errForeign) && fi.Mode().Perm()&0o222 != 0 && !cutInFrame(tail) {
		return b, nil
	}
	if err != nil {
		return b, fmt.Errorf("%w: %v", storage.ErrDamaged, err)
	}
	b.Size, b.Attrs = bodyLen, attrs
	return b, nil
}

// version distinguishes a file from any earlier or later file of its name. An inode
// number may be used again within one tick of the file system's clock. But then the
// ends of the files differ: they hold the attributes, and each batch has its own id.
// Two files with the same inode number, time and end count as one, such as a mark
// without attributes that is removed and made again at once.
func version(fi fs.FileInfo, tail []byte) string {
	var inode uint64
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		inode = st.Ino
	}
	return fmt.Sprintf("%x-%x-%x-%08x", inode, fi.ModTime().UnixNano(), fi.Size(), crc32.Checksum(tail, castagnoli()))
}

// cutInFrame reports whether a file without a frame at its end has the beginning of
// one, cut off by the end of the file.
func cutInFrame(tail []byte) bool {
	magic := string(binary.LittleEndian.AppendUint32(nil, frameMagic))
	i := strings.LastIndex(string(tail), magic)
	if i < 0 || len(tail)-i < frameHead {
		return false
	}
	length := int64(binary.LittleEndian.Uint32(tail[i+4:]))
	return length < maxFrame && int64(len(tail)-i-frameHead) < length
}
