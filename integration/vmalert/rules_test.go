package vmalert

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/VictoriaMetrics/app/vmalert/config"
	"github.com/VictoriaMetrics/VictoriaMetrics/app/vmalert/notifier"
	"github.com/VictoriaMetrics/VictoriaMetrics/app/vmalert/templates"
	"gopkg.in/yaml.v2"
)

// ranged asks a server for the numbers of TestReplay.
func ranged(t *testing.T, s *site, from, to time.Time, step time.Duration) map[string]map[int64]float64 {
	t.Helper()
	q := url.Values{
		"query": {`sum by (service_name) (count_over_time({level="error"}[10m]))`}, "step": {step.String()},
		"start": {from.Format(time.RFC3339)}, "end": {to.Format(time.RFC3339)},
	}
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	if err := json.Unmarshal(get(t, s.serve+"/loki/api/v1/query_range?"+q.Encode()), &answer); err != nil {
		t.Fatal(err)
	}
	all := map[string]map[int64]float64{}
	for _, series := range answer.Data.Result {
		name := fmt.Sprintf(`{__name__="logs:errors:count10m",service_name=%q}`, series.Metric["service_name"])
		all[name] = map[int64]float64{}
		for _, p := range series.Values {
			v, err := strconv.ParseFloat(p[1].(string), 64)
			if err != nil {
				t.Fatal(err)
			}
			all[name][int64(p[0].(float64)*1000)] = v
		}
	}
	return all
}

// samePoints compares series point by point.
func samePoints(t *testing.T, what string, got, want map[string]map[int64]float64) {
	t.Helper()
	if len(got) != len(want) || len(want) == 0 {
		t.Errorf("%s: %d series, want %d", what, len(got), len(want))
	}
	for name, points := range want {
		if len(got[name]) != len(points) || len(points) < 100 {
			t.Errorf("%s: %s has %d points, want %d", what, name, len(got[name]), len(points))
		}
		for at, v := range points {
			if got[name][at] != v {
				t.Errorf("%s: %s at %s is %v, want %v", what, name, time.UnixMilli(at).UTC(), got[name][at], v)
			}
		}
	}
}

// TestRulesAreRead ensures that vmalert's own code reads the rules of deploy/ and of docs/read/alerts.md,
// with the templates of their texts, and the alerts for Prometheus with their expressions too.
func TestRulesAreRead(t *testing.T) {
	if err := templates.Load(nil, url.URL{}); err != nil {
		t.Fatal(err)
	}
	files := map[string]bool{filepath.Join(root, "deploy/vmalert/rules.yaml"): false, filepath.Join(root, "deploy/vmalert/recording.yaml"): false,
		filepath.Join(root, "deploy/prometheus/alerts.yaml"): true}
	for _, m := range regexp.MustCompile("(?ms)^```text\n(groups:.*?)^```$").FindAllStringSubmatch(read(t, "docs/read/alerts.md"), -1) {
		files[write(t, "rules.yaml", m[1])] = false
	}
	if len(files) < 5 {
		t.Errorf("%d files", len(files))
	}
	for file, promql := range files {
		groups, err := config.Parse([]string{file}, notifier.ValidateTemplates, promql)
		if err != nil || len(groups) == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestPageOfFlags ensures that vmalert has each flag that docs/read/alerts.md names.
func TestPageOfFlags(t *testing.T) {
	help, err := exec.Command(filepath.Join(bin, "vmalert"), "-help").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, m := range regexp.MustCompile("(?m)(?:^|[ `|])-([a-z][A-Za-z.]{2,}[A-Za-z])[= `.,;:)\n]").FindAllStringSubmatch(read(t, "docs/read/alerts.md"), -1) {
		if seen++; !regexp.MustCompile(`(?m)^  -` + regexp.QuoteMeta(m[1]) + `\b`).Match(help) {
			t.Errorf("vmalert has no -%s", m[1])
		}
	}
	if seen < 20 {
		t.Errorf("the page names %d flags", seen)
	}
}

// commands are the arguments of vmalert in the files of deploy/.
func commands(t *testing.T) map[string][]string {
	t.Helper()
	var compose struct {
		Services map[string]struct{ Command []string }
	}
	if err := yaml.Unmarshal([]byte(read(t, "deploy/compose.yaml")), &compose); err != nil {
		// Other services have their command as one text.
		if len(compose.Services["vmalert"].Command) == 0 {
			t.Fatal(err)
		}
	}
	all := map[string][]string{"compose.yaml": compose.Services["vmalert"].Command}
	for _, doc := range strings.Split(read(t, "deploy/kubernetes/vmalert.yaml"), "\n---\n") {
		var o struct {
			Kind string
			Spec struct {
				Template struct {
					Spec struct{ Containers []struct{ Args []string } }
				}
			}
		}
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			t.Fatal(err)
		}
		if o.Kind == "Deployment" {
			all["kubernetes/vmalert.yaml"] = o.Spec.Template.Spec.Containers[0].Args
		}
	}
	return all
}

// TestDeployed runs vmalert with the flags and the rules of compose.yaml and of kubernetes/vmalert.yaml
// over a server with TLS and tokens: each rule is evaluated, and a critical record is an alert. All
// metrics that alerts for Prometheus ask of vmalert are there.
func TestDeployed(t *testing.T) {
	folder := t.TempDir()
	if out, err := exec.Command("bash", filepath.Join(root, "deploy/tls.sh"), folder, "localhost", "127.0.0.1").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	secrets := filepath.Join(folder, "ingest")
	tokens := filepath.Join(secrets, "tokens.yaml")
	reader := token(t, tokens, "rules", "--read", "*")
	s := open(t, "--tokens", tokens, "--tls-cert", filepath.Join(secrets, "tls.crt"), "--tls-key", filepath.Join(secrets, "tls.key"))
	at := time.Now().Add(-2 * time.Minute).UTC().Format(time.RFC3339Nano) // before the delay of evaluations
	s.send(fmt.Sprintf(`{"time":%q,"level":"fatal","service":"web","msg":"panic: out of disk","took_ms":3}`, at))
	var old []string
	for i := range 150 {
		at := time.Now().Add(-30*time.Minute - time.Duration(i)*time.Second).UTC().Format(time.RFC3339Nano)
		old = append(old, fmt.Sprintf(`{"time":%q,"level":"info","service":"cron","msg":"n %d"}`, at, i))
	}
	s.send(old...)
	rules, err := filepath.Abs(filepath.Join(root, "deploy/vmalert"))
	if err != nil {
		t.Fatal(err)
	}
	for name, command := range commands(t) {
		t.Run(name, func(t *testing.T) {
			r := receive(t)
			here := strings.NewReplacer(
				"/etc/vmalert/", rules+"/", "/etc/blobtail/ca.crt", filepath.Join(secrets, "ca.crt"),
				"/etc/blobtail-tls/ca.crt", filepath.Join(secrets, "ca.crt"), "/etc/blobtail-access/token", write(t, "token", reader),
				"https://serve:8516", s.serve, "https://blobtail-serve.$(POD_NAMESPACE).svc:8516", s.serve,
				"http://alertmanager:9093", r.url, "http://alertmanager.monitoring.svc:9093", r.url)
			var flags []string
			for _, flag := range command {
				if !strings.HasPrefix(flag, "-httpListenAddr=") {
					flags = append(flags, here.Replace(flag))
				}
			}
			// With the other file of rules too, which needs an end for what it records.
			w := watchWith(t, []string{"BLOBTAIL_TOKEN=" + reader}, append(flags, "-rule="+filepath.Join(rules, "recording.yaml"), "-remoteWrite.url="+r.url))
			all := w.evaluated()
			if len(all) < 7 {
				t.Errorf("%d rules", len(all))
			}
			until(t, "the alerts", func() bool { return len(r.of("LogsCritical", "web")) > 0 && len(r.of("LogsPanic", "web")) > 0 })
			if all["LogsSilent"].State != "pending" || all["LogsManyErrors"].State != "inactive" || all["LogsSlow"].State != "inactive" {
				t.Errorf("cron has been silent for half an hour, and nothing is slow: %+v", all)
			}
			if strings.Contains(w.log(), reader) {
				t.Error("its log has the token")
			}
			checkMetrics(t, w)
		})
	}
}

// checkMetrics ensures that vmalert has the metrics that alerts for Prometheus ask of it.
func checkMetrics(t *testing.T, w *watcher) {
	t.Helper()
	page := string(get(t, w.url+"/metrics"))
	names := regexp.MustCompile(`vmalert_[a-z_]+[a-z]`).FindAllString(regexp.MustCompile(`vmalert_\(alerting\|recording\)_`).
		ReplaceAllString(read(t, "deploy/prometheus/alerts.yaml"), "vmalert_recording_"), -1)
	names = append(names, "vmalert_alerting_rules_errors_total")
	slices.Sort(names)
	if names = slices.Compact(names); len(names) < 5 {
		t.Errorf("the alerts ask for %q", names)
	}
	for _, name := range names {
		if !regexp.MustCompile(`(?m)^` + name + `[ {]`).MatchString(page) {
			t.Errorf("vmalert has no %s", name)
		}
	}
}
