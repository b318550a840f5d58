package live

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// mustBe says what is different from the ingester that was expected to answer; any
// start of it will do where none is given.
func (s Self) mustBe(want Self) error {
	switch {
	case s.ID != want.ID:
		return fmt.Errorf("ingester %s answers", s.ID)
	case s.Store != want.Store:
		return fmt.Errorf("ingester %s answers for another store (%s in place of %s)", s.ID, named(s.Store), named(want.Store))
	case want.Process != "" && s.Process != want.Process:
		return fmt.Errorf("another start of ingester %s answers than the one in its row (%s in place of %s); it has just started, or cannot write its row (see its log), or two run on copies of one log", s.ID, s.Process, named(want.Process))
	}
	return nil
}

func named(id string) string {
	if id == "" {
		return "one that is not known"
	}
	return id
}

// isStore tells whether s is as the id of a store is.
func isStore(s string) bool {
	return len(s) == 32 && strings.Trim(s, "0123456789abcdef") == ""
}

// formatSnapshots writes ids and processes, `0badcafe.01234567,...`, in the order of
// ids.
func formatSnapshots(all map[string]string) string {
	parts := make([]string, 0, len(all))
	for _, id := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, id+"."+all[id])
	}
	return strings.Join(parts, ",")
}

// parseSnapshots reads what formatSnapshots wrote.
func parseSnapshots(s string) (map[string]string, error) {
	all := map[string]string{}
	for part := range strings.SplitSeq(s, ",") {
		id, process, ok := strings.Cut(part, ".")
		if !ok || !isID(id) || !isID(process) || all[id] != "" {
			return nil, fmt.Errorf("%.40q: want an ingester's 8 hex digits, a dot, and those of its process, each once", part)
		}
		if all[id] = process; len(all) > maxPositions {
			return nil, fmt.Errorf("more than %d ingesters", maxPositions)
		}
	}
	return all, nil
}

// parseAge reads milliseconds; "" is -1.
func parseAge(s string) (time.Duration, error) {
	if s == "" {
		return -1, nil
	}
	ms, ok := parseNumber([]byte(s), 40)
	if !ok {
		return 0, fmt.Errorf("%.20s: want milliseconds", strconv.Quote(s))
	}
	return time.Duration(ms) * time.Millisecond, nil
}
