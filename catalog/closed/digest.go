package closed

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"strconv"

	"blobtail/blobfmt"
)

// Sums stand for the names and batches of the blobs of a day, or of some of its hours.
type Sums struct {
	Day   [16]byte    // the first bits of a SHA-256 over all of them
	Hours [24][8]byte // the same over those of each hour; zero: there are none
}

// A Digester sums up blobs that it gets in the order of their keys. The zero value is ready for use.
type Digester struct {
	day, hour hash.Hash
	at        int // the hour
	line      []byte
	sums      Sums
}

// Add adds a blob by its key. What counts is its name below its day.
func (d *Digester) Add(key string, batch blobfmt.BatchID) {
	name := key[len(key)-len("1500/000001.log"):]
	at := int(name[0]-'0')*10 + int(name[1]-'0')
	switch {
	case d.day == nil:
		d.day, d.hour, d.at = sha256.New(), sha256.New(), at
	case d.at != at:
		d.sums = d.Sums()
		d.hour.Reset()
		d.at = at
	}
	d.line = append(append(d.line[:0], name...), ' ')
	d.line = append(hex.AppendEncode(d.line, batch[:]), '\n')
	d.day.Write(d.line)
	d.hour.Write(d.line)
}

// Sums returns the sums of the blobs so far.
func (d *Digester) Sums() Sums {
	sums := d.sums
	if d.day != nil {
		copy(sums.Day[:], d.day.Sum(nil))
		copy(sums.Hours[d.at][:], d.hour.Sum(nil))
	}
	return sums
}

// Digests are what the metadata of a part say of its day.
type Digests struct {
	// With sums up all blobs of the part, Without all but the replaced ones. If the blobs of the listed
	// day have either, nothing is missing.
	With, Without Sums
	Lost          int  // how many losses are known
	SHA256        Hash // of the part's bytes
}

// Agree reports whether the blobs of the hours [from, to) of the day are those of the part.
func (d *Digests) Agree(listed *Sums, from, to int) bool {
	if from == 0 && to == 24 {
		return listed.Day == d.With.Day || listed.Day == d.Without.Day
	}
	for h := from; h < to; h++ {
		if listed.Hours[h] != d.With.Hours[h] && listed.Hours[h] != d.Without.Hours[h] {
			return false
		}
	}
	return true
}

// Digests returns the digests of a part. Its hash is zero, since that needs its bytes.
func (p *Part) Digests() Digests {
	var with, without Digester
	for a, b := p.Blobs, p.Replaced; len(a) > 0 || len(b) > 0; {
		if len(b) == 0 || len(a) > 0 && a[0].Key < b[0].Key {
			with.Add(a[0].Key, a[0].Batch)
			without.Add(a[0].Key, a[0].Batch)
			a = a[1:]
			continue
		}
		with.Add(b[0].Key, b[0].Batch)
		b = b[1:]
	}
	return Digests{With: with.Sums(), Without: without.Sums(), Lost: len(p.Lost)}
}

func (d *Digests) meta() map[string]string {
	var hours []byte
	for _, s := range [][24][8]byte{d.With.Hours, d.Without.Hours} {
		for _, h := range s {
			hours = append(hours, h[:]...)
		}
	}
	return map[string]string{
		"closed": strconv.Itoa(form), "lost": strconv.Itoa(d.Lost), "sha": hex.EncodeToString(d.SHA256[:]),
		"with": hex.EncodeToString(d.With.Day[:]), "without": hex.EncodeToString(d.Without.Day[:]),
		"hours": base64.StdEncoding.EncodeToString(hours),
	}
}

// ParseDigests reads the metadata of a part, with keys in lower case. ok is false if these are not
// what this version writes: the part itself has to be read then.
func ParseDigests(meta map[string]string) (d Digests, ok bool) {
	for key, to := range map[string][]byte{"with": d.With.Day[:], "without": d.Without.Day[:], "sha": d.SHA256[:]} {
		b, err := hex.DecodeString(meta[key])
		if err != nil || copy(to, b) != len(to) {
			return d, false
		}
	}
	hours, _ := base64.StdEncoding.DecodeString(meta["hours"])
	if len(hours) != 2*24*8 {
		return d, false
	}
	r := bytes.NewReader(hours)
	for _, s := range []*[24][8]byte{&d.With.Hours, &d.Without.Hours} {
		for h := range s {
			r.Read(s[h][:])
		}
	}
	lost, err := strconv.Atoi(meta["lost"])
	d.Lost = lost
	return d, err == nil && meta["closed"] == strconv.Itoa(form)
}
