package vmalert

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/VictoriaMetrics/lib/prompb"
	"github.com/golang/snappy"
)

// alert is an alert as Alertmanager gets it.
type alert struct {
	StartsAt, EndsAt    time.Time
	Labels, Annotations map[string]string

	came time.Time
}

// resolved reports whether Alertmanager would take the alert for resolved.
func (a *alert) resolved() bool { return !a.EndsAt.After(a.came) }

// receiver is in place of Alertmanager and of a Prometheus that takes what is recorded.
type receiver struct {
	url string

	mu     sync.Mutex
	alerts []alert
	points map[string]map[int64]float64 // by series and time in ms
	errs   []string
}

// receive starts a receiver.
func receive(t *testing.T) *receiver {
	r := &receiver{points: map[string]map[int64]float64{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v2/alerts", r.alert)
	mux.HandleFunc("POST /api/v1/write", r.write)
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		server.Close()
		for _, err := range r.errs {
			t.Error(err)
		}
	})
	r.url = server.URL
	return r
}

func (r *receiver) wrong(w http.ResponseWriter, err error) {
	r.errs = append(r.errs, err.Error())
	http.Error(w, err.Error(), http.StatusBadRequest)
}

func (r *receiver) alert(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []alert
	if err := json.NewDecoder(q.Body).Decode(&all); err != nil {
		r.wrong(w, err)
		return
	}
	for _, a := range all {
		a.came = time.Now()
		r.alerts = append(r.alerts, a)
	}
}

// write takes snappy alone, as Prometheus does: vmalert begins with zstd, and turns to it.
func (r *receiver) write(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q.Header.Get("Content-Encoding") != "snappy" {
		http.Error(w, "snappy is wanted", http.StatusUnsupportedMediaType)
		return
	}
	body, err := io.ReadAll(q.Body)
	if err == nil {
		body, err = snappy.Decode(nil, body)
	}
	if err != nil {
		r.wrong(w, err)
		return
	}
	u := prompb.GetWriteRequestUnmarshaler()
	defer prompb.PutWriteRequestUnmarshaler(u)
	all, err := u.UnmarshalProtobuf(body)
	if err != nil {
		r.wrong(w, err)
		return
	}
	for _, series := range all.Timeseries {
		name := strings.Clone(prompb.LabelsToString(series.Labels))
		if r.points[name] == nil {
			r.points[name] = map[int64]float64{}
		}
		for _, p := range series.Samples {
			if !math.IsNaN(p.Value) { // as the end of a series is marked
				r.points[name][p.Timestamp] = p.Value
			}
		}
	}
}

// of returns the alerts of a name that came, for a service; "" is any.
func (r *receiver) of(name, service string) (all []alert) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.alerts {
		if a.Labels["alertname"] == name && (service == "" || a.Labels["service_name"] == service) {
			all = append(all, a)
		}
	}
	return all
}

// watcher is a running vmalert.
type watcher struct {
	*process
	url string
}

// watch starts vmalert over a server, with more flags.
func watch(t *testing.T, s *site, r *receiver, env []string, rules string, flags ...string) *watcher {
	t.Helper()
	return watchWith(t, env, append([]string{"-rule=" + rules, "-rule.validateExpressions=false", "-datasource.url=" + s.serve + "/loki",
		"-notifier.url=" + r.url}, flags...))
}

// watchWith starts vmalert with flags. It begins at once, and not within an interval.
func watchWith(t *testing.T, env, flags []string) *watcher {
	t.Helper()
	at := free(t)
	w := &watcher{url: "http://" + at}
	w.process = launch(t, env, "vmalert", append(flags, "-httpListenAddr="+at, "-group.maxStartDelay=1ms")...)
	until(t, "vmalert answers", func() bool {
		select {
		case <-w.gone:
			t.Fatal("vmalert has ended")
		default:
		}
		answer, err := http.Get(w.url + "/-/ready")
		if err == nil {
			answer.Body.Close()
		}
		return err == nil && answer.StatusCode == http.StatusOK
	})
	return w
}

// rule is a rule as vmalert's page of rules has it.
type rule struct {
	Name, State, LastError, Health string
	LastEvaluation                 time.Time
}

// rules returns the rules by name.
func (w *watcher) rules() map[string]rule {
	w.t.Helper()
	var page struct {
		Data struct{ Groups []struct{ Rules []rule } }
	}
	if err := json.Unmarshal(get(w.t, w.url+"/api/v1/rules"), &page); err != nil {
		w.t.Fatal(err)
	}
	all := map[string]rule{}
	for _, g := range page.Data.Groups {
		for _, r := range g.Rules {
			all[r.Name] = r
		}
	}
	return all
}

// evaluated waits until all rules have been evaluated, and fails for those with an error.
func (w *watcher) evaluated() map[string]rule {
	w.t.Helper()
	var all map[string]rule
	until(w.t, "all rules are evaluated", func() bool {
		all = w.rules()
		for _, r := range all {
			if r.LastEvaluation.IsZero() {
				return false
			}
		}
		return len(all) > 0
	})
	for name, r := range all {
		if r.LastError != "" {
			w.t.Errorf("%s: %s", name, r.LastError)
		}
	}
	return all
}
