package unflushed_test

import (
	"strings"
	"testing"
	"time"
)

// A catch-up has to begin later than its debt if emitted records are forgotten. Then it
// reports the times it leaves out.
func TestForgottenCatchUp(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, s *screen) {
		c.all[0].start()
		sent := c.all[0].send(line{service: "web", at: -3 * time.Second}, line{service: "web", at: -time.Second})
		time.Sleep(time.Second) // until its row says that it runs
		from := time.Unix(0, sent[0].time)
		for _, forgotten := range []int64{sent[0].time - 1, sent[0].time} {
			var shown, notes []string
			err := c.reader().CatchUp(t.Context(), always("web"), from, forgotten, func(lines []byte) error {
				for l := range strings.Lines(string(lines)) {
					shown = append(shown, nameOf([]byte(l)))
				}
				return nil
			}, func(text string) { notes = append(notes, text) })
			if err != nil {
				t.Fatal(err)
			}
			if want := int(1 + sent[0].time - forgotten); len(shown) != want || len(notes) != 2-want {
				t.Errorf("with what is up to %d forgotten: %q, %q", forgotten-sent[0].time, shown, notes)
			}
		}
	})
}
