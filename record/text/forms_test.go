package text

import (
	"testing"
	"time"

	"blobtail/record"
	"blobtail/record/times"
)

// Each form of a level has its example, which no form before it takes.
func TestForms(t *testing.T) {
	r := times.Reader{Now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixNano()}
	for forms, timed := range map[*table]bool{&starts: false, &behinds: true} {
		for key, rows := range forms {
			for i := range rows {
				f, rest := &rows[i], []byte(rows[i].line)
				if timed {
					var at Stamp
					at.Read(&r, rest)
					if rest = at.Rest; len(rest) == len(f.line) {
						t.Errorf("%q: no time is found", f.line)
					}
				}
				s := rest[SkipBlanks(rest, 0):]
				found, n, word := forms.find(s)
				want := string(word)
				if f.level != "" {
					want = f.level
				}
				got := formLevel(rest, timed)
				if int(kindOf(s)) != key && int(s[0]) != key || n == 0 || found != f || string(got) != want || record.ParseLevel(got) == record.Other {
					t.Errorf("%q: the level is %q, want %q of the form %q", rest, got, want, f.signs)
				}
			}
		}
	}
}

// Each form of the end of a program has its example, which no form before it takes.
func TestCrashes(t *testing.T) {
	for key, rows := range crashes {
		for i := range rows {
			f, line := &rows[i], []byte(rows[i].line)
			if found, n, _ := crashes.of(line[0], line); int(line[0]) != key || n == 0 || found != f || string(Uncaught(line)) != f.level {
				t.Errorf("%q: the level is %q, want %q of the form %q", line, Uncaught(line), f.level, f.signs)
			}
		}
	}
}

// Each mark has its example, which no mark before it takes, and a time is behind it.
func TestMarks(t *testing.T) {
	r := times.Reader{Now: time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC).UnixNano()}
	for key, rows := range marks {
		for i := range rows {
			f, line := &rows[i], []byte(rows[i].line)
			found, n, _ := marks.find(line)
			ns, own := Time(&r, line)
			at := time.Unix(0, ns).UTC()
			if int(kindOf(line)) != key && int(line[0]) != key || n == 0 || found != f || own && at.Format("15:04:05") != "15:04:05" {
				t.Errorf("%q: the time is %v, behind %d bytes", line, at, n)
			}
		}
	}
}

// Sentences and other texts with a letter, a word between asterisks or a number have no level.
func TestLettersOfSentences(t *testing.T) {
	r := times.Reader{Now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixNano()}
	for _, line := range []string{
		"I (we) think so", "I [we] think so", "E (mail) is new", "I think [E] is next", "[I] think", "plan [E] is next",
		"E: the drive", "W3 10:00:06", "I 2 am", "I/O (disk): slow", "[E] is a letter", "[C] 2026 Shop", "A (2312) x: y",
		"I26112 10:00:06 x", "E2 E4", "D-Day [x]", "2026-11-20 10:00:06 E is the base of the logarithm",
		"2026-11-20 10:00:06 plan [E] is next", "2026-11-20 10:00:06 I am [x] here", "2026-11-20 10:00:06 I AM [x] here",
		"2026-11-20 10:00:06: I think x.cc:42 is it", "2026-11-20 10:00:06 [x] see appendix [E] for more",
		"2026-11-20 10:00:06 call x() [E] no", "2026-11-20 10:00:06 12 apples [E] no", "2026-11-20 10:00:06 1 2 E",
		"2026-11-20 10:00:06 F 16 is up", "2026-11-20 10:00:06,error in the line", "2026-11-20 10:00:06 PID[3096] ended",
		"2026-11-20 10:00:06 user.name x", "read *important* news", "2026-11-20 10:00:06 *note* x",
		"2026-11-20 10:00:06 daemon.errors x", "kern.err is a facility", "at 15:04 error rates rose", "at 15 ERROR codes",
		"meet at 15:04 ERROR no", "erosion: of the shore", "verbs: to be", "2026-11-20 10:00:06 reply was <error> again",
	} {
		if got := lineLevel(&r, []byte(line)); got != nil {
			t.Errorf("%q has the level %q", line, got)
		}
	}
}
