package patterns_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blobtail/internal/dev/testkit"
	"blobtail/internal/where"
	"blobtail/reading/patterns"
	"blobtail/record"
)

// A labelled message has the template that people gave it.
type labelled struct {
	Message string `json:"message"`
	Label   string `json:"eventid"`
}

// loghub returns the labelled messages of each system of loghub, which are no part of the
// repository: none if they are not beside it.
func loghub(t testing.TB) map[string][]labelled {
	t.Helper()
	files, err := filepath.Glob("../../../shared/data/loghub/*.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]labelled{}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		var of []labelled
		for lines := bufio.NewScanner(f); lines.Scan(); {
			var l labelled
			if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
				t.Fatal(err)
			}
			of = append(of, l)
		}
		f.Close()
		all[strings.TrimSuffix(filepath.Base(name), ".ndjson")] = of
	}
	return all
}

// entry is a record with a message.
func entry(i int, msg string) record.Entry {
	ns := int64(1_795_323_600_000_000_000) + int64(i)*1_000_000
	line := append([]byte(`{"ts":"`), record.AppendTime(nil, ns)...)
	line = append(line, `","level":"info","service":"web","msg":"`...)
	line = append(record.AppendEscaped(line, []byte(msg)), "\"}\n"...)
	return record.Entry{Time: ns, ID: record.ID{Index: uint32(i)}, Line: line}
}

// mine returns the patterns of messages, all of them described.
func mine(t testing.TB, o patterns.Options, messages []string) *patterns.Result {
	t.Helper()
	m := patterns.New(o)
	for i, msg := range messages {
		e := entry(i, msg)
		if err := m.Add(0, &e); err != nil {
			t.Fatal(err)
		}
	}
	r := m.Patterns()
	if err := r.Describe(r.Patterns); err != nil {
		t.Fatal(err)
	}
	return r
}

// match returns the numbers of the records for which a condition is true.
func match(t testing.TB, condition string, records []record.Entry) (found []int) {
	t.Helper()
	expr, err := where.Parse(nil, condition, false)
	if err != nil {
		t.Fatalf("%s: %v", condition, err)
	}
	for i := range records {
		if expr.Match(records[i].Line) {
			found = append(found, i)
		}
	}
	return found
}

// entries are records with messages.
func entries(messages []string) (all []record.Entry) {
	for i, msg := range messages {
		all = append(all, entry(i, msg))
	}
	return all
}

// accuracy is the group accuracy of templates, as the papers have it: the share of messages of which
// the template has the same messages as the label.
func accuracy(of []labelled, template []string) float64 {
	labels, templates, pairs := map[string]int{}, map[string]int{}, map[[2]string]int{}
	for i := range of {
		labels[of[i].Label]++
		templates[template[i]]++
		pairs[[2]string{of[i].Label, template[i]}]++
	}
	right := 0
	for pair, n := range pairs {
		if labels[pair[0]] == n && templates[pair[1]] == n {
			right += n
		}
	}
	return float64(right) / float64(len(of))
}

// grouped is the accuracy for some messages. A condition is true for the messages of its template,
// and for no others.
func grouped(t *testing.T, system string, of []labelled) float64 {
	t.Helper()
	messages := messagesOf(of)
	r := mine(t, patterns.Options{}, messages)
	template, records := make([]string, len(of)), entries(messages)
	for _, p := range r.Patterns {
		found := match(t, p.Where, records)
		for _, i := range found {
			if template[i] != "" {
				t.Errorf("%s: %q is of two templates", system, messages[i])
			}
			template[i] = p.ID
		}
		if int64(len(found)) != p.In[0].Count {
			t.Errorf("%s: the condition of %q is true for %d of %d messages: %s", system, p.Template, len(found), p.In[0].Count, p.Where)
		}
	}
	a := accuracy(of, template)
	t.Logf("%-10s %.3f, %d templates", system, a, len(r.Patterns))
	return a
}

func messagesOf(of []labelled) (all []string) {
	for _, l := range of {
		all = append(all, l.Message)
	}
	return all
}

// The templates are those that people found, for each system of loghub. TestKinds has messages that are in
// the repository.
func TestAccuracy(t *testing.T) {
	testkit.FullOnly(t, "each pattern over all messages")
	systems := loghub(t)
	if len(systems) == 0 {
		t.Skip("the labelled messages of loghub are not there: ../shared/data/loghub. TestKinds has others")
	}
	for system, of := range systems {
		a := grouped(t, system, of)
		if a < 0.9 {
			t.Errorf("%s: group accuracy %.3f", system, a)
		}
	}
}

// Another order of the same messages gives the same templates.
func TestOrder(t *testing.T) {
	testkit.FullOnly(t, "each system several times")
	systems := loghub(t)
	for kind, templates := range kinds {
		if len(systems) < len(kinds) {
			systems[kind] = labelledOf(rand.New(rand.NewPCG(1, 7)), templates, 1000)
		}
	}
	for system, of := range systems {
		messages := messagesOf(of)
		list := func() string {
			var b strings.Builder
			for _, p := range mine(t, patterns.Options{}, messages).Patterns {
				fmt.Fprintln(&b, p.ID, p.In[0].Count, p.Template, p.Where)
			}
			return b.String()
		}
		want := list()
		for range 3 {
			rand.Shuffle(len(messages), func(i, j int) { messages[i], messages[j] = messages[j], messages[i] })
			if got := list(); got != want {
				t.Errorf("%s: another order gives\n%s\nin place of\n%s", system, got, want)
			}
		}
	}
}
