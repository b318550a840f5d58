// Package promcheck holds the files of deploy/prometheus and deploy/grafana, and a page of metrics,
// against Prometheus' own parsers, and runs the tests of the alerts as promtool does. It is a module
// of its own, because Prometheus requires more modules than the product. `make promcheck`
// runs it. With Debian's package prometheus the same is
//
//	promtool check rules alerts.yaml && promtool test rules alerts_test.yaml
package promcheck

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"go.yaml.in/yaml/v2"
)

const deploy = "../../../../deploy"

// TestRules ensures that Prometheus reads the rules, with the templates of their texts.
func TestRules(t *testing.T) {
	groups, errs := rulefmt.ParseFile(filepath.Join(deploy, "prometheus", "alerts.yaml"), false, model.LegacyValidation,
		parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	if groups == nil || len(groups.Groups) < 4 {
		t.Errorf("%v", groups)
	}
}

// TestDashboards ensures that each expression of the dashboards is PromQL, if it is for
// Prometheus.
func TestDashboards(t *testing.T) {
	for name, least := range map[string]int{"dashboard.json": 20, "logs.json": 10} {
		t.Run(name, func(t *testing.T) { checkDashboard(t, name, least) })
	}
}

func checkDashboard(t *testing.T, name string, least int) {
	text, err := os.ReadFile(filepath.Join(deploy, "grafana", name))
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct {
				Expr       string
				Datasource struct{ Type string }
			}
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	parse, n := parser.NewParser(parser.Options{}), 0
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			if target.Datasource.Type != "prometheus" {
				continue
			}
			n++
			expr := strings.NewReplacer("$__rate_interval", "1m", "$instance", ".*", "$service", ".*").Replace(target.Expr)
			if _, err := parse.ParseExpr(expr); err != nil {
				t.Errorf("%s: %s: %v", p.Title, target.Expr, err)
			}
		}
	}
	if n < least {
		t.Errorf("%d expressions", n)
	}
}

// TestPage ensures that Prometheus' parser reads a page of package count.
func TestPage(t *testing.T) {
	page, err := os.Open("../../../count/testdata/page.prom")
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	parse := expfmt.NewTextParser(model.LegacyValidation)
	all, err := parse.TextToMetricFamilies(page)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 8 || all["test_size_bytes"].GetMetric()[0].GetHistogram().GetSampleCount() != 6 || all["test_depth"].GetHelp() != "A \\ and\na line." ||
		all["test_requests_total"].GetMetric()[1].GetLabel()[1].GetValue() != "\"quoted\" \\ \n" {
		t.Errorf("%v", all)
	}
}

// testFile is a file for promtool test rules, as far as alerts_test.yaml uses its form.
type testFile struct {
	RuleFiles  []string       `yaml:"rule_files"`
	Evaluation model.Duration `yaml:"evaluation_interval"`
	Tests      []alertTest    `yaml:"tests"`
}

type alertTest struct {
	Name     string         `yaml:"name"`
	Interval model.Duration `yaml:"interval"`
	Input    []struct {
		Series string `yaml:"series"`
		Values string `yaml:"values"`
	} `yaml:"input_series"`
	Exprs []struct {
		Expr string         `yaml:"expr"`
		At   model.Duration `yaml:"eval_time"`
		Want []struct {
			Labels string  `yaml:"labels"`
			Value  float64 `yaml:"value"`
		} `yaml:"exp_samples"`
	} `yaml:"promql_expr_test"`
	Alerts []struct {
		At   model.Duration `yaml:"eval_time"`
		Name string         `yaml:"alertname"`
		Want []struct {
			Labels      map[string]string `yaml:"exp_labels"`
			Annotations map[string]string `yaml:"exp_annotations"`
		} `yaml:"exp_alerts"`
	} `yaml:"alert_rule_test"`
}

// TestAlerts runs the tests of the alerts.
func TestAlerts(t *testing.T) {
	dir := filepath.Join(deploy, "prometheus")
	text, err := os.ReadFile(filepath.Join(dir, "alerts_test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file testFile
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}
	for i, name := range file.RuleFiles {
		file.RuleFiles[i] = filepath.Join(dir, name)
	}
	fired := map[string]bool{}
	for _, test := range file.Tests {
		t.Run(test.Name, func(t *testing.T) {
			test.run(t, &file)
			for _, alert := range test.Alerts {
				fired[alert.Name] = fired[alert.Name] || len(alert.Want) > 0
			}
		})
	}
	groups, errs := rulefmt.ParseFile(file.RuleFiles[0], false, model.LegacyValidation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if errs != nil {
		t.Fatal(errs)
	}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if r.Alert != "" && !fired[r.Alert] {
				t.Errorf("no test in which %s fires", r.Alert)
			}
		}
	}
}

// run evaluates the rules minute by minute and compares the alerts that fire.
func (test *alertTest) run(t *testing.T, file *testFile) {
	load := fmt.Sprintf("load %s\n", test.Interval)
	for _, in := range test.Input {
		load += fmt.Sprintf("  %s %s\n", in.Series, in.Values)
	}
	suite, err := promqltest.NewLazyLoader(load, promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true})
	if err != nil {
		t.Fatal(err)
	}
	defer suite.Close()
	query := rules.EngineQueryFunc(suite.QueryEngine(), suite.Storage())
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: query, Appendable: suite.Storage(), Context: t.Context(), Logger: slog.New(slog.DiscardHandler),
		NotifyFunc: func(_ context.Context, _ string, _ ...*rules.Alert) {}, Parser: parser.NewParser(parser.Options{}),
	})
	groups, errs := manager.LoadGroups(time.Duration(test.Interval), labels.EmptyLabels(), "", nil, false, file.RuleFiles...)
	if errs != nil {
		t.Fatal(errs)
	}
	end := model.Duration(0)
	for _, e := range test.Exprs {
		end = max(end, e.At)
	}
	for _, a := range test.Alerts {
		end = max(end, a.At)
	}
	for at := model.Duration(0); at <= end; at += file.Evaluation {
		now := time.Unix(0, 0).UTC().Add(time.Duration(at))
		suite.WithSamplesTill(now, func(err error) {
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range slices.Sorted(maps.Keys(groups)) {
				groups[name].Eval(suite.Context(), now)
				for _, r := range groups[name].Rules() {
					if r.LastError() != nil {
						t.Fatalf("%s: %v", r.Name(), r.LastError())
					}
				}
			}
		})
		test.check(t, at, groups)
		test.checkExprs(t, at, func(expr string) (promql.Vector, error) { return query(suite.Context(), expr, now) })
	}
}

// checkExprs compares the results of expressions with those that the test wants at this time.
func (test *alertTest) checkExprs(t *testing.T, at model.Duration, query func(expr string) (promql.Vector, error)) {
	for _, e := range test.Exprs {
		if e.At != at {
			continue
		}
		found, err := query(e.Expr)
		if err != nil {
			t.Fatal(err)
		}
		got, want := []string{}, []string{}
		for _, s := range found {
			got = append(got, fmt.Sprintf("%s %g", s.Metric.String(), s.F))
		}
		for _, w := range e.Want {
			m, err := parser.NewParser(parser.Options{}).ParseMetric(w.Labels)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, fmt.Sprintf("%s %g", m.String(), w.Value))
		}
		same(t, e.Expr, got, want)
	}
}

// check compares the alerts that fire with those that the test wants at this time.
func (test *alertTest) check(t *testing.T, at model.Duration, groups map[string]*rules.Group) {
	for _, a := range test.Alerts {
		if a.At != at {
			continue
		}
		got, want, known := []string{}, []string{}, false
		for _, g := range groups {
			for _, r := range g.Rules() {
				alert, ok := r.(*rules.AlertingRule)
				if !ok || alert.Name() != a.Name {
					continue
				}
				known = true
				for _, active := range alert.ActiveAlerts() {
					if active.State == rules.StateFiring {
						got = append(got, active.Labels.String()+" "+active.Annotations.String())
					}
				}
			}
		}
		for _, w := range a.Want {
			all := maps.Clone(w.Labels)
			all[labels.AlertName] = a.Name
			want = append(want, labels.FromMap(all).String()+" "+labels.FromMap(w.Annotations).String())
		}
		if !known {
			t.Errorf("there is no alert %s", a.Name)
		}
		same(t, fmt.Sprintf("%s at %s", a.Name, at), got, want)
	}
}

// same compares two lists, in any order.
func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s:\ngot  %s\nwant %s", what, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}
