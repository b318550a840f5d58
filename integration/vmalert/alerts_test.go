package vmalert

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// often are rules with an interval that tests can wait for.
const often = `
groups:
  - name: often
    interval: 2s
    eval_delay: 0s
    rules:
      - alert: Failed
        expr: sum by (service_name) (count_over_time({level=~"error|critical"}[5m])) > 0
        annotations: {summary: "{{ $value }} of {{ $labels.service_name }}"}
      - alert: Silent
        expr: absent_over_time({service_name="web"}[5m])
      - record: logs:took_ms:median
        expr: quantile_over_time(0.5, {service_name="web"} | took_ms >= 0 | unwrap took_ms [5m]) by (service_name)
`

// An error in the logs is an alert within two intervals. While an ingester is dead that may have
// records, each evaluation is an error, and no alert ends: the answers are incomplete, so neither
// an end nor a silence can be told. Once it is back all is as before.
func TestAlert(t *testing.T) {
	t.Parallel()
	s, r := open(t), receive(t)
	s.send(fmt.Sprintf(`{"time":%q,"level":"info","service":"web","msg":"fine","took_ms":12.5}`, time.Now().Add(-time.Minute).UTC().Format(time.RFC3339Nano)))
	w := watch(t, s, r, nil, write(t, "rules.yaml", often), "-rule.resendDelay=1m", "-remoteWrite.url="+r.url, "-remoteWrite.flushInterval=100ms")
	w.evaluated()
	if all := r.of("Failed", ""); len(all) > 0 {
		t.Fatalf("nothing has failed: %+v", all)
	}
	s.send(failure("web", "out of disk"))
	sent := time.Now()
	until(t, "an alert", func() bool { return len(r.of("Failed", "web")) > 0 })
	first := r.of("Failed", "web")[0]
	// Two intervals; a busy machine may take longer to tell of it.
	if took := first.StartsAt.Sub(sent); took > 4*time.Second || first.came.Sub(sent) > 15*time.Second {
		t.Errorf("the evaluation was %s after the record, and the alert came after %s", took, first.came.Sub(sent))
	}
	if first.Annotations["summary"] != "1 of web" || first.resolved() {
		t.Errorf("%+v", first)
	}
	until(t, "a quantile is recorded", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, v := range r.points[`{__name__="logs:took_ms:median",service_name="web"}`] {
			return v == 12.5
		}
		return false
	})

	s.ingest.kill()
	killed := time.Now()
	failing := func(all map[string]rule) bool {
		for _, one := range all {
			if one.LastEvaluation.Before(killed) || !strings.Contains(one.LastError, "incomplete") || one.Health != "err" {
				return false
			}
		}
		return len(all) == 3
	}
	until(t, "all rules fail", func() bool { return failing(w.rules()) })
	page := string(get(t, w.url+"/metrics"))
	for _, name := range []string{"vmalert_alerting_rules_errors_total", "vmalert_recording_rules_errors_total"} {
		if !regexp.MustCompile(name + `\{.*\} [1-9]`).MatchString(page) {
			t.Errorf("no error is counted by %s", name)
		}
	}
	time.Sleep(3 * 2 * time.Second) // further intervals
	if all := w.rules(); all["Failed"].State != "firing" || all["Silent"].State != "inactive" || !failing(all) {
		t.Errorf("while the ingester is dead: %+v", all)
	}
	all := r.of("Failed", "web")
	for _, a := range all {
		if a.resolved() {
			t.Errorf("it was told that the alert has ended: %+v", a)
		}
	}
	// Alertmanager keeps it for four times -rule.resendDelay without another word.
	if last := all[len(all)-1]; last.EndsAt.Sub(last.came) < 3*time.Minute {
		t.Errorf("it ends at %s, %s after it was sent", last.EndsAt, last.EndsAt.Sub(last.came))
	}
	if silent := r.of("Silent", ""); len(silent) > 0 {
		t.Errorf("an answer that lacks records was taken for silence: %+v", silent)
	}

	s.start()
	until(t, "the rules work again", func() bool {
		for _, one := range w.rules() {
			if one.LastError != "" {
				return false
			}
		}
		return true
	})
	if all := w.rules(); all["Failed"].State != "firing" {
		t.Errorf("the ingester is back: %+v", all)
	}
}

// A token that reads some services has alerts on these alone. A group may have a token of its own.
func TestTeam(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	team, all := token(t, file, "team", "--read", "web*"), token(t, file, "all", "--read", "*")
	s, r := open(t, "--tokens", file), receive(t)
	s.send(failure("web", "of the team"), failure("orders", "of others"))
	const of = `
  - name: %s
    interval: 2s
    eval_delay: 0s
    %s
    rules:
      - alert: %s
        expr: sum by (service_name) (count_over_time({level="error"}[5m])) > 0
`
	rules := "groups:" + fmt.Sprintf(of, "team", "", "Team") + fmt.Sprintf(of, "all", `headers: ["Authorization: Bearer %{ALL}"]`, "All") +
		fmt.Sprintf(of, "stranger", `headers: ["Authorization: Bearer team.wrong"]`, "Stranger")
	w := watch(t, s, r, []string{"ALL=" + all}, write(t, "rules.yaml", rules), "-datasource.bearerTokenFile="+write(t, "token", team+"\n"))
	until(t, "the alerts", func() bool {
		return len(r.of("Team", "web")) > 0 && len(r.of("All", "web")) > 0 && len(r.of("All", "orders")) > 0 && w.rules()["Stranger"].LastError != ""
	})
	if got := r.of("Team", "orders"); len(got) > 0 {
		t.Errorf("the team has alerts on services of others: %+v", got)
	}
	if got := w.rules()["Stranger"].LastError; !strings.Contains(got, "401") {
		t.Errorf("with a wrong token: %s", got)
	}
	if strings.Contains(w.log(), all) || strings.Contains(w.log(), team) {
		t.Error("the log of vmalert has a token")
	}
}

// A replay over a day of the past, which was compacted, writes the numbers of the range query, and
// these are those of the records.
func TestReplay(t *testing.T) {
	t.Parallel()
	s, r := open(t), receive(t)
	day := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -3)
	const step = 10 * time.Minute
	want := map[string]map[int64]float64{}
	for part := range 8 { // each in blobs of its own
		var lines []string
		for i := range 200 {
			at := day.Add(time.Duration(part*200+i) * 53 * time.Second).Add(time.Duration(i%3) * 250 * time.Millisecond)
			service, level := []string{"web", "orders", "db"}[i%3], []string{"error", "info"}[i%2]
			lines = append(lines, fmt.Sprintf(`{"time":%q,"level":%q,"service":%q,"msg":"n %d of %d"}`, at.Format(time.RFC3339Nano), level, service, i, part))
			if level == "error" {
				// The window of a point begins a step before it, and does not have the point itself.
				point := at.Truncate(step).Add(step)
				name := fmt.Sprintf(`{__name__="logs:errors:count10m",service_name=%q}`, service)
				if want[name] == nil {
					want[name] = map[int64]float64{}
				}
				want[name][point.UnixMilli()]++
			}
		}
		s.send(lines...)
		s.flush()
	}
	for _, args := range [][]string{{"close"}, {"compact", "--grace", "0s"}, {"compact", "--grace", "0s"}} {
		if out, err := exec.Command(filepath.Join(bin, "retention"), append(args, "--store", s.store)...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	blobs, err := filepath.Glob(filepath.Join(strings.TrimPrefix(s.store, "dir:"), "web", "*", "*", "*", "*", "99*"))
	if err != nil || len(blobs) == 0 {
		t.Fatalf("nothing was compacted: %v", err)
	}
	rules := write(t, "rules.yaml", `
groups:
  - name: past
    interval: 10m
    rules:
      - record: logs:errors:count10m
        expr: sum by (service_name) (count_over_time({level="error"}[10m]))
`)
	p := launch(t, nil, "vmalert", "-rule="+rules, "-rule.validateExpressions=false", "-datasource.url="+s.serve+"/loki", "-remoteWrite.url="+r.url,
		"-replay.timeFrom="+day.Format(time.RFC3339), "-replay.timeTo="+day.AddDate(0, 0, 1).Format(time.RFC3339),
		"-replay.maxDatapointsPerQuery=50", "-replay.disableProgressBar", "-replay.rulesDelay=0s", "-loggerLevel=INFO")
	select {
	case <-p.gone:
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
	if !p.cmd.ProcessState.Success() || !strings.Contains(p.log(), "replay succeed") {
		t.Fatalf("it ends with %v", p.cmd.ProcessState)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	samePoints(t, "replay", r.points, want)
	samePoints(t, "range query", ranged(t, s, day, day.AddDate(0, 0, 1), step), want)
}

// Windows as long as the interval count each record once, in one of them, if records come within
// the delay of evaluations.
func TestCounts(t *testing.T) {
	t.Parallel()
	s, r := open(t), receive(t)
	rules := write(t, "rules.yaml", `
groups:
  - name: counts
    interval: 2s
    eval_delay: 5s
    rules:
      - record: logs:records:count2s
        expr: sum by (service_name) (count_over_time({}[2s]))
`)
	w := watch(t, s, r, nil, rules, "-remoteWrite.url="+r.url, "-remoteWrite.flushInterval=100ms")
	want, last := 0.0, time.Time{}
	for i := range 60 { // records of each of the last two seconds, as shippers send them
		at := time.Now().Add(-time.Duration(i*7%20) * 100 * time.Millisecond)
		s.send(fmt.Sprintf(`{"time":%q,"level":"info","service":"web","msg":"n %d"}`, at.UTC().Format(time.RFC3339Nano), i))
		want, last = want+1, at
		time.Sleep(100 * time.Millisecond)
	}
	sum := func() (sum float64) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, v := range r.points[`{__name__="logs:records:count2s",service_name="web"}`] {
			sum += v
		}
		return sum
	}
	until(t, "the last window is evaluated", func() bool {
		return w.rules()["logs:records:count2s"].LastEvaluation.After(last.Add(10 * time.Second))
	})
	time.Sleep(time.Second) // until it is written
	if got := sum(); got != want {
		if regexp.MustCompile(`vmalert_iteration_missed_total\{.*\} [1-9]`).Match(get(t, w.url+"/metrics")) {
			t.Skipf("vmalert missed an evaluation, as a busy machine has it: %v of %v", got, want)
		}
		t.Errorf("the recorded counts have %v records, %v were sent", got, want)
	}
}
