package main

import (
	"encoding/binary"
	"testing"
	"time"
)

func berlin(t testing.TB) *time.Location {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// A person sees the letters or the offset of the local zone, not the word Local.
func TestZoneName(t *testing.T) {
	// local is a host's zone as Go reads it from /etc/localtime.
	local := func(letters string, hours int) *time.Location {
		data := append([]byte("TZif"), make([]byte, 16)...)
		for _, n := range []int{0, 0, 0, 0, 1, len(letters) + 1, hours * 3600} {
			data = binary.BigEndian.AppendUint32(data, uint32(n))
		}
		data = append(append(data, 0, 0), letters+"\x00"...)
		zone, err := time.LoadLocationFromTZData("Local", data)
		if err != nil {
			t.Fatal(err)
		}
		return zone
	}
	for _, c := range []struct {
		zone *time.Location
		want string
	}{
		{time.UTC, "UTC"},
		{berlin(t), "Europe/Berlin"},
		{local("CET", 1), "CET"},
		{local("UTC", 0), "UTC"},
		{local("+03", 3), "+03:00"},
		{local("-03", -3), "-03:00"},
		{time.FixedZone("", 3600), "+01:00"},
		{time.FixedZone("Local", 5400), "+01:30"},
	} {
		if got := zoneName(time.Unix(0, 0).In(c.zone)); got != c.want {
			t.Errorf("%v: %q, want %q", c.zone, got, c.want)
		}
	}
}
