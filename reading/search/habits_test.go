package search_test

import (
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"blobtail/reading/search"
)

const (
	warn     = 3
	anything = 1e18
)

// A habit is a line as the people of a product write it: the records that it should find, or what
// its mistake must say. A note is in those of the query.
type habit struct {
	of, line string
	want     func(r *rec) bool
	say      string
	fold     bool
}

// habits is the table.
func habits() []habit {
	return []habit{
		// Kibana: KQL, and Lucene.
		{of: "kibana", line: `level:error`, want: func(r *rec) bool { return r.level == "error" }},
		{of: "kibana", line: `NOT level:error`, want: func(r *rec) bool { return r.level != "error" }},
		{of: "kibana", line: `level:ERROR`, want: func(r *rec) bool { return r.level == "error" }},
		{of: "kibana", line: `level:Warning OR level:fatal`, want: func(r *rec) bool {
			return r.level == "warn" || r.level == "critical"
		}},
		{of: "kibana", line: `level:(error OR critical) AND NOT service:db`, want: func(r *rec) bool {
			return (r.level == "error" || r.level == "critical") && r.service != "db"
		}},
		{of: "kibana", line: `status:500`, want: func(r *rec) bool { return r.either("status", "500") }},
		{of: "kibana", line: `NOT status:500`, want: func(r *rec) bool { return !r.either("status", "500") }},
		{of: "kibana", line: `status:500 OR status:502`, want: func(r *rec) bool {
			return r.either("status", "500") || r.either("status", "502")
		}},
		{of: "kibana", line: `status:(500 OR 502)`, want: func(r *rec) bool { return r.is("status", "500") || r.is("status", "502") }},
		{of: "kibana", line: `NOT status:(500 OR 502)`, want: func(r *rec) bool {
			return !r.is("status", "500") && !r.is("status", "502")
		}},
		{of: "kibana", line: `status:(500 or 502)`, want: func(r *rec) bool { return r.is("status", "500") || r.is("status", "502") }},
		{of: "kibana", line: `status >= 400 AND status < 500`, want: func(r *rec) bool { return r.within("status", 400, 499.999) }},
		{of: "kibana", line: `status:[500 TO 599]`, want: func(r *rec) bool { return r.within("status", 500, 599) }},
		{of: "kibana", line: `status:{500 TO *}`, want: func(r *rec) bool { return r.within("status", 500.001, anything) }},
		{of: "kibana", line: `NOT status:[400 TO 599]`, want: func(r *rec) bool {
			_, ok := r.num("status") // a text that is no number is neither in the range nor out of it
			return r.get("status") == nil || ok && !r.within("status", 400, 599)
		}},
		{of: "kibana", line: `status:"500"`, want: func(r *rec) bool { return r.either("status", "500") }},
		{of: "kibana", line: `status:5*`, want: func(r *rec) bool { return r.like("status", `^5`) || r.has("status:5") }},
		{of: "kibana", line: `path:*health*`, want: func(r *rec) bool { return r.like("path", "health") || r.re(`path:.*health`) }},
		{of: "kibana", line: `NOT path:*health*`, want: func(r *rec) bool {
			return !r.like("path", "health") && !r.re(`path:.*health`)
		}},
		{of: "kibana", line: `user:*`, want: func(r *rec) bool { return r.get("user") != nil }},
		{of: "kibana", line: `NOT user:*`, want: func(r *rec) bool { return r.get("user") == nil }},
		{of: "kibana", line: `_exists_:user AND NOT user:ann`, want: func(r *rec) bool {
			return r.get("user") != nil && !r.either("user", "ann")
		}},
		{of: "kibana", line: `-_exists_:user`, want: func(r *rec) bool { return r.get("user") == nil }},
		{of: "kibana", line: `message:"two words"`, want: func(r *rec) bool { return strings.Contains(r.msg, "two words") }},
		{of: "kibana", line: `NOT message:timeout`, want: func(r *rec) bool { return !strings.Contains(r.msg, "timeout") }},
		{of: "kibana", line: `message:(timeout OR refused)`, want: func(r *rec) bool {
			return strings.Contains(r.msg, "timeout") || strings.Contains(r.msg, "refused")
		}},
		{of: "kibana", line: `message:time*out`, want: func(r *rec) bool { return regexp.MustCompile(`time.*out`).MatchString(r.msg) }},
		{of: "kibana", line: `*timeout*`, want: func(r *rec) bool { return r.has("timeout") }},
		{of: "kibana", line: `*`, want: func(*rec) bool { return true }},
		{of: "kibana", line: `*:*`, want: func(*rec) bool { return true }},
		{of: "kibana", line: `http.status_code:503`, want: func(r *rec) bool { return r.either("http.status_code", "503") }},
		{of: "kibana", line: `http.status_code >= 400 AND NOT http.method:POST`, want: func(r *rec) bool {
			return r.within("http.status_code", 400, anything) && !r.either("http.method", "POST")
		}},
		{of: "kibana", line: `(level:error OR level:warn) AND (service:web OR service:api) AND NOT (status:500 OR status:502)`,
			want: func(r *rec) bool {
				return (r.level == "error" || r.level == "warn") && (r.service == "web" || r.service == "api") &&
					!r.either("status", "500") && !r.either("status", "502")
			}},
		{of: "kibana", line: `NOT (level:error AND NOT (service:web OR user:*))`, want: func(r *rec) bool {
			return !(r.level == "error" && !(r.service == "web" || r.get("user") != nil))
		}},
		{of: "kibana", line: `level:error and service:web`, want: func(r *rec) bool {
			return r.level == "error" && r.service == "web" && r.has("and")
		}, say: `"and"`},
		{of: "kibana", line: `this or that`, want: func(r *rec) bool {
			return r.has("this") && r.has("or") && r.has("that")
		}, say: `"or"`},
		{of: "kibana", line: `not panic`, want: func(r *rec) bool { return r.has("not") && r.has("panic") }, say: `"not"`},
		{of: "kibana", line: `"AND" "OR"`, want: func(r *rec) bool { return r.has("AND") && r.has("OR") }},
		{of: "kibana", line: `timeot~2`, say: `write timeot`},
		{of: "kibana", line: `timeot~`, say: `write timeot`},
		{of: "kibana", line: `error^2 timeout`, say: `write error`},
		{of: "kibana", line: `"error^2"`, want: func(r *rec) bool { return r.has("error^2") }},
		{of: "kibana", line: `@timestamp:[now-15m TO now]`, say: `from=`},
		{of: "kibana", line: `level:error AND @timestamp:>=2026-11-20`, say: `from=`},
		{of: "kibana", line: `@timestamp >= 2026-11-20T12:01:40`, want: func(r *rec) bool {
			return r.get("ts").(string) >= "2026-11-20T12:01:40"
		}},
		{of: "kibana", line: `"connection refused"~5 OR a`, say: `~`},
		{of: "kibana", line: `user: ann`, want: func(r *rec) bool { return r.has("user:") && r.has("ann") }},
		{of: "kibana", line: `level:foo`, say: `level=error`},

		// Datadog.
		{of: "datadog", line: `service:web -status:200`, want: func(r *rec) bool {
			return r.service == "web" && !r.either("status", "200")
		}},
		{of: "datadog", line: `@http.status_code:[400 TO 499]`, want: func(r *rec) bool {
			return r.within("http.status_code", 400, 499)
		}},
		{of: "datadog", line: `@http.status_code:>=500`, want: func(r *rec) bool {
			return r.within("http.status_code", 500, anything)
		}},
		{of: "datadog", line: `-@http.method:POST @http.status_code:*`, want: func(r *rec) bool {
			return !r.either("http.method", "POST") && r.get("http.status_code") != nil
		}},
		{of: "datadog", line: `@took_ms:>1000`, want: func(r *rec) bool { return r.within("took_ms", 1000.001, anything) }},
		{of: "datadog", line: `@user:(ann OR bob) -service:api`, want: func(r *rec) bool {
			return (r.is("user", "ann") || r.is("user", "bob")) && r.service != "api"
		}},
		{of: "datadog", line: `service:(web OR api) AND -status:200 AND -@method:GET`, want: func(r *rec) bool {
			return (r.service == "web" || r.service == "api") && !r.either("status", "200") && !r.either("method", "GET")
		}},
		{of: "datadog", line: `env:prod AND (timeout OR slow)`, want: func(r *rec) bool {
			return r.either("env", "prod") && (r.has("timeout") || r.has("slow"))
		}},
		{of: "datadog", line: `-env:prod -(timeout OR slow)`, want: func(r *rec) bool {
			return !r.either("env", "prod") && !r.has("timeout") && !r.has("slow")
		}},
		{of: "datadog", line: `"he said two words"`, want: func(r *rec) bool { return r.has("he said two words") }},
		{of: "datadog", line: `service:web* connection`, want: func(r *rec) bool {
			return strings.HasPrefix(r.service, "web") && r.has("connection")
		}},
		{of: "datadog", line: `service:orders-* -refused`, want: func(r *rec) bool {
			return r.service == "orders-1" && !r.has("refused")
		}},
		{of: "datadog", line: `service:web OR (service:db AND level:critical)`, want: func(r *rec) bool {
			return r.service == "web" || r.service == "db" && r.level == "critical"
		}},
		{of: "datadog", line: `@path:\/api\/*`, want: func(r *rec) bool {
			return r.like("path", `^\\/api\\/`) || r.has(`path:\/api\/`)
		}},
		{of: "datadog", line: `@path:/api/*`, want: func(r *rec) bool { return r.like("path", `^/api/`) || r.has(`path:/api/`) }},
		{of: "datadog", line: `*:timeout`, want: func(r *rec) bool { return r.has("timeout") }},
		{of: "datadog", line: `@host:db-1`, want: func(r *rec) bool { return r.either("host", "db-1") }},
		{of: "datadog", line: `@tags:retry`, want: func(r *rec) bool { return r.either("tags", "retry") }},

		// LogsQL of VictoriaLogs.
		{of: "logsql", line: `error NOT timeout`, want: func(r *rec) bool { return r.has("error") && !r.has("timeout") }},
		{of: "logsql", line: `_msg:timeout level:error`, want: func(r *rec) bool {
			return strings.Contains(r.msg, "timeout") && r.level == "error"
		}},
		{of: "logsql", line: `_msg:"connection refused" OR _msg:"out of disk"`, want: func(r *rec) bool {
			return strings.Contains(r.msg, "connection refused") || strings.Contains(r.msg, "out of disk")
		}},
		{of: "logsql", line: `time*`, want: func(r *rec) bool { return r.has("time") }},
		{of: "logsql", line: `NOT time*`, want: func(r *rec) bool { return !r.has("time") }},
		{of: "logsql", line: `status:>=500 -method:GET`, want: func(r *rec) bool {
			return r.within("status", 500, anything) && !r.either("method", "GET")
		}},
		{of: "logsql", line: `(refused OR timeout) NOT (service:db OR service:web)`, want: func(r *rec) bool {
			return (r.has("refused") || r.has("timeout")) && r.service != "db" && r.service != "web"
		}},
		{of: "logsql", line: `status:<300`, want: func(r *rec) bool { return r.within("status", -anything, 299.999) }},
		{of: "logsql", line: `took_ms:[10 TO 100}`, want: func(r *rec) bool { return r.within("took_ms", 10, 99.999) }},
		{of: "logsql", line: `NOT env:(prod, staging)`, want: func(r *rec) bool {
			return !r.is("env", "prod") && !r.is("env", "staging")
		}},
		{of: "logsql", line: `-level:info -level:debug`, want: func(r *rec) bool { return r.level != "info" && r.level != "debug" }},
		{of: "logsql", line: `error OR timeout refused`, want: func(r *rec) bool {
			return r.has("error") || r.has("timeout") && r.has("refused")
		}},
		{of: "logsql", line: `!timeout`, want: func(r *rec) bool { return r.has("!timeout") }, say: `-timeout`},
		{of: "logsql", line: `_time:5m error`, say: `from=`},
		{of: "logsql", line: `_stream:{app="x"} error`, say: `app=x`},
		{of: "logsql", line: `{app="x"} error`, say: `app=x`},
		{of: "logsql", line: `error | stats count() by user`, say: `write error`},
		{of: "logsql", line: `_msg:error | fields user`, say: `write _msg:error`},
		{of: "logsql", line: `user:in(ann, bob) -method:=GET`, want: func(r *rec) bool {
			return (r.is("user", "ann") || r.is("user", "bob")) && !r.is("method", "GET")
		}},
		{of: "logsql", line: `path:~"^/api/" NOT path:~"users$"`, want: func(r *rec) bool {
			return r.like("path", `^/api/`) && !r.like("path", `users$`)
		}},

		// Loki: selectors and filters of lines.
		{of: "loki", line: `{app="x"}`, say: `app=x`},
		{of: "loki", line: `{service="web"} |= "timeout"`, say: `service=web timeout`},
		{of: "loki", line: `{app="x", env=~"prod|dev"} != "debug"`, say: `app=x env=/^(prod|dev)$/ -debug`},
		{of: "loki", line: `{app="x"} | json | status >= 500 | level="error" |~ "a.b"`, say: `app=x status>=500 level=error /a.b/`},
		{of: "loki", line: `|= "timeout"`, say: `write timeout`},
		{of: "loki", line: `|~ "time(out|d)"`, say: `write /time(out|d)/`},
		{of: "loki", line: `error |= "two words" != "slow"`, say: `write error "two words" -slow`},
		{of: "loki", line: `/time(out|d)/`, want: func(r *rec) bool { return r.re(`time(out|d)`) }},
		{of: "loki", line: `-/time(out|d)/`, want: func(r *rec) bool { return !r.re(`time(out|d)`) }},
		{of: "loki", line: `service=~"web|api" level=error`, want: func(r *rec) bool {
			return (r.service == "web" || r.service == "api") && r.level == "error"
		}},
		{of: "loki", line: `service!~"web|api" AND NOT level=info`, want: func(r *rec) bool {
			return r.service != "web" && r.service != "api" && r.level != "info"
		}},
		{of: "loki", line: `path=~"^/api" OR msg=~"disk"`, want: func(r *rec) bool {
			return r.like("path", `^/api`) || r.like("msg", "disk")
		}},
		{of: "loki", line: `status != 200`, want: func(r *rec) bool { return !r.is("status", "200") }},
		{of: "loki", line: `status="500"`, want: func(r *rec) bool { return r.get("status") == "500" }},
		{of: "loki", line: `status!="500" status=500`, want: func(r *rec) bool { return r.get("status") == 500.0 }},
		{of: "loki", line: `level=~"warn|error"`, want: func(r *rec) bool { return r.level == "warn" || r.level == "error" }},

		// Splunk and Graylog.
		{of: "splunk", line: `status=500 OR status=502`, want: func(r *rec) bool {
			return r.is("status", "500") || r.is("status", "502")
		}},
		{of: "splunk", line: `NOT status=200`, want: func(r *rec) bool { return !r.is("status", "200") }},
		{of: "splunk", line: `status!=200 status=*`, want: func(r *rec) bool {
			return !r.is("status", "200") && r.get("status") != nil
		}},
		{of: "splunk", line: `status IN (500, 502)`, want: func(r *rec) bool { return r.is("status", "500") || r.is("status", "502") }},
		{of: "splunk", line: `status in (500,502) NOT method in (GET)`, want: func(r *rec) bool {
			return (r.is("status", "500") || r.is("status", "502")) && !r.is("method", "GET")
		}},
		{of: "splunk", line: `NOT status IN (200, 201, 204)`, want: func(r *rec) bool {
			return !r.is("status", "200") && !r.is("status", "201") && !r.is("status", "204")
		}},
		{of: "splunk", line: `status=4* NOT (user=ann OR user=Ann)`, want: func(r *rec) bool {
			return r.like("status", `^4`) && !r.is("user", "ann") && !r.is("user", "Ann")
		}},
		{of: "splunk", line: `error NOT (refused OR timeout)`, want: func(r *rec) bool {
			return r.has("error") && !r.has("refused") && !r.has("timeout")
		}},
		{of: "splunk", line: `fail* OR refused OR "out of disk"`, want: func(r *rec) bool {
			return r.has("fail") || r.has("refused") || r.has("out of disk")
		}},
		{of: "splunk", line: `took_ms>1000 OR level=error`, want: func(r *rec) bool {
			return r.within("took_ms", 1000.001, anything) || r.level == "error"
		}},
		{of: "splunk", line: `(env=prod (method=GET OR method=POST)) OR (env=staging NOT status>=500)`, want: func(r *rec) bool {
			x, ok := r.num("status")
			return r.is("env", "prod") && (r.is("method", "GET") || r.is("method", "POST")) ||
				r.is("env", "staging") && (r.get("status") == nil || ok && x < 500)
		}},
		{of: "splunk", line: `TIMEOUT OR Refused`, fold: true, want: func(r *rec) bool {
			return r.fold("timeout") || r.fold("refused")
		}},
		{of: "splunk", line: `(TIMEOUT level=error) OR NOT service:web`, fold: true, want: func(r *rec) bool {
			return r.fold("timeout") && r.level == "error" || r.service != "web"
		}},
		{of: "splunk", line: `error | head 10`, say: `write error`},
		{of: "splunk", line: `service=web error | stats count by status`, say: `write service=web error`},
		{of: "graylog", line: `_exists_:status AND NOT status:[200 TO 299]`, want: func(r *rec) bool {
			_, ok := r.num("status")
			return ok && !r.within("status", 200, 299)
		}},
		{of: "graylog", line: `method:(GET OR POST) && !user:ann`, want: func(r *rec) bool { return false }, say: `-user:ann`},
		{of: "graylog", line: `method:GET || NOT _exists_:method`, want: func(r *rec) bool {
			return r.either("method", "GET") || r.get("method") == nil
		}},
		{of: "graylog", line: `ok:true || ok:false`, want: func(r *rec) bool {
			return r.either("ok", "true") || r.either("ok", "false")
		}},

		// What the language decides.
		{of: "decided", line: `localhost:8080`, want: func(r *rec) bool { return r.either("localhost", "8080") }},
		{of: "decided", line: `-localhost:8080`, want: func(r *rec) bool { return !r.either("localhost", "8080") }},
		{of: "decided", line: `localhost=8080`, want: func(r *rec) bool { return r.is("localhost", "8080") }},
		{of: "decided", line: `Error:timeout`, want: func(r *rec) bool { return r.either("Error", "timeout") }},
		{of: "decided", line: `Error:time*`, want: func(r *rec) bool { return r.like("Error", `^time`) || r.has("Error:time") }},
		{of: "decided", line: `Error: cannot`, want: func(r *rec) bool { return r.has("Error:") && r.has("cannot") }},
		{of: "decided", line: `NOT Error: while`, want: func(r *rec) bool { return !r.has("Error:") && r.has("while") }},
		{of: "decided", line: `12:30:45 OR 12:30`, want: func(r *rec) bool { return r.has("12:30:45") || r.has("12:30") }},
		{of: "decided", line: `-12:30`, want: func(r *rec) bool { return !r.has("12:30") }},
		{of: "decided", line: `http://example.com/docs`, want: func(r *rec) bool { return r.has("http://example.com/docs") }},
		{of: "decided", line: `std::string`, want: func(r *rec) bool { return r.has("std::string") }},
		{of: "decided", line: `a:b:c OR NOT (level:info OR level:error)`, want: func(r *rec) bool {
			return r.has("a:b:c") || r.level != "info" && r.level != "error"
		}},
		{of: "decided", line: `"localhost:8080"`, want: func(r *rec) bool { return r.has("localhost:8080") }},
		{of: "decided", line: `user:ann`, want: func(r *rec) bool { return r.either("user", "ann") }},
		{of: "decided", line: `user:"ann" -user="ann"`, want: func(r *rec) bool {
			return r.either("user", "ann") && r.get("user") != "ann"
		}},
		{of: "decided", line: `ok=false`, want: func(r *rec) bool { return r.is("ok", "false") }},
		{of: "decided", line: `ok="false"`, want: func(r *rec) bool { return r.get("ok") == "false" }},
		{of: "decided", line: `user=null -service=web`, want: func(r *rec) bool { return r.get("user") == nil && r.service != "web" }},
		{of: "decided", line: `kind="*" OR kind="a*b"`, want: func(r *rec) bool { return r.is("kind", "*") || r.is("kind", "a*b") }},
		{of: "decided", line: `kind=a*b`, want: func(r *rec) bool { return r.like("kind", `^a.*b$`) }},
		{of: "decided", line: `"a*b"`, want: func(r *rec) bool { return r.has("a*b") }},
		{of: "decided", line: `a*b is`, want: func(r *rec) bool { return r.re(`a.*b`) && r.has("is") }},
		{of: "decided", line: `@timestamp=2026-11-20T12:00:0*`, want: func(r *rec) bool { return r.like("ts", `^2026-11-20T12:00:0`) }},
		{of: "decided", line: `ts>"2026-11-20T12:01:40"`, want: func(r *rec) bool {
			return r.get("ts").(string) > "2026-11-20T12:01:40"
		}},
		{of: "decided", line: `@user:bob`, want: func(r *rec) bool { return r.either("user", "bob") }},
		{of: "decided", line: `msg:two OR msg:"said \"two"`, want: func(r *rec) bool { return strings.Contains(r.msg, "two") }},
		{of: "decided", line: `-msg:G* method:GET`, want: func(r *rec) bool {
			return !strings.Contains(r.msg, "G") && r.either("method", "GET")
		}},
		{of: "decided", line: `f(x)`, want: func(r *rec) bool { return r.has("f(x)") }},
		{of: "decided", line: `(a`, want: func(r *rec) bool { return r.has("(a") }},
		{of: "decided", line: `f(x OR b)`, want: func(r *rec) bool { return r.has("f(x") || r.has("b)") }},
		{of: "decided", line: `level:warn+ NOT level:critical`, want: func(r *rec) bool {
			return r.level == "warn" || r.level == "error"
		}},
		{of: "decided", line: `level>=warn`, want: func(r *rec) bool { return r.rank() >= warn }},
		{of: "decided", line: `level:>=warn service=api,db`, want: func(r *rec) bool {
			return r.rank() >= warn && (r.service == "api" || r.service == "db")
		}},
		{of: "decided", line: `level=error,critical OR took_ms > 1000`, want: func(r *rec) bool {
			return r.level == "error" || r.level == "critical" || r.within("took_ms", 1000.001, anything)
		}},
		{of: "decided", line: `NOT (level=warn+ OR service=web)`, want: func(r *rec) bool {
			return r.rank() < warn && r.service != "web"
		}},
		{of: "decided", line: `level=other`, want: func(r *rec) bool { return r.rank() < 0 }},
		{of: "decided", line: `where:(status == 500 or user == "bob") -"orders"`, want: func(r *rec) bool {
			return (r.get("status") == 500.0 || r.get("user") == "bob") && !r.has("orders")
		}},
		{of: "decided", line: `NOT where:(len(msg) > 4) OR "größe" OR 日本`, want: func(r *rec) bool {
			return len(r.msg) <= 4 || r.has("größe") || r.has("日本")
		}},
		{of: "decided", line: `größe:12 OR "a b"=c OR user-id=u-1`, want: func(r *rec) bool {
			return r.either("größe", "12") || r.is("a b", "c") || r.is("user-id", "u-1")
		}},
		{of: "decided", line: `"C:\\temp" OR a/b/c OR 50%`, want: func(r *rec) bool {
			return r.has(`C:\temp`) || r.has("a/b/c") || r.has("50%")
		}},
		{of: "decided", line: `user:""`, want: func(r *rec) bool { return r.get("user") == "" }},
		{of: "decided", line: `msg:"" a`, say: `msg=""`},
		{of: "decided", line: `msg:(a OR "")`, say: `msg=""`},
		{of: "decided", line: strings.Repeat("(a OR ", 101) + "b" + strings.Repeat(")", 101), say: `groups`},
		{of: "decided", line: `a OR`, say: `"OR"`},
		{of: "decided", line: `AND a`, say: `"AND"`},
		{of: "decided", line: `level>"loud" OR a`, say: `level>=warn`},
		{of: "decided", line: `level:[warn TO loud]`, say: `level>=warn`},
		{of: "decided", line: `kind:"a*" OR kind:"x"`, want: func(r *rec) bool {
			return r.is("kind", "a*") || r.is("kind", "x") || r.has("kind:x") || r.has("kind:a*")
		}},
		{of: "decided", line: `level=error level=warn`, say: `level=error,warn`},
		{of: "decided", line: `größe "x`, say: `"two words"`},
	}
}

// The table asks what its records say, by hand, and testdata/habits.jsonl has the same for the
// tests of other packages: the numbers of the records, or what the mistake or note must say.
func TestHabits(t *testing.T) {
	all := corpus(t)
	var want strings.Builder
	for _, h := range habits() {
		row := struct {
			Of, Q string
			Fold  bool  `json:",omitempty"`
			Want  []int `json:",omitempty"`
			Found bool
			Say   string `json:",omitempty"`
		}{Of: h.of, Q: h.line, Fold: h.fold, Found: h.want != nil, Say: h.say}
		for i, r := range all {
			if h.want != nil && h.want(r) {
				row.Want = append(row.Want, i+1)
			}
		}
		var text strings.Builder
		enc := json.NewEncoder(&text)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(row); err != nil {
			t.Fatal(err)
		}
		want.WriteString(text.String())
		h.check(t, all, row.Want)
		roundTrip(t, h.line)
	}
	const file = "testdata/habits.jsonl"
	if os.Getenv("BLOBTAIL_WRITE_HABITS") != "" {
		if err := os.WriteFile(file, []byte(want.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != want.String() {
		t.Errorf("%s is not this table (BLOBTAIL_WRITE_HABITS=1 writes it): %v", file, err)
	}
}

// check parses the line, and asks the records.
func (h *habit) check(t *testing.T, all []*rec, want []int) {
	t.Helper()
	q, err := search.Parse(h.line)
	var f filter
	if err == nil {
		f, err = filterOf(q, h.fold)
	}
	var mistake *search.Mistake
	switch {
	case h.want == nil && (!errors.As(err, &mistake) || !strings.Contains(mistake.Text, h.say)):
		t.Errorf("%s: %s: the error is %v, want %s", h.of, h.line, err, h.say)
	case h.want == nil:
	case err != nil:
		t.Errorf("%s: %s: %v", h.of, h.line, err)
	case !strings.Contains(strings.Join(q.Notes(), " "), h.say) || h.say == "" && len(q.Notes()) > 0:
		t.Errorf("%s: %s: the notes are %q, want %s", h.of, h.line, q.Notes(), h.say)
	default:
		var got []int
		for i, r := range all {
			if f.finds(r) {
				got = append(got, i+1)
			}
		}
		if !slices.Equal(got, want) {
			p, _ := q.Parts(h.fold, nil)
			t.Errorf("%s: %s: records %v, want %v: %+v", h.of, h.line, got, want, p)
		}
	}
}
