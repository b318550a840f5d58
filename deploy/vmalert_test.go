package deploy

import (
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"blobtail/logql"
)

// ruleFile is a file of rules for vmalert.
type ruleFile struct {
	Groups []struct {
		Name, Interval string
		Headers        []string
		Rules          []alertRule
	}
}

// rulesOf reads rules, of which no key may be unknown.
func rulesOf(t *testing.T, name, text string) ruleFile {
	t.Helper()
	var file ruleFile
	if err := yaml.NewDecoder(strings.NewReader(text), yaml.Strict()).Decode(&file); err != nil {
		t.Fatalf("%s: %s", name, yaml.FormatError(err, false, true))
	}
	return file
}

// TestRulesOfVmalert ensures that each expression of the rules of deploy/ and of docs/read/alerts.md is
// LogQL that gives numbers, and that each alert says what to do. integration/vmalert has vmalert
// itself read and evaluate them.
func TestRulesOfVmalert(t *testing.T) {
	files := map[string]string{"rules.yaml": read(t, "vmalert/rules.yaml"), "recording.yaml": read(t, "vmalert/recording.yaml")}
	for _, m := range regexp.MustCompile("(?ms)^```text\n(groups:.*?)^```$").FindAllStringSubmatch(read(t, "../docs/read/alerts.md"), -1) {
		files["docs/read/alerts.md: "+strings.TrimSpace(m[1])] = m[1]
	}
	if len(files) < 4 {
		t.Errorf("found %d files of rules", len(files))
	}
	for name, text := range files {
		page := strings.HasPrefix(name, "docs/")
		for _, g := range rulesOf(t, name, text).Groups {
			if g.Name == "" || len(g.Rules) == 0 {
				t.Errorf("%s: %+v", name, g)
			}
			for _, r := range g.Rules {
				e, err := logql.Parse(r.Expr)
				if _, numbers := e.(logql.Metric); err != nil || !numbers {
					t.Errorf("%s: %s%s: %s: %v", name, r.Alert, r.Record, r.Expr, err)
				}
				if r.Alert != "" && !page && (r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.Annotations["page"] == "") {
					t.Errorf("%s: %+v", name, r)
				}
			}
		}
	}
}

// TestVmalertPod ensures that the pods have the rules of vmalert/rules.yaml, and that Compose and
// Kubernetes run the version that integration/vmalert is tested with.
func TestVmalertPod(t *testing.T) {
	docs := documents(t, "kubernetes/vmalert.yaml")
	var o object
	if err := yaml.Unmarshal([]byte(docs["ConfigMap/blobtail-vmalert"]), &o); err != nil {
		t.Fatal(yaml.FormatError(err, false, true))
	}
	if strings.TrimSpace(o.Data["rules.yaml"]) != strings.TrimSpace(read(t, "vmalert/rules.yaml")) {
		t.Error("the ConfigMap of kubernetes/vmalert.yaml is no copy of vmalert/rules.yaml")
	}
	version := regexp.MustCompile(`VictoriaMetrics/VictoriaMetrics (v\S+)`).FindStringSubmatch(read(t, "../integration/vmalert/go.mod"))
	image := "victoriametrics/vmalert:" + version[1]
	c := composed(t)
	if got := c.Services["vmalert"].Image; got != image {
		t.Errorf("compose has %s, the tests run %s", got, image)
	}
	if !strings.Contains(docs["Deployment/blobtail-vmalert"], "image: "+image+"\n") {
		t.Errorf("the pods do not run %s", image)
	}
}
