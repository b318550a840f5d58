package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/spelling"
	"blobtail/storage/dir"
)

// A mistake at the terminal, with a text of the fix that its answer must contain.
type mistaken struct{ line, fix string }

// mistakes are those of people who know other programs. A $ is the end of the answer.
func mistakes() []mistaken {
	return []mistaken{
		// Loki's logcli.
		{`query '{app="nginx"} |= "x"'`, `logquery --logql '{service="nginx"} |= "x"'`},
		{`instant-query 'sum(rate({service="web"}[5m]))'`, `logquery --logql 'sum(rate({service="web"}[5m]))'`},
		{`labels`, `logquery fields '*'`},
		{`series '{app="web"}'`, `logquery ls`},
		{`stats '{app="web"}'`, `logquery ls`},
		{`volume '{app="web"}'`, `logquery bill`},
		{`'{service="web"}'`, `logquery --logql '{service="web"}'`},
		{`--logql '{app="nginx"}'`, `{service="nginx"}`},
		{`--logql '{container="web", namespace="prod"} |= "x"'`, `{service="web"`},
		{`--logql 'rate({service="web"})'`, `rate({service="web"}[5m])`},
		{`--logql 'sum by (level) (count_over_time({service="web"} |= "x"))'`, `count_over_time({service="web"} |= "x"[5m])`},
		{`--logql '{service=nginx}'`, `{service="nginx"}`},
		{`--logql "{service='web'}"`, `{service="web"}`},
		{`--logql 'service="web"'`, `{service="web"}`},
		{`--logql '{service="web"} |= timeout'`, `{service="web"} |= "timeout"`},
		{`--logql '{service="web"'`, `{service="web"}`},
		{`web --logql '|= "x"'`, `leave out web`},
		{`web --query 'status>=500'`, `--search 'status>=500'`},
		{`web --forward`, `leave it out`},
		{`web --addr http://127.0.0.1:3100`, `--server http://127.0.0.1:3100`},
		{`web --output jsonl --include-label status`, `--fields status`},
		{`web --batch 100`, `-n 100`},
		// VictoriaLogs' vlogscli.
		{`web --search '_stream:{app="x"}'`, `write app=x`},
		{`web --search '_time:5m timeout'`, `--since`},
		{`web --search 'timeout | stats count()'`, `write timeout`},
		{`web --search 'timeout~2'`, `timeout*`},
		{`web --search 'level:loud'`, `level>=warn`},
		{`web --search 'status>=abc'`, `>="abc"`},
		{`web --search '"two words'`, `"two words"`},
		{`web --search 'status = 500 and path: /x'`, `write status=500 path:/x`},
		{`web --search 'a OR'`, `a OR b`},
		{`web --datasource.url http://x:9428`, `--server http://x:9428`},
		// Kibana and Datadog.
		{`web --kql 'status: 500 and not path: /x'`, `--search 'status:500 -path:/x'`},
		{`web --where 'level:error AND status:500'`, `--search 'level=error status:500'`},
		{`web --where 'status:[400 TO 499]'`, `--search 'status>=400 status<=499'`},
		{`web --where 'status:5xx'`, `--search 'status>=500 status<=599'`},
		{`web --where '@status:500'`, `--search status:500`},
		{`web --where 'level:error AND timeout'`, `--search 'level=error timeout'`},
		{`web --where 'NOT path:/health*'`, `--search '-path:/health*'`},
		{`web --where 'service:web'`, `--search service=web`},
		{`web --where '_exists_:user_id'`, `--search 'user_id=*'`},
		{`web 'status>=500'`, `logquery web --search 'status>=500'`},
		{`web level:error`, `logquery web --search level=error`},
		{`web 'path = /api'`, `logquery web --search path=/api`},
		{`web @status:500`, `logquery web --search status:500`},
		// Conditions of SQL, KQL, shells and programs.
		{`web --where 'status = 500'`, `--search status=500`},
		{`web --where "level = 'error' AND status <> 500"`, `--search 'level=error -status=500'`},
		{`web --where 'status >= 500 & path == "/api/x"'`, `--search 'status>=500 path=/api/x'`},
		{`web --where 'status IN (500, 502)'`, `--search 'status=500 OR status=502'`},
		{`web --where 'status not in (200,304)'`, `--search '-(status=200 OR status=304)'`},
		{`web --where 'path LIKE "%api%"'`, `--search 'path=*api*'`},
		{`web --where 'path not like "/health%"'`, `--search '-path=/health*'`},
		{`web --where 'msg =~ "time.*out"'`, `--search 'msg=/time.*out/'`},
		{`web --where 'msg ~ timeout'`, `--search msg=/timeout/`},
		{`web --where 'status == 500 or 502'`, `--search 'status=500 OR status=502'`},
		{`web --where 'user_id is not null'`, `--search 'user_id=*'`},
		{`web --where 'exists(user_id)'`, `--search 'user_id=*'`},
		{`web --where 'status between 400 and 499'`, `--search 'status>=400 status<=499'`},
		{`web --where 'status ge 500'`, `--search 'status>=500'`},
		{`web --where 'duration_ms > 1s'`, `--search 'duration_ms>1'`},
		{`web --where 'path == /api/x'`, `--search path=/api/x`},
		{`web --where "'status' == 500"`, `--search status=500`},
		{`web --where 'select(.status >= 500)'`, `--search 'status>=500'`},
		{`web --where '.level == "error"'`, `--search level=error`},
		{`web --where 'msg.contains("timeout")'`, `--search 'msg:"timeout"'`},
		{`web --where 'contains(msg, "time out")'`, `--search 'msg:"time out"'`},
		{`web --where 'level >= warning'`, `--search 'level>=warning'`},
		{`web --where 'level == "error+"'`, `>= "error"`},
		{`web --where 'ts > 2026-11-20'`, `--search 'ts>2026-11-20'`},
		{`web --where '!(status = 500)'`, `--search -status=500`},
		{`web --where '$status == 500 || ${path} == "/x"'`, `--search 'status=500 OR path=/x'`},
		{`web --where 'stauts == 500'`, `is it status?`},
		{`web --where 'status == "500"'`, `--search status=500`},
		{`web --where 'msg == timeout'`, `write msg == "timeout"`},
		{`web --where 'status'`, `status >= 500`},
		{`web --where 'lenght(msg) > 5'`, `there is len`},
		{`web --where 'WHERE status = 500 ORDER BY ts'`, `--search status=500`},
		{`web --where 'status IN [500 TO 599]'`, `--search 'status>=500 status<=599'`},
		{`web --where 'timeout AND NOT refused'`, `--search 'timeout -refused'`},
		{`web --where timeout`, `has("timeout")`},
		{`web --where '"two words"'`, `has("two words")`},
		{`web --where '{service="web"} |= "x"'`, `--logql '{service="web"} |= "x"'`},
		// grep.
		{`-F timeout`, `logquery '*' -F timeout`},
		{`--where 'status >= 500' --count`, `logquery '*' --where 'status >= 500' --count`},
		{`web -E 'a|b'`, `-g 'a|b'`},
		{`web -e timeout`, `-F timeout`},
		{`grep timeout web`, `logquery web -F timeout`},
		{`timeout web`, `logquery web -F timeout`},
		{`web 'connection refused'`, `logquery web -F 'connection refused'`},
		{`web error`, `logquery web --level error`},
		{`web -g '*error'`, `-F '*error'`},
		{`web -m 5`, `-n 5`},
		{`web -n 1,000`, `write 1000`},
		{`web --invert-match -F a`, `-v`},
		{`web -A3`, `add --level, -F`},
		{`web -20`, `-n 20`},
		{`web -n -5`, `-n 5`},
		{`web --level 'error|warn'`, `--level error,warn`},
		{`web -since 1h`, `--since`},
		{`web —since 1h`, `--since`},
		// kubectl and docker.
		{`logs web`, `logquery web`},
		{`logs -f web`, `logquery tail web -f`},
		{`logs deploy/web`, `logquery web`},
		{`web -l app=nginx`, `logquery nginx`},
		{`--selector app=nginx`, `logquery nginx`},
		{`web --tail=-1`, `or 0 for all`},
		{`web --since 1 hour`, `--since '1 hour'`},
		{`web -c nginx`, `--count`},
		{`--all-namespaces`, `'*'`},
		// journalctl.
		{`web -p err`, `--level error+`},
		{`web -S yesterday`, `--since yesterday`},
		{`web -o short-iso`, `-o pretty`},
		{`--unit nginx.service`, `logquery nginx`},
		{`web -b`, `--since 1d`},
		{`web -f`, `logquery tail web -f`},
		{`--disk-usage`, `logquery bill`},
		// jq and forms of output.
		{`web --jq .status`, `jq .status`},
		{`web -o yaml`, `json`},
		{`web -o table`, `-o pretty`},
		{`web --json`, `-o json`},
		{`web -o csv`, `--fields ts,level,service,msg,duration_ms,path,status`},
		{`web --fields ts msg`, `--fields ts,msg`},
		{`web --fields status msg path`, `--fields status,msg,path`},
		{`web --fields .status`, `--fields status`},
		{`web --template '{msg}'`, `{{.msg}}`},
		{`web --group-by status`, `logquery top status web`},
		{`web --parse '<ip> - <user>'`, `--parse logfmt`},
		{`web --parse nginx`, `'<ip> - <user>`},
		// Times.
		{`web --from 2026-11-20 13:00`, `--from '2026-11-20 13:00'`},
		{`web --from 11/20/2026`, `2026-11-20`},
		{`web --since PT1H`, `1h`},
		{`web --from today --to yesterday`, `--from yesterday --to today`},
		{`web --tz UTC`, `--timezone UTC`},
		{`web 2h`, `logquery web --since 2h`},
		{`web --since 1h30`, `--since 1h30m`},
		{`web --last 2h`, `--since 2h`},
		{`web --timezone EDT`, `America/`},
		// Verbs.
		{`web top status`, `logquery top status web`},
		{`web tail`, `logquery tail web`},
		{`top status`, `logquery top status '*'`},
		{`logquery web`, `logquery web`},
		{`tial web`, `logquery tail web`},
		{`count web`, `logquery web --count`},
		{`top web status`, `logquery top status web`},
		{`fields`, `logquery fields '*'`},
		{`service=web`, `--search service=web`},
		// Stores and az monitor.
		{`--store ./data2 ls`, `write dir:./data2`},
		{`--store https://acct.blob.core.windows.net/logs ls`, `write azure:acct/logs`},
		{`--store azure://acct/logs ls`, `write azure:acct/logs`},
		{`--store file:///var/data ls`, `write dir:/var/data`},
		{`--store acct/logs ls`, `write azure:acct/logs`},
		{`--store blob:acct/logs ls`, `write azure:acct/logs`},
		{`--store '~/data' ls`, `write dir:$HOME/data`},
		{`--server 10.0.0.1:8516 ls`, `http://10.0.0.1:8516`},
		{`--stroe dir:x ls`, `--store`},
		{`--server localhost:8516 ls`, `http://localhost:8516`},
		{`--account-name acct ls`, `--store azure:acct/CONTAINER`},
		{`web --timespan PT1H`, `--since 1h`},
		{`web --analytics-query 'status>=500'`, `--search 'status>=500'`},
		{`web --connection-string x ls`, `AZURE_STORAGE_CONNECTION_STRING`},
	}
}

// shellFields splits a line as a shell does that knows blanks and quotes.
func shellFields(line string) (args []string) {
	quote, open := rune(0), false
	var b strings.Builder
	escaped := false
	for _, r := range line {
		switch {
		case escaped:
			b.WriteRune(r)
			escaped = false
		case quote == 0 && r == '\\':
			escaped = true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, open = r, true
		case quote == 0 && r == ' ':
			if open || b.Len() > 0 {
				args = append(args, b.String())
			}
			b.Reset()
			open = false
		default:
			b.WriteRune(r)
		}
	}
	if open || b.Len() > 0 {
		args = append(args, b.String())
	}
	return args
}

// Each mistake is answered in one line with what to type, and so is the example of each habit.
func TestAdvice(t *testing.T) {
	path := t.TempDir() + "/data"
	store, err := dir.Open(path, dir.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{
		`{"ts":1795183200,"service":"web","level":"info","msg":"GET a=1 b=2","status":200,"path":"/api/x","duration_ms":5}`,
		`{"ts":1795183200,"service":"nginx","level":"info","msg":"started"}`,
	} {
		if err := addBlob(store, []byte(text), i+1); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("BLOBTAIL_STORE", "dir:"+path)
	all := mistakes()
	for table, form := range map[string][2]string{
		"flag": {"%s", "%s"}, "verb": {"%s", "logquery %s"}, "form": {"web -o %s", "-o %s"},
		"time":  {"web --since %s", "--since %s"},
		"logql": {"--logql %s", "%s"}, "labels": {"--logql %s", "%s"},
	} {
		for _, h := range spelling.Habits(habits, table) {
			example := h.Example
			if table == "logql" || table == "labels" {
				example = cli.ShellWords(example)
			}
			all = append(all, mistaken{fmt.Sprintf(form[0], example), fmt.Sprintf(form[1], h.Result)})
		}
	}
	right := 0
	for _, m := range all {
		var out, errs strings.Builder
		run(t.Context(), environment{
			args: shellFields(m.line), stdout: &out, stderr: &errs, isFile: func(string) bool { return false },
			getenv: func(string) string { return "" },
			now:    time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC), local: time.UTC,
		})
		ok := false
		for answer := range strings.Lines(errs.String()) {
			ok = ok || strings.Contains(answer, m.fix)
		}
		if ok {
			right++
			continue
		}
		t.Errorf("%s\n got %swant %s", m.line, errs.String(), m.fix)
	}
	t.Logf("%d of %d", right, len(all))
}
