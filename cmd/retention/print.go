package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"blobtail/internal/units"
	"blobtail/retention"
)

// printPlan writes a plan as a table. Its last line is the hash.
func printPlan(out io.Writer, p *retention.Plan) error {
	buf := bufio.NewWriter(out) // Flush returns the first error
	if len(p.Days) > 0 {
		w := tabwriter.NewWriter(buf, 0, 8, 2, ' ', 0)
		fmt.Fprintln(w, "service\tday (UTC)\tblobs\trecords\tbytes\tapply")
		for _, d := range p.Days {
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%ss\n", d.Service, d.Day, d.Blobs, d.Records, d.Bytes, d.Step)
		}
		sum := p.Total()
		fmt.Fprintf(w, "total\t%s\t%d\t%d\t%d\n", units.Count(len(p.Days), "day"), sum.Blobs, sum.Records, sum.Bytes)
		w.Flush()
	}
	for _, name := range p.Tables {
		fmt.Fprintf(buf, "table %s\n", name)
	}
	if len(p.Days)+len(p.Tables) == 0 {
		fmt.Fprintln(buf, "nothing goes")
	}
	fmt.Fprintf(buf, "plan %s\n", p.Hash)
	return buf.Flush()
}

// sums are the numbers of a line of JSON.
type sums struct {
	Blobs   int   `json:"blobs"`
	Records int64 `json:"records"`
	Bytes   int64 `json:"bytes"`
}

// printPlanJSON writes a plan as one object a line. The last one is the hash.
func printPlanJSON(out io.Writer, p *retention.Plan) error {
	buf := bufio.NewWriter(out) // Flush returns the first error
	enc := json.NewEncoder(buf)
	for _, d := range p.Days {
		enc.Encode(struct {
			Service string `json:"service"`
			Day     string `json:"day"`
			sums
			Apply string `json:"apply"`
		}{d.Service, d.Day.String(), sums{d.Blobs, d.Records, d.Bytes}, string(d.Step) + "s"})
	}
	for _, name := range p.Tables {
		enc.Encode(map[string]string{"table": name})
	}
	for _, h := range p.Held {
		enc.Encode(map[string]any{"service": h.Service, "from": h.First.String(), "to": h.Last.String(), "days": h.Days, "hold": h.Hold})
	}
	if f := p.Foreign; f.Count > 0 {
		enc.Encode(map[string]any{"foreign": f.Count, "first": f.First})
	}
	d := p.Total()
	enc.Encode(map[string]any{"total": struct {
		Days int `json:"days"`
		sums
		Tables  int  `json:"tables"`
		Confirm bool `json:"confirm"` // apply wants a confirmation
	}{len(p.Days), sums{d.Blobs, d.Records, d.Bytes}, len(p.Tables), p.Confirm != ""}})
	enc.Encode(map[string]string{"plan": p.Hash})
	return buf.Flush()
}

// printResult prints the sums of a run in one line. The details are in its log.
func printResult(out io.Writer, r *retention.Result) error {
	sum := r.Total()
	horizons := len(r.Raised)
	for _, m := range r.Raised {
		if m.Single {
			horizons--
		}
	}
	_, err := fmt.Fprintf(out, "deleted %s with %s and %s, of %s; dropped %s; raised %s\n",
		units.Count(sum.Blobs, "blob"), units.Count(sum.Records, "record"), units.Count(sum.Bytes, "byte"),
		units.Count(len(r.Deleted), "day"), units.Count(len(r.Tables), "table"), units.Count(horizons, "horizon"))
	return err
}
