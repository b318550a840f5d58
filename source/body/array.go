package body

import (
	"bytes"

	"blobtail/record"
	"blobtail/record/text"
)

// looksLikeArray distinguishes an array from text such as "[error] disk full" or
// "[12,3] started".
func looksLikeArray(b []byte) bool {
	if len(b) == 0 || b[0] != '[' {
		return false
	}
	i := text.SkipSpace(b, 1)
	if i < len(b) && b[i] == '{' {
		return true
	}
	// Anything else has no record in it. It counts as an array only if it is one from
	// the first byte to the last.
	n := record.ValueLen(b)
	return n > 0 && text.SkipSpace(b, n) == len(b)
}

// decodeArray decodes the objects of the array that begins at off. From a syntax
// error on, the rest of the body is one reject, since the start of the next element
// is unknown. more is false if the sink has stopped it.
func decodeArray(body []byte, off int, to Sink) (more bool) {
	rest := func(from int, reason string) bool {
		return to.Reject(bytes.TrimRight(body[from:], " \t\r\n"), Rejection{Reason: reason, Syntax: true}, len(body))
	}
	next := off // of the last bracket or comma
	if i := text.SkipSpace(body, off+1); i < len(body) && body[i] == ']' {
		next = i
	}
	for next >= len(body) || body[next] != ']' {
		if off = text.SkipSpace(body, next+1); off >= len(body) {
			return rest(len(body), "the array has no end")
		}
		n, why := element(body[off:], to)
		if n == 0 {
			return rest(off, why.Reason)
		}
		end := off + n
		if next = text.SkipSpace(body, end); next < len(body) && body[next] != ',' && body[next] != ']' {
			return rest(off, "neither , nor ] after an element of the array")
		}
		if !pass(body[off:end], why, end, to) {
			return false
		}
	}
	if off = text.SkipSpace(body, next+1); off < len(body) {
		return rest(off, "text after the array")
	}
	return true
}

// element returns the length of the array element at the start of b, and the reason
// why it is no record; 0 when it is not even a value.
func element(b []byte, to Sink) (n int, why Rejection) {
	if _, ok := to.(*batch); b[0] == '{' || ok && b[0] == '"' {
		n, why, _ = objectAt(b, to)
	} else {
		why.Reason = "the array element is not a JSON object"
		n = record.ValueLen(b)
	}
	if n == 0 && !why.Syntax {
		return 0, Rejection{Reason: "the array is broken: no JSON value here", Syntax: true}
	}
	return n, why
}
