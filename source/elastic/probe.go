package elastic

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"blobtail/source/body"
	"blobtail/source/httpsource"
)

const (
	acknowledged = `{"acknowledged":true,"_shards":{"total":1,"successful":1,"failed":0}}`
	licensed     = `"license":{"status":"active","uid":"00000000-0000-0000-0000-000000000000","type":"basic","mode":"basic",` +
		`"issue_date_in_millis":0,"expiry_date_in_millis":4000000000000,"issued_to":"blobtail","issuer":"blobtail"}}`
	license = `{` + licensed
	xpack   = `{"build":{},"features":{"ilm":{"available":true,"enabled":true},"security":{"available":true,"enabled":true}},` + licensed
	health  = `{"cluster_name":"blobtail","status":"green","timed_out":false,"number_of_nodes":1,"number_of_data_nodes":1}`
)

// openProbe answers the questions that clients ask before they send documents. They are told that
// each template, policy, pipeline and alias is there, so that few try to create one. A new one is
// acknowledged, and has no effect.
func (x *exchange) openProbe() (in httpsource.Intake, err error) {
	reads := x.r.Method == http.MethodGet || x.r.Method == http.MethodHead
	answer, written := x.probe()
	switch {
	case answer == "":
		return in, httpsource.Refuse(http.StatusNotFound, "%s %s is not answered here; documents are sent to /_bulk or /{index}/_bulk, and read with logquery",
			x.r.Method, body.Short(x.r.URL.Path))
	case reads:
		x.answer = answer
		in.Probe = true
		return in, nil
	case !written:
		return in, httpsource.RefuseMethod("GET, HEAD", "%s %s: this is read with GET or HEAD; documents are sent to /_bulk or /{index}/_bulk, other records to /ingest/{service}",
			x.r.Method, body.Short(x.r.URL.Path))
	}
	// A template may be longer than net/http reads by itself, and a client that is cut off
	// takes it for an error.
	x.answer = acknowledged
	in.Form, err = body.NewForm(ignore, x.r.Header.Values("Content-Encoding"))
	return in, err
}

// ignore is the body.Decoder of a body that has no records.
func ignore([]byte, body.Sink) error { return nil }

// probe returns the answer to a question, "" if there is none. written says that clients
// write to the path, too.
func (x *exchange) probe() (answer string, written bool) {
	switch x.at.probe {
	case "":
		return x.root(), false
	case "_license":
		return license, false
	case "_xpack":
		if len(x.at.rest) > 0 && x.at.rest[0] == "license" { // before version 7
			return license, false
		}
		return xpack, false
	case "_nodes":
		return x.nodes(), false
	case "_cluster":
		if len(x.at.rest) > 0 && x.at.rest[0] == "health" {
			return health, false
		}
		return `{"persistent":{},"transient":{}}`, true
	case "_cat":
		return "blobtail green\n", false
	case "_index_template", "_component_template", "_template", "_ilm", "_ingest", "_alias", "_aliases", "_data_stream", "_logstash", "_refresh", "_flush":
		return `{}`, true
	}
	index := !strings.HasPrefix(x.at.probe, "_")
	if index && (len(x.at.rest) == 0 || len(x.at.rest) == 1 && slices.Contains([]string{"_refresh", "_flush", "_mapping", "_settings", "_alias"}, x.at.rest[0])) {
		return `{}`, true
	}
	return "", false
}

// root is the answer to the first question of every client. The official ones look at the
// tag line and the flavour too.
func (x *exchange) root() string {
	version, _ := json.Marshal(x.p.version) // a string has a form in JSON
	return `{"name":"blobtail","cluster_name":"blobtail","cluster_uuid":"blobtail","version":{"number":` + string(version) +
		`,"build_flavor":"default","build_type":"tar","minimum_wire_compatibility_version":"7.17.0",` +
		`"minimum_index_compatibility_version":"7.0.0"},"tagline":"You Know, for Search"}`
}

// nodes has one node, at the address to which the client sent the request: a client that
// looks for nodes would forget an address that is not among them.
func (x *exchange) nodes() string {
	text, _ := json.Marshal(map[string]any{"cluster_name": "blobtail", "nodes": map[string]any{"blobtail": map[string]any{
		"name": "blobtail", "version": x.p.version, "roles": []string{"data", "ingest"}, "http": map[string]string{"publish_address": x.r.Host},
	}}}) // all strings
	return string(text)
}
