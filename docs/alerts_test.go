package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// alertsOf returns the alerts for Prometheus by name, each as the lines of its file.
func alertsOf(t *testing.T) map[string]string {
	t.Helper()
	all, name := map[string]string{}, ""
	for line := range strings.Lines(read(t, "deploy/prometheus/alerts.yaml")) {
		if m := regexp.MustCompile(`^ +- (alert|record|name): (\S+)`).FindStringSubmatch(line); m != nil {
			if name = m[2]; m[1] != "alert" {
				name = ""
			}
		}
		if name != "" && !strings.HasPrefix(strings.TrimSpace(line), "#") {
			all[name] += line
		}
	}
	if len(all) < 30 {
		t.Fatalf("%d alerts", len(all))
	}
	return all
}

// TestPagesOfAlerts ensures that the page that an alert names is there, and has the heading.
func TestPagesOfAlerts(t *testing.T) {
	all := alertsOf(t)
	for _, m := range regexp.MustCompile(`(?m)- alert: (\w+)\n(?:.*\n)*?^ +page: (\S+)$`).FindAllStringSubmatch(read(t, "deploy/vmalert/rules.yaml"), -1) {
		all[m[1]] = m[0]
	}
	for name, text := range all {
		m := regexp.MustCompile(`(?m)^ +page: ([^#\s]+)(?:#(\S+))?$`).FindStringSubmatch(text)
		if m == nil {
			t.Errorf("%s names no page", name)
			continue
		}
		if m[2] != "" && !slices.Contains(anchors(read(t, m[1])), m[2]) {
			t.Errorf("%s: %s has no heading #%s", name, m[1], m[2])
		}
	}
}

// urgent is a last column that asks for an alert: it has bold letters, "not 0", or a time for which
// something has to be so.
var urgent = regexp.MustCompile(`\*\*|not 0|0 for|for (?:\d+ (?:s|min|h)\b|hours|days)`)

// TestRowsHaveAlerts ensures that each row of a table of metrics that asks for an alert has one: an
// alert for Prometheus asks for a metric of the row.
func TestRowsHaveAlerts(t *testing.T) {
	exprs := ""
	for _, text := range alertsOf(t) {
		expr, _, _ := strings.Cut(text, " labels:")
		exprs += expr
	}
	rows := 0
	for _, page := range pages(t) {
		for line := range strings.Lines(read(t, page)) {
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
			if !strings.HasPrefix(line, "| `blobtail_") || len(cells) < 3 || !urgent.MatchString(cells[len(cells)-1]) {
				continue
			}
			rows++
			names := regexp.MustCompile("`(blobtail_[a-z_]+)`").FindAllStringSubmatch(cells[0], -1)
			if !slices.ContainsFunc(names, func(m []string) bool {
				return regexp.MustCompile(`\b` + m[1] + `(?:_bucket)?\b`).MatchString(exprs)
			}) {
				t.Errorf("%s: no alert asks for %s, and it is to be acted on: %s", page, names, cells[len(cells)-1])
			}
		}
	}
	if rows < 25 {
		t.Errorf("%d rows ask for an alert", rows)
	}
}
