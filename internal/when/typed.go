package when

import (
	"fmt"
	"strings"
)

// mostBlanks is how many blanks a text has that may have plus signs among them.
const mostBlanks = 8

// Typed reads a text of a URL. A plus sign that a person typed there comes as a blank, as in
// 10:00:00 01:00. So the text may be as it is, or have a plus sign for one of its blanks. Typed
// returns the only reading that there is; several are an error, like none.
func Typed[T comparable](text string, read func(text string) (T, error)) (T, error) {
	got, err := read(text)
	blanks := strings.Count(text, " ")
	if blanks == 0 || blanks > mostBlanks {
		return got, err
	}
	for i := range len(text) {
		if text[i] != ' ' {
			continue
		}
		with, failed := read(text[:i] + "+" + text[i+1:])
		switch {
		case failed != nil || err == nil && with == got:
		case err != nil:
			got, err = with, nil
		default:
			return got, fmt.Errorf("%q has two readings, because a + in a URL is a blank: write %%2B for a +, and leave out what is none", text)
		}
	}
	if err != nil {
		err = fmt.Errorf("%w; a + in a URL is a blank: write %%2B for it", err)
	}
	return got, err
}
