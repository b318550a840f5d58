package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/reading"
	"blobtail/reading/form"
	"blobtail/reading/remote"
)

// sse is an answer of a tail.
func sse(lines ...string) answer {
	return answer{200, map[string]string{"Content-Type": form.SSE}, cut(strings.Join(lines, "\n") + "\n")}
}

// at is the text of a cursor behind a record of a time.
func at(ns int64) string {
	var c reading.Cursor
	c.Last.Time = ns
	return c.String()
}

func data(id string) string {
	return `data: {"record":{"id":"` + id + `","line":{"msg":"` + id + `"}}}`
}

// followed is the outcome of a follower.
type followed struct {
	lines, told string
	cursor      string
	err         error
}

func follow(t *testing.T, ctx context.Context, newest int, list ...answer) (got followed, a *answers) {
	t.Helper()
	c, a := asking(t, remote.Options{}, list...)
	var cursor reading.Cursor
	cursor, got.err = c.Follow(ctx, reading.Ask{Services: []string{"web"}, Range: reading.Always(), Limit: newest}, reading.FollowOptions{
		Emit: func(lines []byte) error { got.lines += strings.ReplaceAll(string(lines), "\n", " "); return nil },
		Report: func(r *reading.Report) {
			for _, text := range r.Notes {
				got.told += text + "\n"
			}
			for _, err := range r.Problems {
				got.told += err.Error() + "\n"
			}
		},
	})
	got.cursor = fmt.Sprint("c", cursor.Last.Time)
	return got, a
}

// The records behind the last cursor come again after a failure. They are left out.
func TestFollowAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, a := follow(t, context.Background(), 5,
			sse("retry: 1000", "", data("r1"), "", "id: "+at(1), "", data("r2"), "", data("r3"), ""),
			problem(503, "ending"), problem(503, "ending"), problem(503, "ending"),
			sse(":", "", data("r2"), "", data("r3"), "", data("r4"), "", "id: "+at(2), "", `data: {"problem":"lost"}`, "", data("r5"), "", `data: {"end":{"complete":true}}`, ""),
		)
		if want := `{"msg":"r1"} {"msg":"r2"} {"msg":"r3"} {"msg":"r4"} {"msg":"r5"} `; got.lines != want || got.cursor != "c2" || got.err != nil {
			t.Errorf("%+v", got)
		}
		if !strings.Contains(got.told, "it is asked again until it answers\nthe server https://logs.example.com answers again\nlost\n") {
			t.Error(got.told)
		}
		if q := a.got[0].URL.Query(); q.Get("n") != "5" || q.Has("after") {
			t.Error(q)
		}
		if q := a.got[4].URL.Query(); q.Get("after") != at(1) || q.Has("n") {
			t.Error(q)
		}
	})
}

// After a failure a cursor may come between records that come again, and they come in another order:
// an ingester answers late. A tail that ends knows how many records it had to get.
func TestFollowAgainBeyondCursors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, _ := follow(t, context.Background(), 5,
			sse(data("r1"), "", "id: "+at(1), "", data("r2"), "", data("r3"), "", data("r4"), ""),
			sse(data("r4"), "", "id: "+at(2), "", data("r5"), "", data("r2"), ""),
			sse(data("r5"), "", data("r2"), "", "id: "+at(3), "", data("r3"), "", "id: "+at(4), "", data("r6"), "", `data: {"end":{"complete":true,"records":5}}`, ""),
			sse(data("r6"), "", data("r7"), "", `data: {"end":{"complete":true,"records":2}}`, ""),
		)
		if want := `{"msg":"r1"} {"msg":"r2"} {"msg":"r3"} {"msg":"r4"} {"msg":"r5"} {"msg":"r6"} {"msg":"r7"} `; got.lines != want || got.cursor != "c4" || got.err != nil {
			t.Errorf("%+v", got)
		}
		if !strings.Contains(got.told, "broke off its answer: 4 records came, and it sent 5") {
			t.Error(got.told)
		}
	})
}

// Before its first answer a server is not asked again, and a refusal ends a follower.
func TestFollowRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var nowhere *remote.UnreachableError
		if got, _ := follow(t, context.Background(), 0); !errors.As(got.err, &nowhere) {
			t.Error(got.err)
		}
		var refused *remote.Error
		got, _ := follow(t, context.Background(), 0, sse(data("r1"), "", "id: "+at(1), ""), problem(401, "revoked"))
		if !errors.As(got.err, &refused) || refused.Status != 401 || got.cursor != "c1" {
			t.Errorf("%+v", got)
		}
	})
}

// An interrupted follower waits a moment for the cursor of the records that it has passed on.
func TestFollowInterrupted(t *testing.T) {
	for _, row := range []struct {
		cursor bool
		want   string
		after  time.Duration
	}{{true, "c1", time.Second}, {false, "c0", 1500 * time.Millisecond}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			reader, writer := io.Pipe()
			go func() {
				_, _ = io.WriteString(writer, "id: "+at(0)+"\n\n"+data("r1")+"\n\n")
				time.Sleep(time.Second)
				cancel()
				time.Sleep(time.Second)
				if row.cursor {
					_, _ = io.WriteString(writer, data("r2")+"\n\nid: "+at(1)+"\n\n")
				}
				time.Sleep(time.Second)
				writer.CloseWithError(io.ErrUnexpectedEOF)
			}()
			begun := time.Now()
			got, _ := follow(t, ctx, 0, answer{200, map[string]string{"Content-Type": form.SSE}, reader})
			if !errors.Is(got.err, context.Canceled) || got.cursor != row.want {
				t.Errorf("%+v", got)
			}
			if took := time.Since(begun) - time.Second; took > 2*time.Second {
				t.Errorf("it took %v", took)
			}
			time.Sleep(5 * time.Second) // the writer ends
		})
	}
}

// With any answer of a server a follower ends.
func FuzzFollow(f *testing.F) {
	f.Add("data: {}\n\nid: a\n\n")
	f.Add(data("r1") + "\n\n" + data("r1") + "\nid: a\n\n" + `data: {"end":{}}` + "\n\n")
	f.Add("data\n:x\nid\n\n")
	f.Fuzz(func(t *testing.T, body string) {
		synctest.Test(t, func(t *testing.T) {
			got, _ := follow(t, context.Background(), 0, answer{200, map[string]string{"Content-Type": form.SSE}, strings.NewReader(body)}, problem(400, "enough"))
			if got.err == nil && !strings.Contains(body, "data") {
				t.Error("it ended without an end")
			}
			if strings.Count(got.lines, " ") > 0 && !strings.Contains(body, "data") {
				t.Errorf("lines of nothing: %s", got.lines)
			}
		})
	})
}
