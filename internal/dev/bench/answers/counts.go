package answers

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
)

// reader reads the numbers of an answer.
type reader = func(body []byte) (Numbers, error)

// read reads an answer of a form, and has f add its numbers to others.
func read[T any](f func(got Numbers, answer T)) reader {
	return func(body []byte) (Numbers, error) {
		var answer T
		got := Numbers{}
		err := json.Unmarshal(body, &answer)
		if f(got, answer); err != nil {
			return nil, err
		}
		return got, nil
	}
}

// lines is read for an answer with one form in each line.
func lines[T any](f func(got Numbers, line T)) reader {
	one := read(f)
	return func(body []byte) (Numbers, error) {
		all := Numbers{}
		for line := range bytes.Lines(body) {
			got, err := one(line)
			if err != nil {
				return nil, err
			}
			for key, n := range got {
				all[key] += n
			}
		}
		return all, nil
	}
}

// add adds the numbers that are not 0, with a text before their keys.
func (n Numbers) add(before string, more Numbers) {
	for key, k := range more {
		if k != 0 {
			n[before+key] += k
		}
	}
}

func key(at time.Time) string { return at.UTC().Format(time.RFC3339) + " " }

// bucket is a part of the answer of /api/v1/histogram, or a line of logquery hist.
type bucket struct {
	T, TS          time.Time
	Counts, Levels Numbers
}

// histogram is an answer of /api/v1/histogram.
type histogram struct{ Buckets []bucket }

// byMinute has counts by minute and level.
func byMinute(got Numbers, b bucket) {
	got.add(key(b.T), b.Counts)
	got.add(key(b.TS), b.Levels)
}

// byService has counts by service, of one day or several.
func byService(got Numbers, b bucket) { got.add("", b.Counts) }

// served has a function for each bucket.
func served(f func(Numbers, bucket)) reader {
	return read(func(got Numbers, h histogram) {
		for _, b := range h.Buckets {
			f(got, b)
		}
	})
}

// facets are the values of fields, as /api/v1/facets has them.
type facets struct {
	Fields []struct {
		Values []struct {
			Value string
			Count int
		}
	}
}

func byFacet(got Numbers, f facets) {
	for _, field := range f.Fields {
		for _, v := range field.Values {
			got[v.Value] += v.Count
		}
	}
}

// topped is a line of logquery top.
type topped struct {
	Value   json.RawMessage
	Records int
}

func byValue(got Numbers, v topped) { got[string(v.Value)] += v.Records }

// hits is an answer of /select/logsql/hits.
type hits struct {
	Hits []struct {
		Fields     map[string]string
		Timestamps []time.Time
		Values     []int
	}
}

func byHit(got Numbers, h hits) {
	for _, series := range h.Hits {
		for i, n := range series.Values[:min(len(series.Values), len(series.Timestamps))] {
			got.add(key(series.Timestamps[i]), Numbers{series.Fields["level"]: n})
		}
	}
}

// byField reads lines of VictoriaLogs with a field and the number of its records.
func byField(field string) reader {
	return lines(func(got Numbers, values map[string]string) {
		n, err := strconv.Atoi(values["records"])
		if err != nil {
			n = -1 // no right number
		}
		got[values[field]] += n
	})
}

// matrix is an answer of Loki's API.
type matrix struct {
	Data struct {
		Result []struct {
			Metric map[string]string
			Values [][2]any
		}
	}
}

// Matrix is the form of counts by level and minute of Loki's API. The point of a minute counts the
// minute before.
func Matrix() Format {
	return Format{Counts: read(func(got Numbers, m matrix) {
		for _, series := range m.Data.Result {
			for _, v := range series.Values {
				at, _ := v[0].(float64)
				text, _ := v[1].(string)
				n, err := strconv.Atoi(text)
				if err != nil {
					n = -1
				}
				got.add(key(time.Unix(int64(at)-60, 0)), Numbers{series.Metric["level"]: n})
			}
		}
	})}
}
