package api

import (
	"encoding/hex"
	"strconv"
	"strings"

	"blobtail/reading/form"
	"blobtail/record"
)

// parseID reads an identity as an entry without a line.
func parseID(text string) (e record.Entry, err error) {
	bad := badRequest("%.100q is no id of a record; form=events has them, such as 1795323600500000000-019e7d0f5a7c00000000000000000000-3", text)
	rest, index, ok := cutLast(text)
	ns, origin, also := cutLast(rest)
	if !ok || !also || len(origin) != 2*len(e.ID.Origin) || origin != strings.ToLower(origin) {
		return e, bad
	}
	if _, err := hex.Decode(e.ID.Origin[:], []byte(origin)); err != nil {
		return e, bad
	}
	n, err := strconv.ParseUint(index, 10, 32)
	if err != nil {
		return e, bad
	}
	e.ID.Index = uint32(n)
	if e.Time, err = strconv.ParseInt(ns, 10, 64); err != nil || string(form.AppendID(nil, &e)) != text {
		return e, bad
	}
	return e, nil
}

// cutLast cuts a text at its last "-".
func cutLast(text string) (before, after string, ok bool) {
	at := strings.LastIndexByte(text, '-')
	if at < 0 {
		return "", "", false
	}
	return text[:at], text[at+1:], true
}
