package loki

import (
	"net/http"
	"runtime"
	"strconv"

	"blobtail/logql"
)

// rules answers that there are no rules, which Grafana asks of every data source.
func (c *call) rules() error {
	c.begins()
	c.out = append(c.out, `"data":{"groups":[]}`...)
	return nil
}

// drilldownLimits tells Logs Drilldown the limits of its questions, and that there are patterns, of any
// age. A span of 0 is no limit.
func (c *call) drilldownLimits() error {
	c.out = append(c.out, `{"limits":{"max_entries_limit_per_query":`...)
	c.out = strconv.AppendInt(c.out, maxEntries, 10)
	c.out = append(c.out, `,"max_query_length":"0s","max_query_range":"0s","max_query_series":`...)
	c.out = strconv.AppendInt(c.out, maxSeries, 10)
	c.out = append(c.out, `,"query_timeout":`...)
	c.out = appendText(c.out, c.api.o.Timeout.String())
	c.out = append(c.out, `,"volume_enabled":true,"pattern_persistence_enabled":true,"retention_period":"0s"},"pattern_ingester_enabled":true,"version":`...)
	c.out = appendText(c.out, c.api.o.Version)
	return nil
}

// formatQuery answers with the query in its pretty form.
func (c *call) formatQuery() error {
	e, err := c.parse()
	if err != nil {
		c.out = appendText([]byte(`{"status":"invalid-query","error":`), err.Error())
		c.w.Header().Set("Content-Type", jsonType)
		c.w.WriteHeader(http.StatusBadRequest)
		_, _ = c.w.Write(append(c.out, "}\n"...)) // the client may have gone
		c.out = nil
		return nil
	}
	c.begins()
	c.out = append(c.out, `"data":`...)
	c.out = appendText(c.out, logql.Format(e))
	return nil
}

// buildInfo answers with the version of the program.
func (c *call) buildInfo() error {
	c.out = appendLabel(append(c.out, '{'), "version", c.api.o.Version)
	c.out = appendLabel(append(c.out, ','), "revision", c.api.o.Revision)
	c.out = append(c.out, `,"branch":"","buildDate":"","buildUser":"",`...)
	c.out = appendLabel(c.out, "goVersion", runtime.Version())
	return nil
}
