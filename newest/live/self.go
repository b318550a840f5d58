package live

import (
	"fmt"
	"time"
)

// mustBe says how the ingester differs from the expected one. If want has no process,
// any start of it will do.
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

// isStore reports whether s has the form of a store's id.
func isStore(s string) bool { return len(s) == 32 && isHex(s) }

// parseSnapshots reads ids and processes, `0badcafe.01234567,...`, at least one.
func parseSnapshots(s string) (map[string]string, error) {
	return parseList(s, "those of its process", func(text string) (string, bool) { return text, isID(text) })
}

// parseAge reads milliseconds; "" is -1 ns.
func parseAge(s string) (age time.Duration, ok bool) {
	if s == "" {
		return -1, true
	}
	ms, ok := parseNumber([]byte(s), 40)
	return time.Duration(ms) * time.Millisecond, ok
}
