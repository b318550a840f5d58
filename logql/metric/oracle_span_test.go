package metric_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// A span is an aggregation over time.
type span struct {
	op      string
	param   float64
	service string // "" for all
	stages  []plain
	unwrap  string // a label
	convert string
	clean   bool // with | __error__="" behind the unwrap
	window  time.Duration
	offset  time.Duration
	by      grouping
	behind  bool // the pipeline stands behind the range
}

func (s *span) scalar() bool { return false }

func (s *span) text(int) string {
	var b strings.Builder
	b.WriteString(s.op + "(")
	if s.op == "quantile_over_time" {
		fmt.Fprintf(&b, "%v, ", s.param)
	}
	b.WriteString("{")
	if s.service != "" {
		fmt.Fprintf(&b, "service_name=%q", s.service)
	}
	b.WriteString("} ")
	span := fmt.Sprintf("[%s] ", s.window)
	if s.offset != 0 {
		span += fmt.Sprintf("offset %s ", s.offset)
	}
	if s.behind {
		b.WriteString(span)
	}
	for _, one := range s.stages {
		b.WriteString(one.text + " ")
	}
	if s.unwrap != "" {
		label := s.unwrap
		if s.convert != "" {
			label = s.convert + "(" + label + ")"
		}
		b.WriteString("| unwrap " + label + " ")
		if s.clean {
			b.WriteString(`| __error__="" `)
		}
	}
	if !s.behind {
		b.WriteString(span)
	}
	return b.String() + ")" + s.by.text()
}

// A taken is a sample.
type taken struct {
	ns int64
	v  float64
}

func (s *span) at(w *world, ns int64, named []string) (answer, error) {
	end := ns - int64(s.offset)
	begin := end - int64(s.window)
	samples, labels := map[string][]taken{}, map[string]map[string]string{}
	for _, r := range w.items {
		if r.time < begin || r.time >= end || s.service != "" && r.service != s.service {
			continue
		}
		all, v, ok, err := s.sample(r.begin(w.lines), named)
		if err != nil {
			return answer{}, err
		}
		if ok {
			samples[id(all)] = append(samples[id(all)], taken{r.time, v})
			labels[id(all)] = all
		}
	}
	a := answer{all: map[string]one{}}
	if s.op == "absent_over_time" {
		if len(samples) == 0 {
			all := map[string]string{"service_name": s.service}
			all = only(all, true, nil)
			a.all[id(all)] = one{all, 1}
		}
		return a, nil
	}
	for k, of := range samples {
		a.all[k] = one{labels[k], s.over(of, begin, end)}
	}
	return a, nil
}

// sample runs the pipeline on a record.
func (s *span) sample(w *work, named []string) (labels map[string]string, v float64, ok bool, err error) {
	for _, one := range s.stages {
		if !one.run(w) {
			return nil, 0, false, nil
		}
	}
	v = 1
	switch {
	case s.unwrap != "":
		text, _ := w.get(s.unwrap)
		if text == "" {
			return nil, 0, false, nil
		}
		read := map[string]func(string) (float64, bool){"": readNumber, "bytes": readSize, "duration": readDuration}[s.convert]
		if v, ok = read(text); !ok {
			w.failed = "SampleExtractionErr"
		}
		if s.clean && w.failed != "" {
			return nil, 0, false, nil
		}
	case strings.HasPrefix(s.op, "bytes"):
		v = float64(len(w.text))
	}
	if w.failed != "" {
		return nil, 0, false, errors.New("pipeline error: '" + w.failed + "'")
	}
	if s.by.word == "" {
		return w.series(named, s.unwrap), v, true, nil
	}
	if s.by.word == "by" {
		return s.by.of(w.series(s.by.names, "")), v, true, nil
	}
	return s.by.of(w.series(named, s.unwrap)), v, true, nil
}

// over aggregates the samples of a window.
func (s *span) over(of []taken, begin, end int64) float64 {
	n, sum, low, high := float64(len(of)), 0.0, math.NaN(), math.NaN()
	var values []float64
	for _, t := range of {
		sum += t.v
		values = append(values, t.v)
		if math.IsNaN(low) || t.v < low {
			low = t.v
		}
		if math.IsNaN(high) || t.v > high {
			high = t.v
		}
	}
	switch s.op {
	case "count_over_time":
		return n
	case "rate", "bytes_rate":
		return sum / s.window.Seconds()
	case "bytes_over_time", "sum_over_time":
		return sum
	case "avg_over_time":
		return sum / n
	case "min_over_time":
		return low
	case "max_over_time":
		return high
	case "first_over_time":
		return of[0].v
	case "last_over_time":
		return of[len(of)-1].v
	case "stdvar_over_time":
		return variance(values)
	case "stddev_over_time":
		return math.Sqrt(variance(values))
	case "quantile_over_time":
		return nth(s.param, values)
	case "rate_counter":
		return speed(of, begin, end)
	}
	panic(s.op)
}

func variance(values []float64) float64 {
	mean, sum := 0.0, 0.0
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return sum / float64(len(values))
}

func nth(q float64, values []float64) float64 {
	slices.Sort(values) // NaN first
	if q > 1 {
		return math.Inf(1)
	}
	rank := q * float64(len(values)-1)
	low, high := math.Floor(rank), math.Min(math.Floor(rank)+1, float64(len(values)-1))
	return values[int(low)]*(1-(rank-low)) + values[int(high)]*(rank-low)
}

// speed is the rate of a counter, as Prometheus defines it.
func speed(of []taken, begin, end int64) float64 {
	last := of[len(of)-1]
	between := float64(last.ns-of[0].ns) / 1e9
	if len(of) < 2 || between == 0 {
		return 0
	}
	grown := last.v - of[0].v
	for i := 1; i < len(of); i++ {
		if of[i].v < of[i-1].v {
			grown += of[i-1].v
		}
	}
	mean := between / float64(len(of)-1)
	toBegin, toEnd := float64(of[0].ns-begin)/1e9, float64(end-last.ns)/1e9
	if toBegin >= 1.1*mean {
		toBegin = mean / 2
	}
	if toEnd >= 1.1*mean {
		toEnd = mean / 2
	}
	if grown > 0 && of[0].v >= 0 {
		toBegin = math.Min(toBegin, between*of[0].v/grown)
	}
	return grown * (between + toBegin + toEnd) / between / (float64(end-begin) / 1e9)
}
