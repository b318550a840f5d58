package rules_test

import (
	"context"
	"testing"

	"blobtail/internal/rules"
	"blobtail/record"
	"blobtail/record/forms"
)

type last struct{ record.Request }

func (l *last) Accept(_ context.Context, r *record.Request) (record.Receipt, error) {
	l.Request = *r
	l.Data = append([]byte(nil), r.Data...)
	return record.Receipt{}, nil
}

// Records with the fields of a form have other bytes than without it, and so another identity. A
// record of another service stays what it is.
func TestFormIdentity(t *testing.T) {
	seen := map[record.Origin]string{}
	for _, text := range []string{"<a> <b>", "<b> <a>", "<a>|<b>"} {
		form, err := forms.Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		r, err := rules.Compile([]rules.Rule{{Name: "web", Service: "web", Form: form}})
		if err != nil {
			t.Fatal(err)
		}
		for _, service := range []string{"web", "api"} {
			line := `{"ts":"2026-11-28T10:00:00.000000000Z","level":"info","service":"` + service + `","msg":"1 2"}` + "\n"
			next := &last{}
			q := &record.Request{
				Origin: record.Origin{1, 2, 3, 4, 5, 6, 7, 8, 9}, Services: []string{service},
				Lines: []record.Line{{Len: uint32(len(line))}}, Data: []byte(line),
			}
			if _, err := rules.NewFilter(r, next, nil).Accept(t.Context(), q); err != nil {
				t.Fatal(err)
			}
			if had, ok := seen[next.Origin]; ok && had != string(next.Data) {
				t.Errorf("%s of %s has the identity of %s", next.Data, text, had)
			}
			seen[next.Origin] = string(next.Data)
			if (next.Origin == q.Origin) != (service == "api") || string(next.Data) != line && service == "api" {
				t.Errorf("%s of %s: %x", next.Data, text, next.Origin)
			}
		}
	}
}
