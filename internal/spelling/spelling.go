// Package spelling finds the name that was probably meant by one with typing mistakes.
package spelling

import "strings"

// Near returns the name that was probably meant: the same one, the same apart from _ and -, one that begins with the
// other, or the one with the fewest typing mistakes; "" if none is near.
func Near(name string, names []string) string {
	if name == "" {
		return ""
	}
	best, least := "", 1+min(2, len(name)/3)
	for _, s := range names {
		if s == name {
			return s
		}
		if plain(s) == plain(name) {
			best, least = s, -1
		} else if strings.HasPrefix(s, name) || strings.HasPrefix(name, s) {
			if least > 0 {
				best, least = s, 0
			}
		} else if d := mistakes(name, s); d < least {
			best, least = s, d
		}
	}
	return best
}

// plain is a name without the signs between its words: not_level and notlevel are the same.
func plain(name string) string { return strings.NewReplacer("_", "", "-", "").Replace(name) }

// mistakes counts the fewest bytes to insert, delete or replace, or neighbours to swap, that
// turn a into b.
func mistakes(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			replaced := last[j]
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(replaced, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
