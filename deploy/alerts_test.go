package deploy

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// alertRule is an alert, or the recording of a series.
type alertRule struct {
	Alert, Record, Expr, For string
	Labels, Annotations      map[string]string
}

// foreign are metrics of others that alerts ask for: of Prometheus itself, of kube-state-metrics,
// and of vmalert, which integration/vmalert looks for at a running one.
var foreign = []string{
	"kube_cronjob_status_last_successful_time", "kube_cronjob_spec_suspend", "up", "vmalert_execution_total", "vmalert_alerting_rules_errors_total",
	"vmalert_recording_rules_errors_total", "vmalert_alerts_send_errors_total", "vmalert_config_last_reload_successful",
}

// TestAlerts ensures that the rules parse, use existing metrics, say what to do, and are tested:
// each alert fires in alerts_test.yaml.
func TestAlerts(t *testing.T) {
	var file struct {
		Groups []struct {
			Name  string
			Rules []alertRule
		}
	}
	d := yaml.NewDecoder(bytes.NewReader([]byte(read(t, "prometheus/alerts.yaml"))), yaml.Strict())
	if err := d.Decode(&file); err != nil {
		t.Fatal(yaml.FormatError(err, false, true))
	}
	known := written(t)
	for _, name := range foreign {
		known[name] = true
	}
	page := read(t, "../docs/reference/metrics.md") // printed from running programs
	for _, name := range regexp.MustCompile("`(blobtail_[a-z_]+)`").FindAllStringSubmatch(page, -1) {
		known[name[1]] = true
	}
	fired := firing(t)
	seen := map[string]bool{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			names := regexp.MustCompile(`\b(?:(?:blobtail|kube|vmalert|service:blobtail)_[a-z0-9_:]+|up\b)`).FindAllString(r.Expr, -1)
			if strings.Contains(r.Expr, "__name__") { // metrics by a pattern of names
				names = by(t, r.Expr)
			}
			if len(names) == 0 {
				t.Errorf("%s%s asks for nothing", r.Alert, r.Record)
			}
			for _, name := range names {
				if name = strings.TrimSuffix(name, "_bucket"); !known[name] {
					t.Errorf("%s%s: there is no metric %s", r.Alert, r.Record, name)
				}
			}
			if r.Record != "" {
				known[r.Record] = true
				continue
			}
			if r.Alert == "" || seen[r.Alert] || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.Annotations["page"] == "" || len(r.Annotations) != 3 {
				t.Errorf("%s: %+v", g.Name, r)
			}
			seen[r.Alert] = true
			if !fired[r.Alert] {
				t.Errorf("alerts_test.yaml has no test in which %s fires", r.Alert)
			}
		}
	}
}

// by returns the metrics of others that a pattern of names in an expression selects.
func by(t *testing.T, expr string) (names []string) {
	t.Helper()
	m := regexp.MustCompile(`__name__=~"([^"]*)"`).FindStringSubmatch(expr)
	if m == nil {
		t.Fatalf("%s has no pattern of names", expr)
	}
	for _, name := range foreign {
		if regexp.MustCompile("^(?:" + m[1] + ")$").MatchString(name) {
			names = append(names, name)
		}
	}
	return names
}

// firing returns the alerts that fire in a case of alerts_test.yaml.
func firing(t *testing.T) map[string]bool {
	t.Helper()
	var file struct {
		Tests []struct {
			Rules []struct {
				Name string           `yaml:"alertname"`
				Want []map[string]any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "prometheus/alerts_test.yaml")), &file); err != nil {
		t.Fatal(yaml.FormatError(err, false, true))
	}
	fired := map[string]bool{}
	for _, test := range file.Tests {
		for _, r := range test.Rules {
			fired[r.Name] = fired[r.Name] || len(r.Want) > 0
		}
	}
	return fired
}
