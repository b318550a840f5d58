package body

import (
	"testing"

	"blobtail/record"
)

// No word that is a level is spared the search.
func TestBeginsLevel(t *testing.T) {
	found := 0
	for _, word := range []string{
		"trace", "trc", "trce", "trac", "silly", "verbose", "vrb", "finest", "finer", "debug", "dbg", "dbug", "debu", "fine", "config",
		"info", "inf", "information", "informational", "notice", "note", "success", "log", "warn", "wrn", "warning",
		"error", "err", "erro", "severe", "fail", "critical", "crit", "fatal", "ftl", "fata", "panic", "pani", "dpanic",
		"alert", "emerg", "emergency", "eror", "fatl", "infor", "warni", "verb", "verbo",
	} {
		if record.ParseLevel([]byte(word)) == record.Other {
			t.Errorf("%s is no level", word)
		}
		if !beginsLevel([]byte(word)) {
			t.Errorf("%s is not found", word)
		}
		found++
	}
	letters := "abcdefghijklmnopqrstuvwxyz"
	var word [3]byte
	for _, word[0] = range []byte(letters) {
		for _, word[1] = range []byte(letters) {
			for _, word[2] = range []byte(letters) {
				if record.ParseLevel(word[:]) != record.Other && !beginsLevel(word[:]) {
					t.Errorf("%s is not found", word)
				}
			}
		}
	}
	if found < 40 || beginsLevel([]byte("the")) {
		t.Error(found)
	}
}
