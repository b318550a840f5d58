package tailindex_test

import (
	"regexp"
	"testing"

	"blobtail/internal/dev/testkit"
)

// Each rule of rows and of their interval is needed: without it a test fails.
func TestMutants(t *testing.T) {
	testkit.FullOnly(t, "the mutants are built without the race detector")
	testkit.Simulation{
		Package: "tailindex", Test: "TestStoredRows", Prefix: "BLOBTAIL_TAILINDEX", Broken: regexp.MustCompile(`([a-z]+_test\.go:\d+: .*)`),
	}.Catch(t, []testkit.Mutant{
		{Name: "rows of another dictionary", Test: "TestDictionary", Seeds: 1, Edits: []testkit.Edit{{"tailindex/writer.go",
			`zstd.WithEncoderDict(dictionary), `, `zstd.WithEncoderDictRaw(1, dictionary), `}}},
		{Name: "an earlier row is read as one of today", Test: "TestOlderRow", Seeds: 1, Edits: []testkit.Edit{{"tailindex/row.go",
			`	case f < Format:
`, `	case f < 0:
`}}},
		{Name: "a later row is read", Test: "TestDamagedRows", Seeds: 1, Edits: []testkit.Edit{{"tailindex/row.go",
			`	case f > Format:
`, `	case f > Format+1:
`}}},
		{Name: "an unknown flag is passed over", Test: "TestDamagedBodies", Seeds: 1, Edits: []testkit.Edit{{"tailindex/body.go",
			`	if flags&^apart != 0 {
`, `	if flags&^apart > 2 {
`}}},
		{Name: "the checksum is not read", Test: "TestDamagedBodies", Seeds: 1, Edits: []testkit.Edit{{"tailindex/body.go",
			`	if len(all) < 5 || checksum(all[:len(all)-4]) != binary.LittleEndian.Uint32(all[len(all)-4:]) {
`, `	if len(all) < 5 {
`}}},
		{Name: "omitted records are not counted", Test: "TestLongLines", Seeds: 1, Edits: []testkit.Edit{{"tailindex/body.go",
			`	b = binary.AppendUvarint(b, uint64(r.Count))
`, `	b = binary.AppendUvarint(b, uint64(len(r.Entries)))
`}}},
		{Name: "a number that comes twice is kept apart once", Test: "FuzzNumbers", Seeds: 1, Edits: []testkit.Edit{{"tailindex/numbers.go",
			`	return append(text, lines[done:]...), w.bytes
`, `	return append(text, lines[done:]...), w.bytes[:len(w.bytes)/2]
`}}},
		{Name: "another interval", Test: "TestPace", Seeds: 1, Edits: []testkit.Edit{{"tailindex/writer.go",
			`	return w.o.Every
`, `	return LeastEvery
`}}},
		{Name: "a quiet service waits for its turn", Test: "TestPace", Seeds: 1, Edits: []testkit.Edit{{"tailindex/writer.go",
			`	if ago >= every {
`, `	if ago >= every && every == LeastEvery {
`}}},
		{Name: "each ingester has a phase of its own", Test: "TestPace", Seeds: 1, Edits: []testkit.Edit{{"tailindex/writer.go",
			`	in := time.Duration(now.Add(wait).UnixNano() % int64(every))
`, `	in := time.Duration(0)
`}}},
		{Name: "much that waits does not shorten the interval", Test: "TestMemoryShortens", Seeds: 1, Edits: []testkit.Edit{{"tailindex/writer.go",
			`	if w.stats.Held > w.o.Memory/4 {
`, `	if w.stats.Held > w.o.Memory {
`}}},
		{Name: "a turn that is set stays though much waits", Test: "TestMemoryShortens", Seeds: 1, Edits: []testkit.Edit{{"tailindex/writer.go",
			`	case every < s.every && s.timer.Stop():`, `	case every < 0 && s.timer.Stop():`}}},
	})
}
