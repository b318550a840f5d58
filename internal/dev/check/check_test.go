package check_test

import (
	"fmt"
	"strings"
	"testing"

	"blobtail/internal/dev/check"
	"blobtail/record"
)

func line(id, service string, t int64) string {
	return fmt.Sprintf(`{"ts":"%s","level":"info","service":"%s","msg":"%s said something"}`+"\n", record.AppendTime(nil, t), service, id)
}

// Each row is a possible fault of a store; the checker must name it.
func TestVerify(t *testing.T) {
	a, b, c, d := line("a", "web", 1), line("b", "web", 2), line("c", "web", 2), line("d", "db", 3)
	for _, row := range []struct{ name, output, want string }{
		{"all there", a + b + c, ""},
		{"the unknown one not", a + b, ""},
		{"lost", a + c, "acknowledged and lost"},
		{"twice", a + b + b + c, "shown more than once"},
		{"an unknown one twice", a + b + c + c, "shown more than once"},
		{"phantom", a + b + line("x", "web", 5), "never sent"},
		{"rejected", a + b + d, "rejected and stored"},
		{"order", b + a, "out of order"},
		{"time", a + line("b", "web", 9), "another time"},
		{"service", a + line("b", "api", 2), "another service"},
		{"garbage", a + b + "what\n", "no canonical line"},
		{"cut", a + strings.TrimSuffix(b, "\n"), "EOF"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var l check.Ledger
			l.Sent("a", "web", 1)
			l.Sent("b", "web", 2)
			l.Sent("c", "web", 2)
			l.Sent("d", "db", 3)
			l.Acked("a", "b")
			l.Rejected("d", "a") // an acknowledgement cannot be undone
			_, err := l.Verify(strings.NewReader(row.output))
			if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

func TestReport(t *testing.T) {
	var l check.Ledger
	for i, id := range []string{"a", "b", "c", "d"} {
		l.Sent(id, "web", int64(i))
	}
	l.Acked("a")
	l.Rejected("b")
	r, err := l.Verify(strings.NewReader(line("a", "web", 0) + line("c", "web", 2)))
	if want := (check.Report{Sent: 4, Acked: 1, Rejected: 1, Unknown: 2, Found: 2, FoundUnknown: 1}); err != nil || r != want {
		t.Errorf("got %v, %v; want %v", r, err, want)
	}
}
