package reads

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// histogram is an answer of /api/v1/histogram.
type histogram struct {
	Buckets []struct {
		T      time.Time
		Total  int
		Counts numbers
		Others int
	}
	Complete bool
}

func readHistogram(body []byte) (h histogram, err error) {
	if err = json.Unmarshal(body, &h); err == nil && !h.Complete {
		err = errors.New("it is not complete")
	}
	return h, err
}

// ourMinutes reads counts by minute and level.
func ourMinutes(body []byte) (numbers, error) {
	h, err := readHistogram(body)
	got := numbers{}
	for _, b := range h.Buckets {
		for level, n := range b.Counts {
			got[b.T.UTC().Format(time.RFC3339Nano)+" "+level] += n
			b.Total -= n
		}
		if b.Total != 0 {
			err = errors.Join(err, fmt.Errorf("the levels of %s do not make its total", b.T))
		}
	}
	return got, err
}

// ourServices reads counts by service, of one day or several.
func ourServices(body []byte) (numbers, error) {
	h, err := readHistogram(body)
	got := numbers{}
	for _, b := range h.Buckets {
		for service, n := range b.Counts {
			got[service] += n
		}
		if b.Others != 0 {
			err = errors.Join(err, fmt.Errorf("%d records of other services", b.Others))
		}
	}
	return got, err
}

// ourFacet reads the values of the one field that was asked for.
func ourFacet(body []byte) (numbers, error) {
	var f struct {
		Basis  struct{ Records, Of int }
		Fields []struct {
			Values []struct {
				Value string
				Count int
			}
		}
		Complete bool
	}
	if err := json.Unmarshal(body, &f); err != nil {
		return nil, err
	}
	if len(f.Fields) != 1 || f.Basis.Records != f.Basis.Of || !f.Complete {
		return nil, errors.New("it is not of one field, or not of all records")
	}
	got := numbers{}
	for _, v := range f.Fields[0].Values {
		got[v.Value] += v.Count
	}
	return got, nil
}

// printed is a line of logquery hist and logquery top.
type printed struct {
	TS             time.Time
	Total          int
	Levels, Counts numbers
	Others         int
	Value          json.RawMessage
	Records        int
}

// readPrinted calls f for each line.
func readPrinted(out []byte, f func(numbers, printed) error) (numbers, error) {
	got := numbers{}
	for line := range bytes.Lines(out) {
		var p printed
		if err := json.Unmarshal(line, &p); err != nil {
			return nil, err
		}
		if err := f(got, p); err != nil {
			return nil, err
		}
	}
	return got, nil
}

func printedMinutes(out []byte) (numbers, error) {
	return readPrinted(out, func(got numbers, p printed) error {
		for level, n := range p.Levels {
			if n > 0 {
				got[p.TS.UTC().Format(time.RFC3339Nano)+" "+level] += n
			}
			p.Total -= n
		}
		if p.Total != 0 {
			return fmt.Errorf("the levels of %s do not make its total", p.TS)
		}
		return nil
	})
}

func printedServices(out []byte) (numbers, error) {
	return readPrinted(out, func(got numbers, p printed) error {
		for service, n := range p.Counts {
			got[service] += n
		}
		if p.Others != 0 {
			return fmt.Errorf("%d records of other services", p.Others)
		}
		return nil
	})
}

func printedTop(out []byte) (numbers, error) {
	return readPrinted(out, func(got numbers, p printed) error {
		got[string(p.Value)] += p.Records
		return nil
	})
}

// theirMinutes reads counts by minute and level of /select/logsql/hits.
func theirMinutes(body []byte) (numbers, error) {
	var h struct {
		Hits []struct {
			Fields     map[string]string
			Timestamps []time.Time
			Values     []int
			Total      int
		}
	}
	if err := json.Unmarshal(body, &h); err != nil {
		return nil, err
	}
	got := numbers{}
	for _, series := range h.Hits {
		if len(series.Timestamps) != len(series.Values) {
			return nil, errors.New("a series has not a value for each time")
		}
		for i, n := range series.Values {
			if n > 0 {
				got[series.Timestamps[i].UTC().Format(time.RFC3339Nano)+" "+series.Fields["level"]] += n
			}
			series.Total -= n
		}
		if series.Total != 0 {
			return nil, fmt.Errorf("the values of %v do not make their total", series.Fields)
		}
	}
	return got, nil
}

// theirStats reads lines with a field and the number of its records.
func theirStats(field string) func([]byte) (numbers, error) {
	return func(body []byte) (numbers, error) {
		got := numbers{}
		for line := range bytes.Lines(body) {
			var values map[string]string
			if err := json.Unmarshal(line, &values); err != nil {
				return nil, err
			}
			n, err := strconv.Atoi(values["records"])
			if err != nil {
				return nil, err
			}
			got[values[field]] += n
		}
		return got, nil
	}
}
