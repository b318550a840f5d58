package record

import (
	"bytes"
	"testing"
)

// Each word of the table is found in any case, once, and has its level behind each reader of words.
func TestWords(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range words {
		for _, word := range row.of {
			if seen[word] || len(word) > maxLevelWord {
				t.Errorf("%s is there before, or too long", word)
			}
			seen[word] = true
			for _, text := range [][]byte{[]byte(word), bytes.ToUpper([]byte(word)), bytes.ToTitle([]byte(word[:1]))} {
				l, mark := LookupWord(text)
				if whole := len(text) == len(word); whole && (l != row.level || mark != row.mark || ParseLevel(text) != l) {
					t.Errorf("%s is %v with the mark %d", text, l, mark)
				}
			}
		}
	}
	for _, word := range []string{"", "the", "errors", "informationals", "erro r"} {
		if l, mark := LookupWord([]byte(word)); l != Other || mark != 0 {
			t.Errorf("%q is %v", word, l)
		}
	}
}
