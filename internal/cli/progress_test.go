package cli_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/progress"
)

// The line appears after a second, tells how far a command is and how long it will take, and is gone
// at the end.
func TestProgress(t *testing.T) {
	t.Setenv("TERM", "xterm")
	synctest.Test(t, func(t *testing.T) {
		var terminal bytes.Buffer
		var of progress.Counter
		line := cli.ShowProgress(&terminal, &of, "blob")
		shown := func(after time.Duration) string {
			time.Sleep(after)
			synctest.Wait()
			text := terminal.String()
			terminal.Reset()
			return text[strings.LastIndex(text, "K")+1:]
		}
		if got := shown(900 * time.Millisecond); got != "" {
			t.Errorf("%q is shown within the first second", got)
		}
		if got, want := shown(200*time.Millisecond), "waiting for the first answer"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		of.Find()
		of.Find()
		if got, want := shown(250*time.Millisecond), "2 blobs listed"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		of.Expect(4, 8<<20)
		of.Finish(1, 2<<20)
		// After 2 seconds a quarter is done.
		if got, want := shown(650*time.Millisecond), "1 of 4 blobs, 25 %, 6s left  2.0 of 8.0 MiB, 1.0 MiB/s"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		of.Expect(123_456_789, 1<<50)
		of.Finish(12_345_678, 1<<48)
		if got := shown(250 * time.Millisecond); len(got) >= 80 || !strings.HasPrefix(got, "12,345,679 of 123,456,793 blobs, 25 %") {
			t.Errorf("%q", got)
		}
		if _, err := line.Over(&terminal).Write([]byte("a note\n")); err != nil || terminal.String() != "\r\x1b[2Ka note\n" {
			t.Errorf("%q, %v", &terminal, err)
		}
		line.End()
		if got := shown(0); got != "a note\n" {
			t.Errorf("%q is left", got)
		}
	})
}

// A dumb terminal, which would show a sequence of control as it is, is shown none.
func TestProgressOnDumbTerminal(t *testing.T) {
	t.Setenv("TERM", "dumb")
	synctest.Test(t, func(t *testing.T) {
		var terminal bytes.Buffer
		line := cli.ShowProgress(&terminal, new(progress.Counter), "blob")
		time.Sleep(1300 * time.Millisecond) // it is drawn twice
		if _, err := line.Over(&terminal).Write([]byte("a note\n")); err != nil {
			t.Fatal(err)
		}
		line.End()
		const text = "waiting for the first answer"
		gone := "\r" + strings.Repeat(" ", len(text)) + "\r"
		if got, want := terminal.String(), "\r\r"+text+gone+text+gone+"a note\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}
